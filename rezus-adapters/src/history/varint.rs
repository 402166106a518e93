//! Whole numbers in as few bytes as they need: seven bits in each, the lowest first.

/// Adds a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return bytes.push(low & 0x7f);
        }
        bytes.push(low | 0x80);
    }
}

/// Takes the first number.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Adds a number of either sign, of which small ones are short.
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Takes the first number, of either sign.
pub(super) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = take(bytes)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, -1, 63, -64, 64, 127, 128, i64::MAX, i64::MIN, 1_796_065_837_123];
        let mut bytes = Vec::new();
        for number in numbers {
            put_signed(&mut bytes, number);
        }
        let mut rest = bytes.as_slice();
        assert_eq!(numbers.map(|_| take_signed(&mut rest).unwrap()), numbers);
        assert_eq!((rest, take(&mut rest)), ([].as_slice(), None));
        assert_eq!(take(&mut [0xff; 11].as_slice()), None);
    }
}
