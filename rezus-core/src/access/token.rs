//! Tokens: what is shown once, and what is kept of them.

use std::fmt;

use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

use super::PrincipalName;
use crate::base::{TenantName, Timestamp};

/// What every token begins with, so that scanners of leaked secrets can tell one.
const PREFIX: &str = "rezus_";

/// A token as its owner shows it: `rezus_` and 64 hexadecimal digits, from 32 random bytes.
#[derive(Clone)]
pub struct TokenSecret([u8; 32]);

/// The text is no token. It is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token of rezus: rezus_ and 64 hexadecimal digits")]
pub struct TokenError;

impl TokenSecret {
    /// Makes a token from 32 bytes of a generator for cryptography.
    pub const fn from_random(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a token.
    ///
    /// # Errors
    ///
    /// [`TokenError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 64).ok_or(TokenError)?;
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(TokenError),
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Self(bytes))
    }

    /// Returns the token as it is shown to its owner, once.
    pub fn reveal(&self) -> String {
        let mut text = PREFIX.to_owned();
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 15] {
                text.extend(char::from_digit(u32::from(nibble), 16));
            }
        }
        text
    }

    /// Returns what is kept of it. A hash without salt or cost is enough: there are 2^256 tokens to guess from.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(sha2::Sha256::digest(self.reveal()).into())
    }
}

/// That there is one.
impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(..)")
    }
}

/// The SHA-256 of a token's text.
#[derive(Clone, Copy)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Takes bytes as a digest: 32 of them.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first bytes, to look a record up by. What they tell of the token is next to nothing.
    pub(super) fn prefix(&self) -> [u8; 8] {
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&self.0[..8]);
        prefix
    }
}

/// Takes the same time wherever the two differ.
impl PartialEq for TokenDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenDigest {}

/// That there is one: a digest is nobody's business either.
impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// What a token is called in lists and when it is revoked: 1 to 64 of `a`-`z` and `0`-`9`, with no relation to its
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(String);

/// The text is no token's ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token's ID, as `token list` shows it")]
pub struct TokenIdError;

impl TokenId {
    /// Takes a text as a token's ID.
    ///
    /// # Errors
    ///
    /// [`TokenIdError`] for any text of another form; it is not repeated, since it may be a token.
    pub fn parse(text: &str) -> Result<Self, TokenIdError> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if fits { Ok(Self(text.to_owned())) } else { Err(TokenIdError) }
    }

    /// Returns the ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a token opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// What is granted to this user.
    Api(PrincipalName),
    /// The state of this tenant and nothing else: GET, POST, LOCK, and UNLOCK with the lock's ID.
    Backend(TenantName),
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// What it is called.
    pub id: TokenId,
    /// The hash of its secret.
    pub digest: TokenDigest,
    /// What it opens.
    pub kind: TokenKind,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// From when on it opens nothing; never if absent.
    pub expires_at: Option<Timestamp>,
    /// When it was last shown, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// Since when it opens nothing.
    pub revoked_at: Option<Timestamp>,
    /// What its maker says of it.
    pub note: String,
}

impl TokenRecord {
    /// Tells whether it opens anything at `now`.
    pub fn works(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }

    /// Tells whether its time is over at `now`.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires| expires <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_shown_and_nothing_else_is_one() {
        let token = TokenSecret::from_random(std::array::from_fn(|i| u8::try_from(i * 7).unwrap_or(1)));
        let text = token.reveal();
        assert_eq!(text.len(), 70);
        assert!(text.starts_with("rezus_00070e15"));
        assert_eq!(TokenSecret::parse(&text).unwrap().digest(), token.digest());
        let upper = format!("rezus_{}", text["rezus_".len()..].to_uppercase());
        for bad in ["", "rezus_", &text[1..], &text[..69], &format!("{text}0"), &upper, "rezus_\u{e9}"] {
            assert!(TokenSecret::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_digest_is_the_sha_256_of_the_text() {
        let digest = TokenSecret::from_random([0; 32]).digest();
        let expected: [u8; 32] = sha2::Sha256::digest(format!("rezus_{}", "0".repeat(64))).into();
        assert_eq!(digest.as_bytes(), &expected);
        assert_ne!(digest, TokenSecret::from_random([1; 32]).digest());
    }

    #[test]
    fn debug_shows_neither_token_nor_digest() {
        let token = TokenSecret::from_random([0x5a; 32]);
        assert_eq!(format!("{token:?} {:?}", token.digest()), "TokenSecret(..) TokenDigest(..)");
    }
}
