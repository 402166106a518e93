//! What is made of what was read.

mod etcd;
mod machine;
mod node;
