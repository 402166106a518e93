//! Who is let in, to what, and what is kept of it.

pub(crate) mod admin;
mod audit;
mod certificates;
mod commands;
mod logins;
mod matrix;
pub(crate) mod people;
mod rows;
mod secrecy;
mod seen;
