//! How many connections one address has.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts connections by where they are from. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Crowds {
    limit: usize,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    crowds: Crowds,
    address: IpAddr,
}

impl Crowds {
    /// Lets so many connections of an address in at a time.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, counts: Arc::default() }
    }

    /// Counts a connection in, unless it is this machine's own.
    ///
    /// # Errors
    ///
    /// If its address has as many as it may.
    pub(super) fn seat(&self, address: IpAddr) -> io::Result<Option<Seat>> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Ok(None);
        }
        let address = whose(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= self.limit {
            return Err(io::Error::other(format!("{address} has {count} connections already")));
        }
        *count += 1;
        drop(counts);
        Ok(Some(Seat { crowds: self.clone(), address }))
    }
}

/// Of IPv6, a host has a network of 64 bits for itself (RFC 4291, section 2.5.4).
fn whose(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.crowds.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_and_another_has_its_own() {
        let crowds = Crowds::new(2);
        let seat = |address: &str| crowds.seat(address.parse().unwrap());
        let first = seat("192.0.2.7").unwrap();
        let _second = seat("::ffff:192.0.2.7").unwrap();
        assert!(seat("192.0.2.7").is_err());
        drop(first);
        let _third = seat("192.0.2.7").unwrap().unwrap();
        let _other = seat("192.0.2.8").unwrap().unwrap();
        let seats: Vec<_> = (0..5).map(|_| seat("127.0.0.1").unwrap()).collect();
        assert!(seats.iter().all(Option::is_none));
        let _network = (seat("2001:db8::1").unwrap(), seat("2001:db8::2").unwrap());
        assert!(seat("2001:db8::3").is_err());
        assert!(seat("2001:db8:0:1::3").is_ok());
    }

    #[test]
    fn an_address_without_connections_is_forgotten() {
        let crowds = Crowds::new(2);
        drop(crowds.seat("192.0.2.7".parse().unwrap()).unwrap());
        assert!(crowds.counts.lock().unwrap().is_empty());
    }
}
