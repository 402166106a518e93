//! Where HTTP comes in: clients that trickle, vanish, do not listen or are not what they seem, and the end of the server.

mod answers;
mod endings;
mod guests;
mod raw;
