//! The TLS listener: its certificates, what real clients say to it, and what requests are held to.

mod certificates;
mod clients;
mod limits;
mod raw;
