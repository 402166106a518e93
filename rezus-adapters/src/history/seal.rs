//! What came in of a slot becomes a chunk of each series.

use std::vec;

use rezus_core::base::Timestamp;
use rezus_core::series::Labels;

use super::chunk;
use super::error::FileError;
use super::file::ChunkFile;
use super::files::Files;
use super::name::{DAY, Name, SLOT, begin};
use crate::ring::{Heads, in_order};

/// How many series a step seals: a tenth of a second or so.
const SERIES_A_STEP: usize = 1_000;

/// A slot that is being sealed. Doing so again, because it came to no end, changes nothing.
pub(super) struct Seal {
    slot: i64,
    /// Where what is sealed is kept until it is.
    tails: Vec<Name>,
    labels: vec::IntoIter<Labels>,
    name: Name,
    file: ChunkFile,
}

impl Seal {
    /// Begins to seal a slot, of which these tails hold all that is in memory.
    pub(super) fn begin(
        files: &Files,
        heads: &Heads,
        slot: i64,
        tails: Vec<Name>,
    ) -> Result<Self, (Name, FileError)> {
        let name = Name::sealed_at(slot);
        let file = files.write(name).map_err(|error| (name, error))?;
        Ok(Self { slot, tails, labels: heads.all().into_iter(), name, file })
    }

    /// Seals some series; returns what is left to do.
    pub(super) fn step(self, files: &Files, heads: &Heads) -> Result<Option<Self>, (Name, FileError)> {
        let name = self.name;
        self.seal(files, heads).map_err(|error| (name, error))
    }

    fn seal(mut self, files: &Files, heads: &Heads) -> Result<Option<Self>, FileError> {
        if self.labels.len() == 0 {
            if !self.file.settle()? {
                return Ok(Some(self));
            }
            self.file.close()?;
            files.sync()?;
            if !files.has(self.name) {
                // Somebody found it damaged and put it aside meanwhile: the tails are all there is, and are sealed anew.
                return Ok(None);
            }
            for tail in self.tails {
                files.remove(tail)?;
            }
            return Ok(None);
        }
        let part = u32::try_from((self.slot - begin(self.slot, DAY)) / SLOT).unwrap_or_default();
        let last = Timestamp::from_millis(self.slot + SLOT - 1);
        self.file.begin()?;
        for labels in self.labels.by_ref().take(SERIES_A_STEP) {
            let came = heads.read(&labels, Timestamp::from_millis(self.slot), last);
            if came.is_empty() {
                continue;
            }
            let id = self.file.find_or_add(&labels)?;
            let mut samples = self.file.samples(part, id)?;
            samples.extend(came);
            in_order(&mut samples);
            self.file.put(part, id, chunk::of_samples(&samples)?)?;
        }
        self.file.commit()?;
        Ok(Some(self))
    }
}
