//! What a program writes, brought into the run's log and the stage's events as it comes: without secrets, and in
//! constant memory whatever comes.

use std::fs::File;
use std::io::{self, Write as _};

use memchr::memchr;
use rezus_core::runs::stream::{self, Event};
use rezus_core::runs::{Redactor, SecretText, Stage};

use super::files::{RunFiles, append};

/// A longer line is text, whatever it says, and goes through in pieces.
const LONGEST_LINE: usize = 1 << 20;

/// So many events are kept, whatever they are.
const MANY_EVENTS: u64 = 200_000;

/// So many bytes of events are kept: of those beyond [`MANY_EVENTS`] the ones that tell what was done, and what became
/// of it. That is a million resources.
const ALL_EVENTS: u64 = 256 << 20;

/// Where the output goes.
pub(super) struct Spool {
    log: File,
    length: u64,
    limit: u64,
    cut: u64,
    events: File,
    events_count: u64,
    events_length: u64,
    events_dropped: u64,
    redactor: Redactor,
    line: Vec<u8>,
    is_overlong: bool,
    is_at_line_start: bool,
    to_log: Vec<u8>,
    to_events: Vec<u8>,
}

impl Spool {
    /// Opens the log at its end, and the stage's events.
    pub(super) fn open(
        files: &RunFiles,
        stage: Stage,
        limit: u64,
        secrets: &[SecretText],
    ) -> io::Result<Self> {
        let log = append(&files.log())?;
        let events = append(&files.events(stage))?;
        Ok(Self {
            length: log.metadata()?.len(),
            log,
            limit,
            cut: 0,
            events_length: events.metadata()?.len(),
            events,
            events_count: 0,
            events_dropped: 0,
            redactor: Redactor::new(secrets),
            line: Vec::new(),
            is_overlong: false,
            is_at_line_start: true,
            to_log: Vec::new(),
            to_events: Vec::new(),
        })
    }

    /// Has further secrets taken out from now on.
    pub(super) fn add_secrets(&mut self, secrets: &[SecretText]) {
        self.redactor.add(secrets);
    }

    /// Takes what was read.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(at) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..at], &bytes[at + 1..]);
            bytes = rest;
            if self.is_overlong {
                self.is_overlong = false;
                self.text(line);
                self.end_line();
            } else if self.line.is_empty() {
                self.whole_line(line);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.whole_line(&whole);
                whole.clear();
                self.line = whole;
            }
        }
        if self.is_overlong {
            self.text(bytes);
        } else {
            self.line.extend_from_slice(bytes);
            if self.line.len() > LONGEST_LINE {
                self.is_overlong = true;
                let line = std::mem::take(&mut self.line);
                self.text(&line);
            }
        }
        self.write();
    }

    /// Ends the last line of a program that did not: the next one begins on its own.
    pub(super) fn end_program(&mut self) {
        if self.is_overlong || !self.line.is_empty() {
            self.push(b"\n");
        }
    }

    /// Writes a line of the supervisor's own.
    pub(super) fn note(&mut self, line: &str) {
        self.end_program();
        self.push(line.as_bytes());
        self.push(b"\n");
    }

    /// Ends the log of this stage: it says what it does not hold, and is on disk afterwards.
    pub(super) fn finish(&mut self) {
        self.end_program();
        let (cut, dropped) = (self.cut, self.events_dropped);
        // The limit is what a program may write, these lines come after it.
        self.limit = u64::MAX;
        self.cut = 0;
        if cut > 0 {
            let start = if self.is_at_line_start { "" } else { "\n" };
            self.push(
                format!("{start}rezus: {cut} more bytes were written than this log may hold\n").as_bytes(),
            );
        }
        if dropped > 0 {
            self.push(format!("rezus: {dropped} events were too many to be kept\n").as_bytes());
        }
        // Nobody is left to be told that the disk does not work.
        drop(self.log.sync_data());
        drop(self.events.sync_data());
    }

    fn whole_line(&mut self, line: &[u8]) {
        let as_event = if line.first() == Some(&b'{') { std::str::from_utf8(line).ok() } else { None };
        let Some((line, event)) = as_event.and_then(|line| Some((line, stream::parse(line)?))) else {
            self.text(line);
            self.end_line();
            return;
        };
        if self.is_full() {
            self.cut += length(line.as_bytes());
        } else {
            let mut shown = String::new();
            stream::render(line, &mut shown);
            self.to_log.extend_from_slice(self.redactor.redact(&shown).as_bytes());
        }
        if event != Event::Other {
            self.keep(event);
        }
        self.write_much();
    }

    /// Text that does not end here.
    fn text(&mut self, bytes: &[u8]) {
        if self.is_full() {
            self.cut += length(bytes);
        } else {
            self.redactor.push(bytes, &mut self.to_log);
            self.write_much();
        }
    }

    /// The last line is to be seen while the next one is waited for, so nothing is held back over its end.
    fn end_line(&mut self) {
        if self.is_full() {
            self.cut += 1;
        } else {
            self.redactor.finish(&mut self.to_log);
            self.to_log.push(b'\n');
            self.write_much();
        }
    }

    fn keep(&mut self, event: Event) {
        let is_vital = !matches!(event, Event::Started(_) | Event::Progress(_));
        let has_room = self.events_count < MANY_EVENTS || is_vital;
        if !has_room || self.events_length >= ALL_EVENTS {
            self.events_dropped += 1;
            return;
        }
        let before = self.to_events.len();
        if serde_json::to_writer(&mut self.to_events, &event.redacted(&self.redactor)).is_err() {
            self.to_events.truncate(before);
            return;
        }
        self.to_events.push(b'\n');
        self.events_count += 1;
        self.events_length += length(&self.to_events[before..]);
    }

    fn is_full(&self) -> bool {
        self.length + length(&self.to_log) >= self.limit
    }

    fn write_much(&mut self) {
        if self.to_log.len() + self.to_events.len() > LONGEST_LINE {
            self.write();
        }
    }

    /// Writes what is ready. A disk that does not work must not end a program that has yet to save its state: what
    /// cannot be written is counted as cut.
    fn write(&mut self) {
        let room = usize::try_from(self.limit.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let fitting = &self.to_log[..self.to_log.len().min(room)];
        self.cut += length(&self.to_log) - length(fitting);
        if let Some(last) = fitting.last() {
            self.is_at_line_start = *last == b'\n';
        }
        if self.log.write_all(fitting).is_err() {
            self.cut += length(fitting);
        }
        self.length = self.log.metadata().map_or(self.length, |it| it.len());
        self.to_log.clear();
        if !self.to_events.is_empty() && self.events.write_all(&self.to_events).is_err() {
            self.events_dropped += 1;
        }
        self.to_events.clear();
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
