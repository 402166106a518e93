//! Reading what is in memory and what is in files as one.

use std::collections::{BTreeMap, BTreeSet};

use rezus_core::base::Timestamp;
use rezus_core::series::{Labels, Rollup, Sample, Selection, Series, SeriesError, roll_up};

use super::Inner;
use super::compact::parts;
use super::error::FileError;
use super::file::ChunkFile;
use super::name::{COARSE, DAY, FINE, Name, begin};
use super::plan::{Asked, Plan, plan};
use crate::ring::in_order;

/// How often a read begins anew because a file that it was about to read is gone: another one stands for it then.
const TRIES: usize = 10;

/// How many series are read of a file in one transaction: as long as one lasts, the file's log only grows.
const SERIES_A_TRANSACTION: usize = 256;

type Failure = (Name, FileError);

/// Why a read came to no end.
enum Stop {
    TooMany,
    Failed(Name, FileError),
}

impl From<Failure> for Stop {
    fn from((name, error): Failure) -> Self {
        Self::Failed(name, error)
    }
}

/// Gives the series that are meant.
pub(super) fn select(inner: &Inner, selection: &Selection) -> Result<Vec<Series>, SeriesError> {
    again_where_files_are_gone(inner, selection.limit, || {
        // What is in memory first: what is dropped from there afterwards is in files.
        let hot = inner.heads.select(selection).map_err(|_| Stop::TooMany)?;
        let Some((plan, selection)) = cold(inner, selection)? else { return Ok(hot) };
        let found = files(inner, &plan, &selection, &hot)?;
        let given =
            found.into_values().filter(|series| !(series.rolled.is_empty() && series.samples.is_empty()));
        Ok(given.collect())
    })
}

/// Gives the labels of the series that are meant.
pub(super) fn list(inner: &Inner, selection: &Selection) -> Result<Vec<Labels>, SeriesError> {
    let found = again_where_files_are_gone(inner, selection.limit, || {
        let mut found: BTreeSet<Labels> = inner.heads.list(selection).into_iter().collect();
        let Some((plan, selection)) = cold(inner, selection)? else { return Ok(found) };
        let names = plan.rolled.iter().map(|(name, _)| *name).chain(plan.raw);
        for name in names {
            let labels = ChunkFile::read(&inner.files.path(name)).and_then(|file| file.meant(&selection));
            found.extend(
                labels.map_err(|error| Stop::Failed(name, error))?.into_iter().map(|(labels, _)| labels),
            );
            if found.len() > selection.limit {
                return Err(Stop::TooMany);
            }
        }
        Ok(found)
    })?;
    if found.len() > selection.limit {
        return Err(SeriesError::TooMany { limit: selection.limit });
    }
    Ok(found.into_iter().collect())
}

/// What is to be read of files, if anything.
fn cold(inner: &Inner, selection: &Selection) -> Result<Option<(Plan, Selection)>, Stop> {
    let hot_from = inner.hot_from();
    let (from, to) = (selection.from, selection.to);
    if from >= hot_from || from > to {
        return Ok(None);
    }
    let asked = Asked {
        from: from.as_millis(),
        to: to.as_millis(),
        width: selection.width,
        hot_from: hot_from.as_millis(),
    };
    let days_of = |name| inner.files.days(name).map_err(|error| Stop::Failed(name, error));
    Ok(Some((plan(&inner.files.list(), asked, days_of)?, selection.clone())))
}

fn again_where_files_are_gone<T>(
    inner: &Inner,
    limit: usize,
    read: impl Fn() -> Result<T, Stop>,
) -> Result<T, SeriesError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let (name, error) = match read() {
            Ok(found) => return Ok(found),
            Err(Stop::TooMany) => return Err(SeriesError::TooMany { limit }),
            Err(Stop::Failed(name, error)) => (name, error),
        };
        let is_gone = !inner.files.has(name);
        let is_useless = error.is_damage() || !inner.files.path(name).exists();
        if tries >= TRIES || !(is_gone || is_useless) {
            return Err(error.while_being("read"));
        }
        if !is_gone {
            inner.files.set_aside(name, error).map_err(|error| error.while_being("read"))?;
        }
    }
}

