//! A day that has ended becomes one chunk of each series, and rollups.

use std::collections::BTreeSet;
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::{Labels, Rollup, Sample, roll_up};

use super::chunk;
use super::error::FileError;
use super::file::ChunkFile;
use super::files::Files;
use super::name::{COARSE, DAY, FINE, Name, SLOT, begin};
use crate::ring::in_order;

/// How many series a step does: a quarter of a second or so.
pub(super) const SERIES_A_STEP: i64 = 500;

/// How many days back the last value is looked for that a counter's increase counts from.
const DAYS_BACK: i64 = 7;

/// A day that is being compacted. Doing so again, because it came to no end, changes nothing.
///
/// What comes for a day whose samples are gone already, and whose rollups are there, stands for no whole day: there is no file of
/// it, and its rollups only add to those there are.
pub(super) struct Compact {
    /// Where it begins.
    day: i64,
    /// What there is of it: earlier, where samples came for it again later, and sealed. Earlier ones come first.
    sources: Vec<Source>,
    /// Which of those is gone through, and up to which series it was.
    nth: usize,
    after: Option<Labels>,
    /// What becomes the day's file; none where rollups are only added to.
    target: Option<ChunkFile>,
    tiers: Vec<Tier>,
    /// The week before, where there is one.
    earlier: Option<Source>,
}

struct Source {
    name: Name,
    file: ChunkFile,
}

/// A file that rollups of the day are written to.
struct Tier {
    name: Name,
    width: Duration,
    file: ChunkFile,
}

/// Of which file an error is, and what it is.
pub(super) type Failure = (Name, FileError);

/// Says of which file an error is.
pub(super) fn of(name: Name) -> impl Fn(FileError) -> Failure {
    move |error| (name, error)
}

/// Says of which file an error is not: of the one that it is to take the place of.
fn unfinished(name: Name) -> impl Fn(FileError) -> Failure {
    move |error| (name, FileError::Unfinished(Box::new(error)))
}

impl Compact {
    /// Begins to compact a day.
    pub(super) fn begin(files: &Files, day: i64) -> Result<Self, Failure> {
        let mut sources = Vec::new();
        for name in [Name::raw_at(day), Name::sealed_at(day)] {
            if files.has(name) {
                sources.push(Source { name, file: ChunkFile::read(&files.path(name)).map_err(of(name))? });
            }
        }
        let raw = Name::raw_at(day);
        let mut tiers = vec![(Name::fine_at(day), FINE), (Name::coarse_at(day), COARSE)];
        let mut having = Vec::new();
        if !files.has(raw) {
            for (name, width) in &tiers {
                if files.days(*name).map_err(of(*name))?.contains(&day) {
                    having.push((*name, *width));
                }
            }
        }
        let target = if having.is_empty() {
            Some(files.make(raw).map_err(unfinished(raw))?)
        } else {
            // One that lost the day is filled of the finer one, or shall not hide what the coarser one has.
            tiers = having;
            None
        };
        let write = |(name, width)| {
            let file = files.write(name).map_err(of(name))?;
            Ok(Tier { name, width, file })
        };
        let tiers = tiers.into_iter().map(write).collect::<Result<_, _>>()?;
        let name = Name::fine_at(Name::fine_at(day).span().start - 1);
        let earlier = if files.has(name) {
            Some(Source { name, file: ChunkFile::read(&files.path(name)).map_err(of(name))? })
        } else {
            None
        };
        Ok(Self { day, sources, nth: 0, after: None, target, tiers, earlier })
    }

    /// Tells whether a file is one that rollups are written to.
    pub(super) fn writes_to(&self, name: Name) -> bool {
        self.tiers.iter().any(|tier| tier.name == name)
    }

    /// Compacts some series; returns what is left to do.
    pub(super) fn step(mut self, files: &Files) -> Result<Option<Self>, Failure> {
        let Some(source) = self.sources.get(self.nth) else {
            for tier in &self.tiers {
                if !tier.file.settle().map_err(of(tier.name))? {
                    return Ok(Some(self));
                }
            }
            return self.finish(files).map(|()| None);
        };
        let page = source.file.page(self.after.as_ref(), SERIES_A_STEP).map_err(of(source.name))?;
        let Some((last, _)) = page.last() else {
            (self.nth, self.after) = (self.nth + 1, None);
            return Ok(Some(self));
        };
        self.after = Some(last.clone());
        let raw = Name::raw_at(self.day);
        if let Some(target) = &self.target {
            target.begin().map_err(unfinished(raw))?;
        }
        for tier in &self.tiers {
            tier.file.begin().map_err(of(tier.name))?;
        }
        for (labels, _) in &page {
            // Those of the first source are done already.
            if let Some(target) = self.target.as_ref().filter(|_| self.nth > 0)
                && target.find(labels).map_err(unfinished(raw))?.is_some()
            {
                continue;
            }
            let samples = self.samples(labels)?;
            if samples.is_empty() {
                continue;
            }
            let before = self.before(labels)?;
            if let Some(target) = &mut self.target {
                let mut write = || {
                    let id = target.find_or_add(labels)?;
                    target.put(0, id, chunk::of_samples(&samples)?)
                };
                write().map_err(unfinished(raw))?;
            }
            let put = if self.target.is_some() { add } else { gain };
            for Tier { name, width, file } in &mut self.tiers {
                let rolled = roll_up(&samples, *width, before);
                put(file, part_of(*name, self.day), labels, rolled, *width).map_err(of(*name))?;
            }
        }
        for tier in &self.tiers {
            tier.file.commit().map_err(of(tier.name))?;
        }
        if let Some(target) = &self.target {
            target.commit().map_err(unfinished(raw))?;
        }
        Ok(Some(self))
    }

