//! Columns of numbers in few bytes.
//!
//! A column is a byte that says how it is written and what follows: one number that is all of them, or what `pco` makes. A
//! block is columns one after the other, each with its length before it.

use pco::ChunkConfig;
use pco::data_types::Number;

use super::error::FileError;
use super::varint;

const SAME: u8 = 0;
const PACKED: u8 = 1;

/// How hard `pco` tries: more than this takes longer and gains next to nothing.
const LEVEL: usize = 8;

/// A number of eight bytes.
pub(super) trait Eight: Number {
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

impl Eight for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

impl Eight for i64 {
    fn bits(self) -> u64 {
        self.cast_unsigned()
    }

    fn of_bits(bits: u64) -> Self {
        bits.cast_signed()
    }
}

/// Adds a column to a block.
pub(super) fn put<T: Eight>(block: &mut Vec<u8>, numbers: &[T]) -> Result<(), FileError> {
    let first = numbers.first().map(|number| number.bits());
    let is_same = numbers.iter().all(|number| Some(number.bits()) == first);
    let mut column = Vec::new();
    match first {
        Some(bits) if is_same => {
            column.push(SAME);
            varint::put(&mut column, u64::try_from(numbers.len()).unwrap_or(u64::MAX));
            // Small whole numbers, of which there are many, end in zeros as doubles.
            varint::put(&mut column, bits.reverse_bits());
        }
        _ => {
            column.push(PACKED);
            let config = ChunkConfig::default().with_compression_level(LEVEL);
            column.extend(pco::standalone::simple_compress(numbers, &config)?);
        }
    }
    varint::put(block, u64::try_from(column.len()).unwrap_or(u64::MAX));
    block.extend(column);
    Ok(())
}

/// Takes the first column of a block.
pub(super) fn take<T: Eight>(block: &mut &[u8]) -> Result<Vec<T>, FileError> {
    const DAMAGED: FileError = FileError::Damaged("a column of numbers");
    let length = varint::take(block).and_then(|length| usize::try_from(length).ok()).ok_or(DAMAGED)?;
    let (column, rest) = block.split_at_checked(length).ok_or(DAMAGED)?;
    *block = rest;
    match column.split_first() {
        Some((&SAME, mut column)) => {
            let count = varint::take(&mut column).and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| *count <= MOST).ok_or(DAMAGED)?;
            let number = T::of_bits(varint::take(&mut column).ok_or(DAMAGED)?.reverse_bits());
            Ok(vec![number; count])
        }
        Some((&PACKED, column)) => Ok(pco::standalone::simple_decompress(column)?),
        _ => Err(DAMAGED),
    }
}

/// More than a day can have of samples that are a millisecond apart.
const MOST: usize = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_bit_for_bit() {
        let odd =
            [f64::NAN, -f64::NAN, -0.0, f64::INFINITY, f64::from_bits(0x7ff0_0000_0000_0002), 1.25, 0.1];
        let many: Vec<f64> = (0..1_440_i32).map(|n| f64::from(n / 7) / 100.0).collect();
        let whole: Vec<f64> = (0..1_440_i32).map(|n| f64::from(n * n)).collect();
        let columns: [&[f64]; 6] = [&odd, &many, &whole, &[f64::NAN; 9], &[], &[4_096.0]];
        let mut block = Vec::new();
        for column in columns {
            put(&mut block, column).unwrap();
        }
        put(&mut block, &[i64::MIN, i64::MAX, 0]).unwrap();
        let mut rest = block.as_slice();
        for column in columns {
            let read: Vec<u64> = take::<f64>(&mut rest).unwrap().into_iter().map(f64::to_bits).collect();
            assert_eq!(read, column.iter().map(|number| number.to_bits()).collect::<Vec<_>>());
        }
        assert_eq!(take::<i64>(&mut rest).unwrap(), [i64::MIN, i64::MAX, 0]);
        assert!(rest.is_empty() && take::<f64>(&mut rest).is_err());
        for end in 0..block.len() {
            let mut cut = &block[..end];
            while let Ok(column) = take::<f64>(&mut cut) {
                assert!(column.len() <= 1_440);
            }
        }
    }

    #[test]
    fn what_is_the_same_all_over_takes_no_room() {
        let mut block = Vec::new();
        put(&mut block, &[1.0; 1_440]).unwrap();
        assert!(block.len() <= 6, "{}", block.len());
    }
}
