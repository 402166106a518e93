//! Samples in a few bytes each, while more of them come.
//!
//! Of times, what their distance changed by; of values, which of their bits changed: as in Pelkonen et al., "Gorilla: a fast,
//! scalable, in-memory time series database" (VLDB 2015). Times are milliseconds, in any order; values are kept bit for bit.

use super::Sample;
use crate::base::Timestamp;

/// How long what a time's distance changed by may be, in bits, and what says so: so many ones and a zero.
const TIMES: [(u32, u32); 3] = [(7, 1), (14, 2), (20, 3)];

/// A value's bits that changed are written within the bounds of the ones before where they fit; that is at most so much longer.
const LEADING_BITS: u32 = 5;
const LENGTH_BITS: u32 = 6;

/// So many bytes more at a time: what grows by doubling would hold as much again as it needs.
const GROWTH: usize = 64;

/// What tells the next sample from the last one.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    at: i64,
    step: i64,
    value: u64,
    /// How many bits at the start of a value, and how many at its end, did not change the last time; none at all at first.
    leading: u32,
    trailing: u32,
    has_bounds: bool,
}

/// Takes samples one after the other.
#[derive(Clone, Debug, Default)]
pub struct Packer {
    bytes: Vec<u8>,
    /// How many bits of the last byte are free.
    free: u32,
    count: u32,
    state: State,
}

/// Samples that are taken.
#[derive(Clone, Debug)]
pub struct Pack {
    bytes: Box<[u8]>,
    count: u32,
}

impl Packer {
    /// Takes a sample.
    pub fn push(&mut self, sample: Sample) {
        let (at, value) = (sample.at.as_millis(), sample.value.to_bits());
        if self.count == 0 {
            self.put(at.cast_unsigned(), 64);
            self.put(value, 64);
            self.state = State { at, value, ..State::default() };
        } else {
            self.put_time(at);
            self.put_value(value);
        }
        self.count += 1;
    }

    /// Returns how many were taken.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Gives back what was taken, in the order in which it was.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        Samples::new(&self.bytes, self.count)
    }

    /// Returns what was taken, and begins anew.
    pub fn finish(&mut self) -> Pack {
        let whole = std::mem::take(self);
        Pack { bytes: whole.bytes.into_boxed_slice(), count: whole.count }
    }

    fn put_time(&mut self, at: i64) {
        let step = at.wrapping_sub(self.state.at);
        let change = step.wrapping_sub(self.state.step);
        (self.state.at, self.state.step) = (at, step);
        if change == 0 {
            return self.put(0, 1);
        }
        for (bits, ones) in TIMES {
            if (-(1 << (bits - 1))..1 << (bits - 1)).contains(&change) {
                self.put((1 << (ones + 1)) - 2, ones + 1);
                return self.put(change.cast_unsigned(), bits);
            }
        }
        self.put(0b1111, 4);
        self.put(change.cast_unsigned(), 64);
    }

    fn put_value(&mut self, value: u64) {
        let changed = value ^ self.state.value;
        self.state.value = value;
        if changed == 0 {
            return self.put(0, 1);
        }
        let leading = changed.leading_zeros().min((1 << LEADING_BITS) - 1);
        let trailing = changed.trailing_zeros();
        let state = self.state;
        if state.has_bounds && leading >= state.leading && trailing >= state.trailing {
            self.put(0b10, 2);
            self.put(changed >> state.trailing, 64 - state.leading - state.trailing);
        } else {
            let length = 64 - leading - trailing;
            self.put(0b11, 2);
            self.put(u64::from(leading), LEADING_BITS);
            self.put(u64::from(length - 1), LENGTH_BITS);
            self.put(changed >> trailing, length);
            self.state = State { leading, trailing, has_bounds: true, ..state };
        }
    }

    /// Writes the lowest `count` of `bits`.
    fn put(&mut self, bits: u64, mut count: u32) {
        while count > 0 {
            if self.free == 0 {
                if self.bytes.len() == self.bytes.capacity() {
                    self.bytes.reserve_exact(GROWTH);
                }
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = count.min(self.free);
            count -= taken;
            self.free -= taken;
            let [.., part] = ((bits >> count) & ((1 << taken) - 1)).to_be_bytes();
            if let Some(last) = self.bytes.last_mut() {
                *last |= part << self.free;
            }
        }
    }
}

impl Pack {
    /// Gives back what was taken, in the order in which it was.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        Samples::new(&self.bytes, self.count)
    }
}

