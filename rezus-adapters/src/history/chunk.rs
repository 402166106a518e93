//! What a chunk holds: samples of one series, or rollups of one.
//!
//! When they were is kept apart from what they were: all series that are read of one machine at a time have the same times, which
//! are so written once for all of them.

use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::{Rollup, Sample};

use super::column;
use super::error::FileError;

/// A chunk as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// When: columns of whole numbers, all of the same length.
    pub(super) times: Vec<u8>,
    /// What: columns of values, all of that length too.
    pub(super) values: Vec<u8>,
}

/// Columns of times that were read, for as many chunks as have them.
pub(super) type Times = Vec<Vec<i64>>;

const DAMAGED: FileError = FileError::Damaged("a chunk");

/// Reads columns of times until there are no more.
pub(super) fn times(mut block: &[u8]) -> Result<Times, FileError> {
    let mut columns = Vec::new();
    while !block.is_empty() {
        columns.push(column::take(&mut block)?);
    }
    Ok(columns)
}

/// Writes samples.
pub(super) fn of_samples(samples: &[Sample]) -> Result<Chunk, FileError> {
    let mut chunk = Chunk { times: Vec::new(), values: Vec::new() };
    let at: Vec<i64> = samples.iter().map(|sample| sample.at.as_millis()).collect();
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    column::put(&mut chunk.times, &at)?;
    column::put(&mut chunk.values, &values)?;
    Ok(chunk)
}

/// Reads samples.
pub(super) fn samples(times: &Times, mut values: &[u8]) -> Result<Vec<Sample>, FileError> {
    let [at] = times.as_slice() else { return Err(DAMAGED) };
    let values: Vec<f64> = column::take(&mut values)?;
    if at.len() != values.len() {
        return Err(DAMAGED);
    }
    let pairs = at.iter().zip(values);
    Ok(pairs.map(|(at, value)| Sample { at: Timestamp::from_millis(*at), value }).collect())
}

/// Writes rollups, all of one width.
pub(super) fn of_rollups(rollups: &[Rollup]) -> Result<Chunk, FileError> {
    let mut chunk = Chunk { times: Vec::new(), values: Vec::new() };
    let whole: [fn(&Rollup) -> i64; 3] = [
        |rollup| rollup.from.as_millis(),
        |rollup| rollup.last_at.as_millis().wrapping_sub(rollup.from.as_millis()),
        |rollup| rollup.count.cast_signed(),
    ];
    for column in whole {
        column::put(&mut chunk.times, &rollups.iter().map(column).collect::<Vec<i64>>())?;
    }
    let values: [fn(&Rollup) -> f64; 5] = [
        |rollup| rollup.min,
        |rollup| rollup.max,
        |rollup| rollup.sum,
        |rollup| rollup.last,
        |rollup| rollup.increase,
    ];
    for column in values {
        column::put(&mut chunk.values, &rollups.iter().map(column).collect::<Vec<f64>>())?;
    }
    Ok(chunk)
}

/// Reads rollups of this width.
pub(super) fn rollups(times: &Times, mut values: &[u8], width: Duration) -> Result<Vec<Rollup>, FileError> {
    let [from, last_at, count] = times.as_slice() else { return Err(DAMAGED) };
    let mut columns: [std::vec::IntoIter<f64>; 5] = Default::default();
    for column in &mut columns {
        *column = column::take::<f64>(&mut values)?.into_iter();
    }
    let mut rollups = Vec::with_capacity(from.len());
    for ((from, last_at), count) in from.iter().zip(last_at).zip(count) {
        let [min, max, sum, last, increase] = columns.each_mut().map(Iterator::next);
        let (Some(min), Some(max), Some(sum), Some(last), Some(increase)) = (min, max, sum, last, increase)
        else {
            return Err(DAMAGED);
        };
        rollups.push(Rollup {
            from: Timestamp::from_millis(*from),
            width,
            min,
            max,
            sum,
            count: count.cast_unsigned(),
            last,
            last_at: Timestamp::from_millis(from.wrapping_add(*last_at)),
            increase,
        });
    }
    Ok(rollups)
}

#[cfg(test)]
mod tests {
    use rezus_core::series::roll_up;

    use super::*;

    #[test]
    fn samples_and_rollups_come_back() {
        let all: Vec<Sample> = (0..500_i32)
            .map(|n| Sample {
                at: Timestamp::from_millis(i64::from(n) * 60_000 + 17),
                value: f64::from(n % 7) / 10.0,
            })
            .collect();
        let chunk = of_samples(&all).unwrap();
        assert_eq!(samples(&times(&chunk.times).unwrap(), &chunk.values).unwrap(), all);
        let width = Duration::from_mins(5);
        let rolled = roll_up(&all, width, None);
        let chunk = of_rollups(&rolled).unwrap();
        assert_eq!(rollups(&times(&chunk.times).unwrap(), &chunk.values, width).unwrap(), rolled);
        assert!(samples(&times(&chunk.times).unwrap(), &chunk.values).is_err());
    }
}
