//! Giving memory back that large states took for a moment.
//!
//! The binary's allocator is mimalloc. Projecting and listing a large tenant makes and drops millions of small texts on
//! several threads; glibc's allocator keeps most of what they took (213 MB after 10,000 machines, of which 30 are in
//! use), mimalloc gives it back (60 MB). It does so a second later, but only when it is asked for something: in a server
//! that nobody asks anything, it has to be reminded. What a thread emptied it keeps for that thread until it was asked many
//! times: 5 MB after 100 states of 200 kB.

use std::hint::black_box;
use std::time::Duration;

use tokio::runtime::Handle;

/// How often the allocator is reminded.
const EVERY: Duration = Duration::from_secs(1);

/// How often it is asked for something each time: after as many times it looks through all that a thread has (mimalloc
/// 3: after a thousand at what was emptied lately, which it keeps sixteen times). Half a millisecond's work.
const ASKED: usize = 17_000;

/// More than what it gives out without looking, and more than a page of small allocations: what is freed of pages is
/// given back when another one is taken. Neither is ever touched.
const MEDIUM: usize = 2 << 10;
const LARGE: usize = 4 << 20;

/// Reminds the allocator until the task is ended.
pub async fn give_back() {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        // Each thread keeps what it freed: there is one for each. That two are done by one of them does no harm.
        for _ in 0..Handle::current().metrics().num_workers() {
            drop(tokio::spawn(async { remind() }));
        }
    }
}

fn remind() {
    for _ in 0..ASKED {
        drop(black_box(Vec::<u8>::with_capacity(MEDIUM)));
    }
    drop(black_box(Vec::<u8>::with_capacity(LARGE)));
}
