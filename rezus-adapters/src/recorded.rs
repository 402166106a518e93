//! Reads clusters that are not there: what was recorded of one is replayed, as if it were now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::observed::{ClusterScraper, Failure, Reading, Recording, Session, Source, Target};

/// The longest recording that is read.
const LONGEST: u64 = 256 << 20;

/// Replays one source of recordings. A target's endpoint is the path of its recording, as [`Recording`] has it.
#[derive(Debug)]
pub struct RecordedScraper {
    source: Source,
    clock: Arc<dyn Clock>,
}

/// A recording while it is replayed.
#[derive(Debug)]
struct Replay {
    recording: Recording,
    source: Source,
    clock: Arc<dyn Clock>,
    began: Timestamp,
}

impl RecordedScraper {
    /// Replays a source, as if it were the clock's time.
    pub fn new(source: Source, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock }
    }
}

impl ClusterScraper for RecordedScraper {
    fn source(&self) -> Source {
        self.source
    }

    fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure> {
        let path = target.endpoints.first().map(PathBuf::from).unwrap_or_default();
        let recording = read(&path)?;
        let began = self.clock.now();
        Ok(Box::new(Replay { recording, source: self.source, clock: Arc::clone(&self.clock), began }))
    }
}

fn read(path: &Path) -> Result<Recording, Failure> {
    let rejected = |reason: String| Failure::Internal { detail: format!("the recording: {reason}") };
    let about = std::fs::metadata(path).map_err(|error| rejected(error.kind().to_string()))?;
    // Opening a pipe waits for whoever writes into it.
    if !about.is_file() || about.len() > LONGEST {
        return Err(rejected(format!("it is no file of up to {} MiB", LONGEST >> 20)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| rejected(error.kind().to_string()))?;
    Recording::parse(&text).map_err(|error| rejected(error.to_string()))
}

#[async_trait]
impl Session for Replay {
    async fn read(&mut self, _budget: Duration) -> Reading {
        let now = self.clock.now();
        let replayed = self.recording.at(self.source, now.since(self.began), now);
        replayed.unwrap_or_else(|| {
            let what = format!("{} in the recording", self.source);
            let failures = vec![("all".to_owned(), Failure::NotInstalled { what })];
            Reading { started: now, finished: now, facts: None, failures }
        })
    }

    async fn changed(&mut self) {
        std::future::pending::<()>().await;
    }
}
