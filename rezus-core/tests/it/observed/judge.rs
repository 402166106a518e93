//! What is made of what was read.

mod clocks;
mod etcd;
mod machine;
mod node;
