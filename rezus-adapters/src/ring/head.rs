//! What is in memory of one series.

use rezus_core::base::Timestamp;
use rezus_core::series::{Pack, Packer, Sample};

/// How many samples a pack holds. The fewer, the sooner what is old can be dropped; the more, the less each costs.
const SAMPLES_A_PACK: u32 = 60;

/// The samples of one series, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Head {
    /// Which one it is: no other series, nor this one when it comes again after it was forgotten, has the same.
    #[cfg_attr(not(feature = "history"), expect(dead_code, reason = "tails know series by it"))]
    pub(crate) id: u32,
    /// The time of the newest sample, of those too that are only announced.
    pub(crate) newest: Option<Timestamp>,
    packs: Vec<Whole>,
    open: Packer,
    span: Span,
}

/// A pack that is full.
#[derive(Debug)]
struct Whole {
    pack: Pack,
    span: Span,
}

/// Between which times samples are, both included; of none, between none.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: i64,
    to: i64,
}

impl Span {
    const EMPTY: Self = Self { from: i64::MAX, to: i64::MIN };

    fn widen(&mut self, at: i64) {
        self.from = self.from.min(at);
        self.to = self.to.max(at);
    }

    fn meets(self, from: Timestamp, to: Timestamp) -> bool {
        self.from <= to.as_millis() && self.to >= from.as_millis()
    }
}

impl Head {
    /// Makes one without samples.
    pub(crate) fn new(id: u32) -> Self {
        Self { id, newest: None, packs: Vec::new(), open: Packer::default(), span: Span::EMPTY }
    }

    /// Takes a sample. Where a pack is full, those that end before `floor` are dropped.
    pub(crate) fn push(&mut self, sample: Sample, floor: Timestamp) {
        if self.open.count() >= SAMPLES_A_PACK {
            let whole = Whole { pack: self.open.finish(), span: self.span };
            self.packs.retain(|old| old.span.to >= floor.as_millis());
            self.packs.reserve_exact(1);
            self.packs.push(whole);
            self.span = Span::EMPTY;
        }
        self.open.push(sample);
        self.span.widen(sample.at.as_millis());
        self.newest = self.newest.max(Some(sample.at));
    }

    /// Takes back what was announced and never came.
    #[cfg(feature = "history")]
    pub(crate) fn settle(&mut self) {
        let newest = self.packs.iter().map(|whole| whole.span.to).max();
        let newest = newest.max((self.open.count() > 0).then_some(self.span.to));
        self.newest = newest.map(Timestamp::from_millis);
    }

    /// Drops the packs that end before `floor`; tells whether any sample is left.
    pub(crate) fn forget(&mut self, floor: Timestamp) -> bool {
        self.packs.retain(|whole| whole.span.to >= floor.as_millis());
        if self.span.to < floor.as_millis() {
            drop(self.open.finish());
            self.span = Span::EMPTY;
        }
        self.open.count() > 0 || !self.packs.is_empty()
    }

    /// Returns the samples between two times, both included, by time; of those of one time the first that came.
    pub(crate) fn read(&self, from: Timestamp, to: Timestamp) -> Vec<Sample> {
        let mut found = Vec::new();
        for whole in self.packs.iter().filter(|whole| whole.span.meets(from, to)) {
            found.extend(whole.pack.samples().filter(|sample| (from..=to).contains(&sample.at)));
        }
        if self.span.meets(from, to) {
            found.extend(self.open.samples().filter(|sample| (from..=to).contains(&sample.at)));
        }
        in_order(&mut found);
        found
    }

    /// Tells whether there is a sample between two times, both included.
    pub(crate) fn has(&self, from: Timestamp, to: Timestamp) -> bool {
        let is_within = |sample: Sample| (from..=to).contains(&sample.at);
        self.packs.iter().any(|whole| whole.span.meets(from, to) && whole.pack.samples().any(is_within))
            || (self.span.meets(from, to) && self.open.samples().any(is_within))
    }
}

/// Puts samples into the order of time; of those of one time the first one stays.
pub(crate) fn in_order(samples: &mut Vec<Sample>) {
    if !samples.is_sorted_by(|a, b| a.at < b.at) {
        samples.sort_by_key(|sample| sample.at);
        samples.dedup_by_key(|sample| sample.at);
    }
}
