//! The TLS listener over routes that no server has.

mod drain;
mod lab;
mod peers;
