//! Runs by the real server, from the command line: of the real terraform, and of a program that says what a real tofu
//! was recorded to say.

mod endings;
mod envelopes;
mod idle;
mod killed;
mod kills;
mod lab;
mod life;
mod processes;
mod scripted;
mod search;
mod secrets;