struct Samples<'a> {
    bytes: &'a [u8],
    /// The next bit.
    place: usize,
    count: u32,
    left: u32,
    state: State,
}

impl<'a> Samples<'a> {
    fn new(bytes: &'a [u8], count: u32) -> Self {
        Self { bytes, place: 0, count, left: count, state: State::default() }
    }

    /// Reads so many bits, at most 64.
    fn bits(&mut self, mut count: u32) -> Option<u64> {
        let mut bits = 0;
        while count > 0 {
            let byte = *self.bytes.get(self.place / 8)?;
            let used = u32::try_from(self.place % 8).ok()?;
            let taken = count.min(8 - used);
            let part = (byte << used) >> (8 - taken);
            bits = (bits << taken) | u64::from(part);
            count -= taken;
            self.place += usize::try_from(taken).ok()?;
        }
        Some(bits)
    }

    fn take_time(&mut self) -> Option<()> {
        let mut ones = 0;
        while ones < 4 && self.bits(1)? == 1 {
            ones += 1;
        }
        let change = match TIMES.iter().find(|(_, mark)| *mark == ones) {
            Some((bits, _)) => (self.bits(*bits)? << (64 - bits)).cast_signed() >> (64 - bits),
            None if ones == 0 => 0,
            None => self.bits(64)?.cast_signed(),
        };
        self.state.step = self.state.step.wrapping_add(change);
        self.state.at = self.state.at.wrapping_add(self.state.step);
        Some(())
    }

    fn take_value(&mut self) -> Option<()> {
        if self.bits(1)? == 0 {
            return Some(());
        }
        if self.bits(1)? == 1 {
            let leading = u32::try_from(self.bits(LEADING_BITS)?).ok()?;
            let length = u32::try_from(self.bits(LENGTH_BITS)?).ok()? + 1;
            self.state.leading = leading;
            self.state.trailing = 64_u32.checked_sub(leading + length)?;
        }
        let length = 64 - self.state.leading - self.state.trailing;
        self.state.value ^= self.bits(length)? << self.state.trailing;
        Some(())
    }
}

impl Iterator for Samples<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        if self.left == 0 {
            return None;
        }
        if self.left == self.count {
            self.state.at = self.bits(64)?.cast_signed();
            self.state.value = self.bits(64)?;
        } else {
            self.take_time()?;
            self.take_value()?;
        }
        self.left -= 1;
        let at = Timestamp::from_millis(self.state.at);
        Some(Sample { at, value: f64::from_bits(self.state.value) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::series::STALE;

    fn packed(samples: &[Sample]) -> Packer {
        let mut packer = Packer::default();
        for sample in samples {
            packer.push(*sample);
        }
        packer
    }

    fn time() -> impl Strategy<Value = i64> {
        prop_oneof![8 => 0_i64..10_000_000, 4 => (0_i64..200).prop_map(|n| n * 60_000), 1 => any::<i64>()]
    }

    fn value() -> impl Strategy<Value = f64> {
        let odd = [f64::NAN, STALE, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
        prop_oneof![
            (0_i32..50).prop_map(f64::from),
            (0_i32..100_000).prop_map(|n| f64::from(n) / 100.0),
            any::<u64>().prop_map(f64::from_bits),
            prop::sample::select(odd.to_vec()),
        ]
    }

    proptest! {
        #[test]
        fn what_is_taken_comes_back_bit_for_bit(pairs in prop::collection::vec((time(), value()), 0..300)) {
            let samples: Vec<Sample> = pairs
                .into_iter()
                .map(|(at, value)| Sample { at: Timestamp::from_millis(at), value })
                .collect();
            let mut packer = packed(&samples);
            prop_assert_eq!(packer.samples().collect::<Vec<_>>(), samples.clone());
            let pack = packer.finish();
            prop_assert_eq!(pack.samples().collect::<Vec<_>>(), samples);
            prop_assert_eq!((packer.count(), packer.samples().count()), (0, 0));
        }
    }

    #[test]
    fn what_is_regular_and_does_not_change_takes_two_bits() {
        let samples: Vec<Sample> =
            (0..802).map(|n| Sample { at: Timestamp::from_millis(n * 60_000), value: 1.5 }).collect();
        // Two whole ones, the second one's step and the third one's lack of a change of it.
        assert_eq!(packed(&samples).bytes.len(), 16 + 4 + 200);
    }
}
