//! Giving memory back that large states took for a moment.
//!
//! The binary's allocator is mimalloc. Projecting and listing a large tenant makes and drops millions of small texts on
//! several threads; glibc's allocator keeps most of what they took (213 MB after 10,000 machines, of which 30 are in
//! use), mimalloc gives it back (60 MB). It does so a second later, but only when it is asked for something: in a server
//! that nobody asks anything, it has to be reminded.

use std::hint::black_box;
use std::time::Duration;

/// How often the allocator is reminded: a microsecond's work.
const EVERY: Duration = Duration::from_secs(2);

/// More than a page of small allocations: to take and give it back, the allocator looks at its pages. It is never
/// touched.
const LARGE: usize = 4 << 20;

/// Reminds the allocator until the task is ended.
pub async fn give_back() {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        drop(black_box(Vec::<u8>::with_capacity(LARGE)));
    }
}
