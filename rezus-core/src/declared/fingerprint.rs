//! The digests of a body.

use std::fmt;

use md5::Digest as _;

/// The digests of a state's bytes: SHA-256 names the content, MD5 is what HTTP's `Content-MD5` (RFC 1864) carries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// MD5 of the bytes: a check against transport faults, never of identity.
    pub md5: [u8; 16],
}

impl Fingerprint {
    /// Computes both digests.
    pub fn of(body: &[u8]) -> Self {
        Self { sha256: Self::sha256_of(body), md5: Self::md5_of(body) }
    }

    /// Computes the SHA-256.
    pub(in crate::declared) fn sha256_of(body: &[u8]) -> [u8; 32] {
        sha2::Sha256::digest(body).into()
    }

    /// Computes the MD5.
    pub(in crate::declared) fn md5_of(body: &[u8]) -> [u8; 16] {
        md5::Md5::digest(body).into()
    }

    /// Returns the SHA-256 as 64 lower-case hexadecimal digits.
    pub fn sha256_hex(&self) -> String {
        self.sha256.iter().fold(String::with_capacity(64), |mut text, byte| {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
            text
        })
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.sha256_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_known_ones() {
        let of_abc = Fingerprint::of(b"abc");
        assert_eq!(of_abc.sha256_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(of_abc.md5[..4], [0x90, 0x01, 0x50, 0x98]);
    }
}