    /// Puts the day's file into its place, now that its rollups are safe.
    fn finish(self, files: &Files) -> Result<(), Failure> {
        drop(self.sources);
        if self.tiers.iter().any(|tier| !files.has(tier.name)) {
            // Somebody found one damaged and put it aside meanwhile: the day is compacted anew.
            return Ok(());
        }
        let (raw, sealed) = (Name::raw_at(self.day), Name::sealed_at(self.day));
        match self.target {
            Some(target) => {
                target.close().and_then(|()| files.finish(raw, &[sealed])).map_err(unfinished(raw))?;
            }
            None => files.remove(sealed).map_err(of(sealed))?,
        }
        // Last: where a tier has a day, and there is no file of it, what is sealed of it came later. The coarser one first: where only
        // that has a day, what wants finer ones is given its samples.
        for Tier { name, file, .. } in self.tiers.into_iter().rev() {
            file.add_day(self.day).and_then(|()| file.close()).map_err(of(name))?;
            files.add_day(name, self.day);
        }
        Ok(())
    }

    /// The samples that there are of a series.
    fn samples(&mut self, labels: &Labels) -> Result<Vec<Sample>, Failure> {
        let mut samples = Vec::new();
        for Source { name, file } in &mut self.sources {
            let mut read = || {
                if let Some(id) = file.find(labels)? {
                    for part in parts(*name, name.span()) {
                        samples.extend(file.samples(part, id)?);
                    }
                }
                Ok(())
            };
            read().map_err(of(*name))?;
        }
        in_order(&mut samples);
        Ok(samples)
    }

    /// The last value of a series before the day.
    fn before(&mut self, labels: &Labels) -> Result<Option<f64>, Failure> {
        let yesterday = Timestamp::from_millis(self.day - DAY);
        let tiers = self.tiers.iter_mut().map(|tier| (tier.name, &mut tier.file));
        let earlier = self.earlier.iter_mut().map(|source| (source.name, &mut source.file));
        let mut found: Option<Rollup> = None;
        for (name, file) in tiers.chain(earlier) {
            // What is of the days between may be in another one alone.
            if found.is_none_or(|found| found.last_at < yesterday) {
                let other = last(file, name, labels, self.day).map_err(of(name))?;
                found = found.into_iter().chain(other).max_by_key(|rollup| rollup.last_at);
            }
        }
        Ok(found.map(|rollup| rollup.last))
    }
}

/// The last rollup that a series has in a file of some days before one.
fn last(file: &mut ChunkFile, name: Name, labels: &Labels, day: i64) -> Result<Option<Rollup>, FileError> {
    let span = name.span();
    let (first, end) = ((day - DAYS_BACK * DAY).max(span.start), day.min(span.end));
    let Some(id) = file.find(labels)?.filter(|_| first < end) else { return Ok(None) };
    let width = if matches!(name, Name::Fine { .. }) { FINE } else { COARSE };
    for part in parts(name, first..end).rev() {
        let rolled = file.rollups(part, id, width)?;
        if let Some(last) = rolled.into_iter().rev().find(|rollup| rollup.from.as_millis() < day) {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// Adds the rollups of a day to those of other days in the same part.
pub(super) fn add(
    file: &mut ChunkFile,
    part: u32,
    labels: &Labels,
    rolled: Vec<Rollup>,
    width: Duration,
) -> Result<(), FileError> {
    let Some(day) = rolled.first().map(|first| begin(first.from.as_millis(), DAY)) else { return Ok(()) };
    let id = file.find_or_add(labels)?;
    let mut all = file.rollups(part, id, width)?;
    all.retain(|rollup| begin(rollup.from.as_millis(), DAY) != day);
    put(file, part, id, all, rolled)
}

/// Adds the rollups of spans that there are none of: those there are were made of more.
fn gain(
    file: &mut ChunkFile,
    part: u32,
    labels: &Labels,
    mut rolled: Vec<Rollup>,
    width: Duration,
) -> Result<(), FileError> {
    let id = file.find_or_add(labels)?;
    let all = file.rollups(part, id, width)?;
    let there: BTreeSet<Timestamp> = all.iter().map(|rollup| rollup.from).collect();
    rolled.retain(|rollup| !there.contains(&rollup.from));
    if rolled.is_empty() { Ok(()) } else { put(file, part, id, all, rolled) }
}

fn put(
    file: &mut ChunkFile,
    part: u32,
    id: i64,
    mut all: Vec<Rollup>,
    more: Vec<Rollup>,
) -> Result<(), FileError> {
    all.extend(more);
    all.sort_by_key(|rollup| rollup.from);
    file.put(part, id, chunk::of_rollups(&all)?)
}

/// Which part of a file a time is in.
pub(super) fn part_of(name: Name, at: i64) -> u32 {
    let length = match name {
        Name::Tail { .. } | Name::Sealed { .. } => SLOT,
        Name::Raw { .. } | Name::Fine { .. } => DAY,
        // Of 24 rollups alone more would be said of how they are packed than of what they are.
        Name::Coarse { .. } => 7 * DAY,
    };
    u32::try_from((at - name.span().start) / length).unwrap_or_default()
}

/// Which parts of a file meet a span of its time.
pub(super) fn parts(name: Name, span: std::ops::Range<i64>) -> std::ops::RangeInclusive<u32> {
    part_of(name, span.start)..=part_of(name, span.end - 1)
}
