//! What orders states: serial and lineage, which a state says of itself, and the version number, which the server
//! counts.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// The serial of a state: an unsigned 64-bit number that its writer raises by one with each change.
///
/// Source: OpenTofu's state file format, member `serial`. Never goes through a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(u64);

/// Why a text is no serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a serial is a whole number from 0 to 18446744073709551615")]
pub struct SerialError;

impl Serial {
    /// Makes a serial from its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the serial after this one, or `None` after the last.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl FromStr for Serial {
    type Err = SerialError;

    fn from_str(text: &str) -> Result<Self, SerialError> {
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(SerialError);
        }
        text.parse().map(Self).map_err(|_| SerialError)
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The lineage of a state: an opaque text, made once, that all later versions of the state carry.
///
/// Compared byte for byte. The empty one is "legacy": nothing can be compared with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lineage(String);

impl Lineage {
    /// Takes any text as a lineage.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The server's own count of a tenant's accepted states: 1, 2, 3 ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionNumber(NonZeroU64);

impl VersionNumber {
    /// The number of a tenant's first version.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Makes a version number; `None` for 0, which no version has.
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// Returns the number, 1 or more.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns the number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_has_all_of_64_bits_and_no_sign() {
        assert_eq!("18446744073709551615".parse(), Ok(Serial::new(u64::MAX)));
        for bad in ["18446744073709551616", "-1", "+1", "1.0", ""] {
            assert_eq!(bad.parse::<Serial>(), Err(SerialError), "{bad}");
        }
        assert_eq!(Serial::new(u64::MAX).next(), None);
    }
}
