//! What happens while a job is executed, read from its files.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::runs::executor::{Execution, ExecutorError, Happening};
use rezus_core::runs::stream::Event;
use rezus_core::runs::{SecretText, Stage};
use tokio::sync::watch;

use super::files::{RunFiles, blocking, system};
use super::run_log;
use super::watch::{Progress, Watch};
use super::wire::Control;

/// How much of the events is read at a time.
const PIECE: usize = 64 << 10;

/// How long what is written is gathered before it is read.
const GATHER: Duration = Duration::from_millis(20);

/// A job that is executed, or was. Dropped, the job goes on.
#[derive(Debug)]
pub(super) struct ProcessExecution {
    files: RunFiles,
    stage: Stage,
    watch: Arc<Watch>,
    progress: watch::Receiver<Progress>,
    events: VecDeque<Event>,
    /// What was read of the events, but for whole lines.
    rest: Vec<u8>,
    /// How far the events were read.
    offset: u64,
    /// The length of the log that was told last.
    log: u64,
}

impl ProcessExecution {
    pub(super) fn new(files: RunFiles, stage: Stage, watch: Arc<Watch>) -> Self {
        let progress = watch.progress();
        let (events, rest) = (VecDeque::new(), Vec::new());
        Self { files, stage, watch, progress, events, rest, offset: 0, log: 0 }
    }

    /// Reads what follows of the events, and the log's length. What was read is taken at once after the only wait.
    async fn look(&mut self) -> Result<(bool, u64), ExecutorError> {
        let (files, stage, offset) = (self.files.clone(), self.stage, self.offset);
        let (piece, log) = blocking(move || {
            let piece = read_piece(&files, stage, offset).map_err(system("read a run's events"))?;
            let log = run_log::length(&files).map_err(system("read a run's log"))?;
            Ok((piece, log.unwrap_or(0)))
        })
        .await?;
        self.offset += u64::try_from(piece.len()).unwrap_or(0);
        self.rest.extend_from_slice(&piece);
        let mut taken = 0;
        while let Some(length) = memchr::memchr(b'\n', &self.rest[taken..]) {
            // One that a later version has written in another way is none for this one.
            if let Ok(event) = serde_json::from_slice(&self.rest[taken..taken + length]) {
                self.events.push_back(event);
            }
            taken += length + 1;
        }
        self.rest.drain(..taken);
        Ok((!piece.is_empty(), log))
    }
}

#[async_trait]
impl Execution for ProcessExecution {
    async fn next(&mut self) -> Result<Happening, ExecutorError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Happening::Event(event));
            }
            // Before the files are read: what happens from here on is seen when this has changed.
            let ended = self.progress.borrow_and_update().ended;
            let (has_more, log) = self.look().await?;
            if log > self.log {
                self.log = log;
                return Ok(Happening::Log(log));
            }
            if has_more {
                continue;
            }
            if let Some(ending) = ended {
                return Ok(Happening::Ended(ending));
            }
            if self.progress.changed().await.is_err() && self.progress.borrow().ended.is_none() {
                let error = io::Error::other("nobody watches it any more");
                return Err(system("follow a run")(error));
            }
            // Programs write line by line: what comes close together is read together. The end does not wait.
            let ended = self.progress.wait_for(|progress| progress.ended.is_some());
            drop(tokio::time::timeout(GATHER, ended).await);
        }
    }

    fn interrupt(&self) {
        self.watch.control(Control::Interrupt);
    }

    fn kill(&self) {
        self.watch.control(Control::Kill);
    }

    fn add_secrets(&self, secrets: Vec<SecretText>) {
        self.watch.control(Control::secrets(&secrets));
    }
}

fn read_piece(files: &RunFiles, stage: Stage, offset: u64) -> io::Result<Vec<u8>> {
    let file = match File::open(files.events(stage)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut piece = vec![0; PIECE];
    let length = file.read_at(&mut piece, offset)?;
    piece.truncate(length);
    Ok(piece)
}
