//! Runs: their whole life over a scripted program, and over the real one.

mod api;
mod changes;
mod commands;
mod conditions;
mod crash;
mod drift;
pub(crate) mod encrypted;
pub(crate) mod lab;
mod life;
mod logs;
mod queue;
mod real;
mod unread;
mod updates;
