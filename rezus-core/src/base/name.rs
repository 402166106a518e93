//! The name of a tenant.

use std::fmt;
use std::str::FromStr;

/// The name of a tenant, which is also its Kubernetes namespace.
///
/// - a DNS label (RFC 1123, section 2.1): 1 to 63 of `a`-`z`, `0`-`9` and `-`, a letter or digit at both ends
/// - never a UUID of any version, hyphens or not: a client that was given `/state?ID=NAME` replaces NAME by the UUID
///   of its lock, and the two must stay apart
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// Why a text is no tenant name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No character at all.
    #[error("a tenant's name is empty: use 1 to 63 lower-case letters, digits and hyphens")]
    Empty,
    /// More than 63 characters.
    #[error("a tenant's name has {0} bytes: use at most 63")]
    TooLong(usize),
    /// A character that a DNS label cannot hold, or a hyphen at an end.
    #[error(
        "a tenant's name must be lower-case letters, digits and hyphens, with a letter or digit first and last"
    )]
    NotALabel,
    /// It reads as a UUID.
    #[error("a tenant's name must not be a UUID: lock IDs have that form")]
    Uuid,
}

impl TenantName {
    /// Takes a text as a tenant's name.
    ///
    /// # Errors
    ///
    /// [`NameError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let bytes = text.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return Err(NameError::Empty);
        };
        if bytes.len() > 63 {
            return Err(NameError::TooLong(bytes.len()));
        }
        let in_label = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
        if !bytes.iter().all(in_label) || *first == b'-' || *last == b'-' {
            return Err(NameError::NotALabel);
        }
        if is_uuid_shaped(text) {
            return Err(NameError::Uuid);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Tells whether a text has the form of a UUID: 32 hexadecimal digits, with hyphens after 8, 12, 16 and 20 or none.
fn is_uuid_shaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hyphen_place = |i: usize| matches!(i, 8 | 13 | 18 | 23);
    match bytes.len() {
        36 => bytes
            .iter()
            .enumerate()
            .all(|(i, b)| if is_hyphen_place(i) { *b == b'-' } else { b.is_ascii_hexdigit() }),
        32 => bytes.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TenantName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_label_is_a_name_and_nothing_else_is() {
        for good in ["a", "prod", "eu-1", "9", "a--b", &"x".repeat(63)] {
            assert_eq!(TenantName::parse(good).map(|n| n.to_string()).as_deref(), Ok(good));
        }
        let cases = [
            ("", NameError::Empty),
            ("Prod", NameError::NotALabel),
            ("-a", NameError::NotALabel),
            ("a-", NameError::NotALabel),
            ("a.b", NameError::NotALabel),
            ("a/b", NameError::NotALabel),
            ("ä", NameError::NotALabel),
            ("177fbbaf-774b-3a8b-0000-ffffffffffff", NameError::Uuid),
            ("177fbbaf774b3a8b0000ffffffffffff", NameError::Uuid),
        ];
        for (text, error) in cases {
            assert_eq!(TenantName::parse(text), Err(error), "{text}");
        }
        assert_eq!(TenantName::parse(&"x".repeat(64)), Err(NameError::TooLong(64)));
    }
}