/// Reads files, and puts what is in memory behind it.
fn files(
    inner: &Inner,
    plan: &Plan,
    selection: &Selection,
    hot: &[Series],
) -> Result<BTreeMap<Labels, Series>, Stop> {
    let mut found = Found { series: BTreeMap::new(), left: selection.limit };
    for (name, span) in &plan.rolled {
        let width = if matches!(name, Name::Fine { .. }) { FINE } else { COARSE };
        let is_within = |rollup: &Rollup| {
            span.contains(&rollup.from.as_millis())
                && rollup.from.after(width) > selection.from
                && rollup.from <= selection.to
        };
        found.read(inner, *name, selection, |file, id| {
            let mut rolled = Vec::new();
            for part in parts(*name, span.clone()) {
                rolled.extend(file.rollups(part, id, width)?.into_iter().filter(is_within));
            }
            Ok((rolled, Vec::new()))
        })?;
    }
    let until = Timestamp::from_millis(plan.rolled_until);
    let is_given = |sample: &Sample| {
        (selection.from..=selection.to).contains(&sample.at)
            && (sample.at >= until || plan.open.contains(&begin(sample.at.as_millis(), DAY)))
    };
    for name in &plan.raw {
        let own = name.span();
        let last = selection.to.as_millis().min(own.end - 1);
        let span = selection.from.as_millis().max(own.start)..last.max(own.start) + 1;
        found.read(inner, *name, selection, |file, id| {
            let mut samples = Vec::new();
            for part in parts(*name, span.clone()) {
                samples.extend(file.samples(part, id)?);
            }
            samples.retain(is_given);
            Ok((Vec::new(), samples))
        })?;
    }
    for series in hot {
        let samples = series.samples.iter().copied().filter(is_given).collect();
        found.add(&series.labels, Vec::new(), samples)?;
    }
    for series in found.series.values_mut() {
        in_order(&mut series.samples);
        roll_up_before(until, series);
    }
    Ok(found.series)
}

/// Rolls up samples of before a time, where there are no rollups of theirs yet.
fn roll_up_before(until: Timestamp, series: &mut Series) {
    let mut before: Vec<Sample> =
        series.samples.drain(..series.samples.partition_point(|sample| sample.at < until)).collect();
    before.retain(|sample| {
        let begun = series.rolled.partition_point(|rollup| rollup.from <= sample.at);
        let last = series.rolled.get(..begun).and_then(<[Rollup]>::last);
        last.is_none_or(|last| sample.at >= last.from.after(last.width))
    });
    series.rolled.extend(roll_up(&before, FINE, None));
    series.rolled.sort_by_key(|rollup| rollup.from);
}

/// What was found so far, and how much more there may be.
struct Found {
    series: BTreeMap<Labels, Series>,
    left: usize,
}

impl Found {
    fn read(
        &mut self,
        inner: &Inner,
        name: Name,
        selection: &Selection,
        mut read: impl FnMut(&mut ChunkFile, i64) -> Result<(Vec<Rollup>, Vec<Sample>), FileError>,
    ) -> Result<(), Stop> {
        let of = |error| (name, error);
        let mut file = ChunkFile::read(&inner.files.path(name)).map_err(of)?;
        let meant = file.meant(selection).map_err(of)?;
        for series in meant.chunks(SERIES_A_TRANSACTION) {
            file.begin().map_err(of)?;
            for (labels, id) in series {
                let (rolled, samples) = read(&mut file, *id).map_err(of)?;
                self.add(labels, rolled, samples)?;
            }
            file.commit().map_err(of)?;
        }
        Ok(())
    }

    fn add(&mut self, labels: &Labels, rolled: Vec<Rollup>, samples: Vec<Sample>) -> Result<(), Stop> {
        let count = rolled.len() + samples.len();
        if count == 0 {
            return Ok(());
        }
        self.left = self.left.checked_sub(count).ok_or(Stop::TooMany)?;
        let series = self.series.entry(labels.clone()).or_insert_with(|| Series {
            labels: labels.clone(),
            rolled: Vec::new(),
            samples: Vec::new(),
        });
        series.rolled.extend(rolled);
        series.samples.extend(samples);
        Ok(())
    }
}
