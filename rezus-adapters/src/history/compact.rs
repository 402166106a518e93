//! A day that has ended becomes one chunk of each series, and rollups.

use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::{Labels, Rollup, Sample, roll_up};

use super::chunk;
use super::error::FileError;
use super::file::{Care, ChunkFile};
use super::files::Files;
use super::name::{COARSE, DAY, FINE, Name, SLOT, begin};
use crate::ring::in_order;

/// How many series a step does: a quarter of a second or so.
pub(super) const SERIES_A_STEP: i64 = 500;

/// How many days back the last value is looked for that a counter's increase counts from.
const DAYS_BACK: i64 = 7;

/// A day that is being compacted. Doing so again, because it came to no end, changes nothing.
pub(super) struct Compact {
    /// Where it begins.
    day: i64,
    /// What there is of it: earlier, where samples came for it again later, and sealed. Earlier ones come first.
    sources: Vec<Source>,
    /// Which of those is gone through, and up to which series it was.
    nth: usize,
    after: Option<Labels>,
    target: ChunkFile,
    fine: ChunkFile,
    coarse: ChunkFile,
    /// The week before, where there is one.
    earlier: Option<Source>,
}

struct Source {
    name: Name,
    file: ChunkFile,
}

/// Of which file an error is, and what it is.
pub(super) type Failure = (Name, FileError);

/// Says of which file an error is.
pub(super) fn of(name: Name) -> impl Fn(FileError) -> Failure {
    move |error| (name, error)
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
        let name = Name::raw_at(day);
        let new = files.path_of_new(name);
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err((name, error.into())),
            _ => {}
        }
        let target = ChunkFile::write(&new, Care::None).map_err(of(name))?;
        let tier = |name| {
            let file = ChunkFile::write(&files.path(name), Care::Log).map_err(of(name))?;
            files.add(name);
            Ok(file)
        };
        let (fine, coarse) = (tier(Name::fine_at(day))?, tier(Name::coarse_at(day))?);
        let name = Name::fine_at(Name::fine_at(day).span().start - 1);
        let earlier = if files.has(name) {
            Some(Source { name, file: ChunkFile::read(&files.path(name)).map_err(of(name))? })
        } else {
            None
        };
        Ok(Self { day, sources, nth: 0, after: None, target, fine, coarse, earlier })
    }

    /// Tells whether a file is one that rollups are written to.
    pub(super) fn writes_to(&self, name: Name) -> bool {
        name == Name::fine_at(self.day) || name == Name::coarse_at(self.day)
    }

    /// Compacts some series; returns what is left to do.
    pub(super) fn step(mut self, files: &Files) -> Result<Option<Self>, Failure> {
        let (fine, coarse) = (Name::fine_at(self.day), Name::coarse_at(self.day));
        let Some(source) = self.sources.get(self.nth) else {
            self.fine.add_day(self.day).map_err(of(fine))?;
            self.coarse.add_day(self.day).map_err(of(coarse))?;
            let is_settled =
                self.fine.settle().map_err(of(fine))? && self.coarse.settle().map_err(of(coarse))?;
            return if is_settled { self.finish(files).map(|()| None) } else { Ok(Some(self)) };
        };
        let page = source.file.page(self.after.as_ref(), SERIES_A_STEP).map_err(of(source.name))?;
        let Some((last, _)) = page.last() else {
            (self.nth, self.after) = (self.nth + 1, None);
            return Ok(Some(self));
        };
        self.after = Some(last.clone());
        let raw = Name::raw_at(self.day);
        self.target.begin().map_err(of(raw))?;
        self.fine.begin().map_err(of(fine))?;
        self.coarse.begin().map_err(of(coarse))?;
        for (labels, _) in &page {
            // Those of the first source are done already.
            if self.nth > 0 && self.target.find(labels).map_err(of(raw))?.is_some() {
                continue;
            }
            let samples = self.samples(labels)?;
            if samples.is_empty() {
                continue;
            }
            let before = self.before(labels)?;
            let mut write = || {
                let id = self.target.find_or_add(labels)?;
                self.target.put(0, id, chunk::of_samples(&samples)?)
            };
            write().map_err(of(raw))?;
            for (file, name, width) in [(&mut self.fine, fine, FINE), (&mut self.coarse, coarse, COARSE)] {
                add(file, part_of(name, self.day), labels, roll_up(&samples, width, before), width)
                    .map_err(of(name))?;
            }
        }
        // The rollups first: they are there when the day is.
        self.fine.commit().map_err(of(fine))?;
        self.coarse.commit().map_err(of(coarse))?;
        self.target.commit().map_err(of(raw))?;
        Ok(Some(self))
    }

    /// Puts the day's file into its place, now that its rollups are safe.
    fn finish(self, files: &Files) -> Result<(), Failure> {
        let (fine, coarse) = (Name::fine_at(self.day), Name::coarse_at(self.day));
        self.fine.close().map_err(of(fine))?;
        self.coarse.close().map_err(of(coarse))?;
        drop(self.sources);
        files.add_day(fine, self.day);
        files.add_day(coarse, self.day);
        if !(files.has(fine) && files.has(coarse)) {
            // Somebody found one damaged and put it aside meanwhile: the day is compacted anew.
            return Ok(());
        }
        let name = Name::raw_at(self.day);
        self.target.close().and_then(|()| files.finish(name, &[Name::sealed_at(self.day)])).map_err(of(name))
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
        let (fine, coarse) = (Name::fine_at(self.day), Name::coarse_at(self.day));
        let mut found = last(&mut self.fine, fine, labels, self.day).map_err(of(fine))?;
        if let (None, Some(Source { name, file })) = (&found, &mut self.earlier) {
            found = last(file, *name, labels, self.day).map_err(of(*name))?;
        }
        let yesterday = Timestamp::from_millis(self.day - DAY);
        if found.is_none_or(|found| found.last_at < yesterday) {
            // What is of the days between may be in the coarser tier alone.
            let other = last(&mut self.coarse, coarse, labels, self.day).map_err(of(coarse))?;
            found = found.into_iter().chain(other).max_by_key(|rollup| rollup.last_at);
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
    all.extend(rolled);
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
