//! The inner loops over bytes: eight at a time, without `unsafe`.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const SPACES: u64 = 0x2020_2020_2020_2020;

/// Marks the bytes of a word that end the plain part of a string: `"`, `\` and the control characters.
///
/// The lowest mark is always right; a subtraction's borrow may set wrong ones above it.
#[inline]
fn specials(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & HIGHS
}

/// Returns the index of the lowest marked byte.
#[inline]
fn lowest(marks: u64) -> usize {
    usize::try_from(marks.trailing_zeros() / 8).unwrap_or(0)
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..).and_then(<[u8]>::first_chunk::<8>).map(|chunk| u64::from_le_bytes(*chunk))
}

/// Returns where the plain part of a string ends: at a `"`, a `\`, a control character or the end.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let marks = specials(word);
        if marks != 0 {
            return at + lowest(marks);
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|b| !matches!(b, b'"' | b'\\' | ..0x20)) {
        at += 1;
    }
    at
}

/// Returns the index behind the escape at `at`, or the offset of the fault.
pub(super) fn escape_end(bytes: &[u8], at: usize) -> Result<usize, usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match bytes.get(at + 2..at + 6) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(at + 6),
            _ => Err(at),
        },
        _ => Err(at),
    }
}

/// Returns where white space ends. States are indented by two spaces a level, so it comes as a line feed and a run.
#[inline]
pub(super) fn space_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
        while let Some(word) = word_at(bytes, at) {
            let other = word ^ SPACES;
            if other != 0 {
                at += lowest(other);
                break;
            }
            at += 8;
        }
    }
    at
}

/// Returns where the number at `at` ends, or where a digit is missing.
pub(super) fn number_end(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let some_digits = |at: usize| if digits(at) > at { Ok(digits(at)) } else { Err(at) };
    let mut at = if bytes.get(at) == Some(&b'-') { at + 1 } else { at };
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { some_digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = some_digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let signed = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = some_digits(at + 1 + signed)?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_plain_part_is_found_at_every_offset() {
        for special in [b'"', b'\\', 0, 0x1f] {
            for length in 0..40 {
                let mut bytes = vec![b'\x20'; length];
                bytes.push(special);
                bytes.extend([0xff, 0x7f, 0x80, b'"', 0x21, 0x23, 0x5b, 0x5d]);
                assert_eq!(plain_end(&bytes, 0), length);
            }
        }
        let all: Vec<u8> = (0x20..=0xff).filter(|b| !matches!(b, b'"' | b'\\')).collect();
        assert_eq!(plain_end(&all, 0), all.len());
    }

    #[test]
    fn white_space_ends_at_the_first_other_byte() {
        for length in 0..40 {
            let text = format!("{}\n{}x", " ".repeat(length % 3), " ".repeat(length));
            assert_eq!(space_end(text.as_bytes(), 0), text.len() - 1);
        }
    }
}
