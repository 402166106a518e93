//! Values over time.

use std::time::Duration;

use crate::base::Timestamp;

/// The value that says that a series ended: Prometheus' staleness marker, a NaN of its own bits.
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// One value of a series.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// What.
    pub value: f64,
}

impl Sample {
    /// Tells whether the series ended here.
    pub const fn is_stale(&self) -> bool {
        self.value.to_bits() == STALE.to_bits()
    }
}

/// Bit for bit: a NaN is itself.
impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.value.to_bits()) == (other.at, other.value.to_bits())
    }
}

/// What the samples of a span of time come to, those left out that are no number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rollup {
    /// Where the span begins: a multiple of its width since the epoch. It ends just before the next one's begin.
    pub from: Timestamp,
    /// How long it is.
    pub width: Duration,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// All values together.
    pub sum: f64,
    /// How many there were; never zero.
    pub count: u64,
    /// The last value.
    pub last: f64,
    /// When that was.
    pub last_at: Timestamp,
    /// By how much a counter rose since the last value before the span, or since the first one within where there was none
    /// before: resets counted. Of no meaning for what is no counter.
    pub increase: f64,
}

/// Returns by how much a counter rose between two values that follow each other: one that fell began anew at zero.
pub fn counter_increase(before: f64, after: f64) -> f64 {
    if after < before { after } else { after - before }
}
