//! Runs of the real terraform by the real server, from the command line.

mod endings;
mod killed;
mod kills;
mod lab;
mod life;
mod processes;
mod secrets;
