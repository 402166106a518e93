//! Base64 (RFC 4648), as far as a search needs it: what a text looks like inside of an encoded longer one.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Which of the two alphabets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// With `+` and `/`.
    Standard,
    /// With `-` and `_`.
    UrlSafe,
}

/// Those characters of a text's encoding that depend on the text alone, when `shift` (0, 1 or 2, modulo 3) bytes
/// come before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Core<'a> {
    text: &'a [u8],
    skipped_bits: usize,
}

impl<'a> Core<'a> {
    pub(super) fn new(text: &'a [u8], shift: usize) -> Self {
        Self { text, skipped_bits: [0, 4, 2][shift % 3] }
    }

    /// Returns how many characters there are.
    pub(super) fn len(self) -> usize {
        (self.text.len() * 8).saturating_sub(self.skipped_bits) / 6
    }

    /// Returns the character at an index below [`len`](Self::len).
    pub(super) fn at(self, index: usize, alphabet: Alphabet) -> u8 {
        let bit = self.skipped_bits + index * 6;
        let byte = |at: usize| u16::from(self.text.get(at).copied().unwrap_or(0));
        let pair = (byte(bit / 8) << 8) | byte(bit / 8 + 1);
        let sextet = usize::from((pair >> (10 - bit % 8)) & 63);
        match (alphabet, sextet) {
            (Alphabet::UrlSafe, 62) => b'-',
            (Alphabet::UrlSafe, 63) => b'_',
            _ => STANDARD[sextet],
        }
    }

    /// Tells whether the alphabets differ on it.
    pub(super) fn is_ambiguous(self) -> bool {
        (0..self.len()).any(|index| matches!(self.at(index, Alphabet::Standard), b'+' | b'/'))
    }
}

/// Decodes what is base64 of readable text and of nothing else by chance: 16 characters or more, of either alphabet.
pub(super) fn readable(encoded: &str) -> Option<String> {
    let encoded = encoded.trim_end_matches('=');
    if encoded.len() < 16 {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for character in encoded.bytes() {
        let standard = match character {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        let sextet = u32::try_from(STANDARD.iter().position(|known| *known == standard)?).ok()?;
        held = (held << 6) | sextet;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_readable = text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'));
    is_readable.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &[u8], alphabet: Alphabet) -> String {
        let padded: Vec<u8> = text.iter().copied().chain([0, 0]).collect();
        let core = Core::new(&padded, 0);
        (0..(text.len() * 8).div_ceil(6)).map(|i| char::from(core.at(i, alphabet))).collect()
    }

    #[test]
    fn known_encodings_are_made() {
        assert_eq!(
            encoded(b"FAKE-plainvar-7458f00a76c3", Alphabet::Standard),
            "RkFLRS1wbGFpbnZhci03NDU4ZjAwYTc2YzM"
        );
        assert_eq!(encoded(&[0xfb, 0xff, 0xfe], Alphabet::Standard), "+//+");
        assert_eq!(encoded(&[0xfb, 0xff, 0xfe], Alphabet::UrlSafe), "-__-");
    }

    #[test]
    fn the_core_is_in_the_encoding_of_whatever_surrounds_it() {
        let secret = b"hunter2?>hunter2";
        for alphabet in [Alphabet::Standard, Alphabet::UrlSafe] {
            for before in 0..7 {
                for after in ["", "a", "\u{ff}\u{ff}", "xyz"] {
                    let whole = [&b"\xffz9\x00abc"[..before], secret, after.as_bytes()].concat();
                    let core = Core::new(secret, before);
                    let core: String = (0..core.len()).map(|i| char::from(core.at(i, alphabet))).collect();
                    assert!(encoded(&whole, alphabet).contains(&core), "{before} {after}");
                }
            }
        }
    }

    #[test]
    fn only_what_reads_as_text_is_decoded() {
        assert_eq!(
            readable("RkFLRS1wbGFpbnZhci03NDU4ZjAwYTc2YzM=").as_deref(),
            Some("FAKE-plainvar-7458f00a76c3")
        );
        assert_eq!(readable("aGVsbG8="), None);
        assert_eq!(readable("not base64, but long enough"), None);
        assert_eq!(readable("/////////////////////w=="), None);
    }
}
