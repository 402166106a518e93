//! Failed logins, counted by address.
//!
//! An address that failed too often is told to wait; a token that works is let in from there all the same. Tokens are
//! 256 random bits, so there is nothing to be guessed, while one forgotten client with a token that has expired must not
//! keep the applies of all others behind the same address from saving their states.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rezus_core::base::Timestamp;

/// How many failures an address may have in a [`WINDOW`].
pub const FAILURES: u32 = 10;

/// How long failures count.
pub const WINDOW: Duration = Duration::from_mins(1);

/// How many addresses are remembered: what is remembered stays small whoever knocks.
const ADDRESSES: usize = 10_000;

/// Failed logins by address.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Clone, Copy, Debug)]
struct Failures {
    since: Timestamp,
    count: u32,
}

impl Throttle {
    /// Counts a failure from an address.
    ///
    /// # Errors
    ///
    /// How long to wait, if there were too many.
    pub fn failed(&self, address: IpAddr, now: Timestamp) -> Result<(), Duration> {
        let address = network(address);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |failures: &Failures| now < failures.since || now.since(failures.since) >= WINDOW;
        if known.len() >= ADDRESSES && !known.contains_key(&address) {
            known.retain(|_, failures| !is_over(failures));
            let oldest = known.iter().min_by_key(|(_, failures)| failures.since).map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| known.len() >= ADDRESSES) {
                known.remove(&oldest);
            }
        }
        let failures = known.entry(address).or_insert(Failures { since: now, count: 0 });
        if is_over(failures) {
            *failures = Failures { since: now, count: 0 };
        }
        if failures.count >= FAILURES {
            return Err(WINDOW.saturating_sub(now.since(failures.since)));
        }
        failures.count += 1;
        Ok(())
    }
}

/// Of an IPv6 address the first half: the other one is its owner's to choose.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let half = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(half))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_eleventh_failure_in_a_minute_waits_for_its_end() {
        let throttle = Throttle::default();
        for second in 0..10 {
            assert_eq!(throttle.failed(address("192.0.2.1"), at(second)), Ok(()));
        }
        assert_eq!(throttle.failed(address("192.0.2.1"), at(10)), Err(Duration::from_secs(50)));
        assert_eq!(throttle.failed(address("192.0.2.1"), at(59)), Err(Duration::from_secs(1)));
        assert_eq!(throttle.failed(address("192.0.2.2"), at(59)), Ok(()));
        assert_eq!(throttle.failed(address("192.0.2.1"), at(60)), Ok(()));
    }

    #[test]
    fn a_clock_that_was_set_back_locks_nobody_out() {
        let throttle = Throttle::default();
        for _ in 0..10 {
            throttle.failed(address("::1"), at(1_000)).unwrap();
        }
        assert!(throttle.failed(address("::1"), at(1_000)).is_err());
        assert_eq!(throttle.failed(address("::1"), at(10)), Ok(()));
    }

    #[test]
    fn an_ipv6_network_is_one_address_and_a_mapped_one_is_the_ipv4_one() {
        let throttle = Throttle::default();
        for host in 0..10 {
            throttle.failed(address(&format!("2001:db8::{host}")), at(0)).unwrap();
            throttle.failed(address("::ffff:192.0.2.1"), at(0)).unwrap();
        }
        assert!(throttle.failed(address("2001:db8::ffff"), at(0)).is_err());
        assert!(throttle.failed(address("192.0.2.1"), at(0)).is_err());
        assert_eq!(throttle.failed(address("2001:db8:0:1::1"), at(0)), Ok(()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let throttle = Throttle::default();
        for number in 0..20_000_u32 {
            throttle.failed(IpAddr::from(number.to_be_bytes()), at(i64::from(number / 1_000))).unwrap();
        }
        assert!(throttle.0.lock().unwrap().len() <= ADDRESSES);
    }
}
