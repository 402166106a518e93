//! What the server promises whoever talks to it: replayed and real clients, the protocol's table of refusals, the trials
//! that other servers failed, and the command line.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod access;
mod answer;
mod canary;
mod cases;
mod cli;
mod client_types;
mod described;
mod durability;
mod edge;
mod in_process;
mod kube;
mod kubectl;
mod lock;
mod observed;
mod projection;
mod prometheus;
mod protocol;
mod real_client;
mod recordings;
mod replay;
mod runs;
mod server;
mod settings;
mod tls;
mod tool;
mod tools;
