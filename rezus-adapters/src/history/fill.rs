//! Days of which rollups of the finer tier are all that is left become rollups of the coarser one, where that lost them.

use rezus_core::series::{Labels, widen};

use super::compact::{Failure, SERIES_A_STEP, add, of, part_of};
use super::file::ChunkFile;
use super::files::Files;
use super::name::{COARSE, FINE, Name};

/// A week that is being filled in. Doing so again, because it came to no end, changes nothing.
pub(super) struct Fill {
    fine: Name,
    coarse: Name,
    days: Vec<i64>,
    /// Up to which series it was gone through.
    after: Option<Labels>,
    from: ChunkFile,
    to: ChunkFile,
}

impl Fill {
    /// Begins to fill in days of a week.
    pub(super) fn begin(files: &Files, fine: Name, days: Vec<i64>) -> Result<Self, Failure> {
        let coarse = Name::coarse_at(fine.span().start);
        let from = ChunkFile::read(&files.path(fine)).map_err(of(fine))?;
        let to = files.write(coarse).map_err(of(coarse))?;
        Ok(Self { fine, coarse, days, after: None, from, to })
    }

    /// Tells whether a file is the one that rollups are written to.
    pub(super) fn writes_to(&self, name: Name) -> bool {
        name == self.coarse
    }

    /// Fills in some series; returns what is left to do.
    pub(super) fn step(mut self, files: &Files) -> Result<Option<Self>, Failure> {
        let (fine, coarse) = (self.fine, self.coarse);
        let page = self.from.page(self.after.as_ref(), SERIES_A_STEP).map_err(of(fine))?;
        let Some((last, _)) = page.last() else {
            for day in &self.days {
                self.to.add_day(*day).map_err(of(coarse))?;
            }
            if !self.to.settle().map_err(of(coarse))? {
                return Ok(Some(self));
            }
            self.to.close().map_err(of(coarse))?;
            self.days.into_iter().for_each(|day| files.add_day(coarse, day));
            return Ok(None);
        };
        self.after = Some(last.clone());
        self.to.begin().map_err(of(coarse))?;
        for (labels, id) in &page {
            for day in &self.days {
                let rolled = self.from.rollups(part_of(fine, *day), *id, FINE).map_err(of(fine))?;
                add(&mut self.to, part_of(coarse, *day), labels, widen(&rolled, COARSE), COARSE)
                    .map_err(of(coarse))?;
            }
        }
        self.to.commit().map_err(of(coarse))?;
        Ok(Some(self))
    }
}
