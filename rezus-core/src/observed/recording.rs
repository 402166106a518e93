//! What was read of a cluster, kept so that it can be read again without the cluster: JSON, one line for each turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::facts::{Facts, Kubernetes, NodeMetrics, Talos};
use super::{Reading, Source};
use crate::base::Timestamp;

/// One turn of reading, and how long after the recording began it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Turn {
    offset_ms: u64,
    source: Source,
    reading: Reading,
}

/// The turns of some time, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    turns: Vec<Turn>,
}

/// Why a text is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A line is none.
    #[error("line {line} is no turn of a recording")]
    Line {
        /// Which, from 1.
        line: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// It ends before the turn before it.
    #[error("line {line} is of a time before the one above it")]
    Order {
        /// Which, from 1.
        line: usize,
    },
    /// There is no turn.
    #[error("there is no turn in it")]
    Empty,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] names the line.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut turns: Vec<Turn> = Vec::new();
        for (place, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let line = place + 1;
            let turn: Turn =
                serde_json::from_str(text).map_err(|source| RecordingError::Line { line, source })?;
            if turns.last().is_some_and(|last| last.offset_ms > turn.offset_ms) {
                return Err(RecordingError::Order { line });
            }
            turns.push(turn);
        }
        if turns.is_empty() { Err(RecordingError::Empty) } else { Ok(Self { turns }) }
    }

    /// Writes one turn as a line, without its end. `began` is when the recording did.
    pub fn line(began: Timestamp, source: Source, reading: &Reading) -> String {
        let offset_ms = u64::try_from(reading.finished.since(began).as_millis()).unwrap_or(u64::MAX);
        // Texts and numbers: they can always be written.
        serde_json::to_string(&Turn { offset_ms, source, reading: reading.clone() }).unwrap_or_default()
    }

    /// The sources of which there are turns.
    pub fn sources(&self) -> Vec<Source> {
        Source::ALL
            .into_iter()
            .filter(|source| self.turns.iter().any(|turn| turn.source == *source))
            .collect()
    }

    /// How long it is: what is replayed after that begins again.
    fn length(&self) -> u64 {
        self.turns.last().map_or(1, |turn| turn.offset_ms + 1)
    }

    /// Replays: the newest turn of a source as of `elapsed` after the replay began, as if it ended at `now`. Before the first
    /// one it is that one. Nothing where there is none of that source.
    pub fn at(&self, source: Source, elapsed: Duration, now: Timestamp) -> Option<Reading> {
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX) % self.length();
        let of = || self.turns.iter().filter(|turn| turn.source == source);
        let newest = of().take_while(|turn| turn.offset_ms <= elapsed).last().or_else(|| of().next())?;
        let mut reading = newest.reading.clone();
        let by = now.as_millis().saturating_sub(reading.finished.as_millis());
        reading.shift(by);
        Some(reading)
    }
}

fn shift(at: &mut Timestamp, by: i64) {
    *at = Timestamp::from_millis(at.as_millis().saturating_add(by));
}

fn shift_some(at: &mut Option<Timestamp>, by: i64) {
    if let Some(at) = at {
        shift(at, by);
    }
}

impl Reading {
    /// Moves all of its times by so many milliseconds.
    fn shift(&mut self, by: i64) {
        shift(&mut self.started, by);
        shift(&mut self.finished, by);
        match &mut self.facts {
            Some(Facts::Kubernetes(facts)) => shift_kubernetes(facts, by),
            Some(Facts::Talos(facts)) => shift_talos(facts, by),
            Some(Facts::NodeMetrics(facts)) => shift_metrics(facts, by),
            None => {}
        }
    }
}

fn shift_kubernetes(facts: &mut Kubernetes, by: i64) {
    shift_some(&mut facts.server_time, by);
    for node in facts.nodes.iter_mut().flatten() {
        shift_some(&mut node.created_at, by);
        shift_some(&mut node.lease_renewed_at, by);
        for condition in &mut node.conditions {
            shift_some(&mut condition.since, by);
        }
    }
    for offender in facts.pods.iter_mut().flat_map(|pods| &mut pods.offenders) {
        shift_some(&mut offender.since, by);
    }
    for usage in facts.usage.iter_mut().flatten() {
        shift(&mut usage.at, by);
    }
}

fn shift_talos(facts: &mut Talos, by: i64) {
    for machine in &mut facts.machines {
        shift_some(&mut machine.answered_at, by);
        shift_some(&mut machine.booted_at, by);
    }
    if let Some(etcd) = &mut facts.etcd {
        shift_some(&mut etcd.listed_at, by);
    }
}

fn shift_metrics(facts: &mut NodeMetrics, by: i64) {
    for machine in &mut facts.machines {
        shift_some(&mut machine.at, by);
        shift_some(&mut machine.booted_at, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::facts::Node;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn reading(second: i64, version: &str) -> Reading {
        let node = Node { lease_renewed_at: Some(at(second - 3)), ..Node::default() };
        let facts = Kubernetes {
            version: Some(version.to_owned()),
            nodes: Some(vec![node]),
            server_time: Some(at(second)),
            ..Kubernetes::default()
        };
        let facts = Some(Facts::Kubernetes(facts));
        Reading { started: at(second - 1), finished: at(second), facts, failures: Vec::new() }
    }

    fn version(reading: &Reading) -> Option<&str> {
        match &reading.facts {
            Some(Facts::Kubernetes(facts)) => facts.version.as_deref(),
            _ => None,
        }
    }

    #[test]
    fn what_is_replayed_is_what_was_recorded_as_if_it_were_now() {
        let lines: Vec<String> = [(100, "v1"), (130, "v2")]
            .map(|(second, version)| Recording::line(at(100), Source::Kubernetes, &reading(second, version)))
            .into();
        let recording = Recording::parse(&lines.join("\n")).unwrap();
        assert_eq!(recording.sources(), [Source::Kubernetes]);
        let replay =
            |seconds, now| recording.at(Source::Kubernetes, Duration::from_secs(seconds), at(now)).unwrap();
        let first = replay(0, 5_000);
        assert_eq!((first.started, first.finished, version(&first)), (at(4_999), at(5_000), Some("v1")));
        let Some(Facts::Kubernetes(facts)) = &first.facts else { panic!("{first:?}") };
        assert_eq!(facts.server_time, Some(at(5_000)));
        assert_eq!(facts.nodes.as_ref().unwrap()[0].lease_renewed_at, Some(at(4_997)));
        assert_eq!(version(&replay(29, 5_029)), Some("v1"));
        assert_eq!(version(&replay(30, 5_030)), Some("v2"));
        // It begins again.
        assert_eq!(version(&replay(31, 5_031)), Some("v1"));
        assert_eq!(recording.at(Source::Talos, Duration::ZERO, at(0)), None);
    }

    #[test]
    fn what_is_none_is_told_by_its_line() {
        let line = |second| Recording::line(at(100), Source::Kubernetes, &reading(second, "v1"));
        let text = format!("{}\n\n{}\n", line(130), line(120));
        assert_eq!(
            Recording::parse(&text).unwrap_err().to_string(),
            "line 3 is of a time before the one above it"
        );
        let text = format!("{}\n{{}}\n", line(130));
        assert_eq!(Recording::parse(&text).unwrap_err().to_string(), "line 2 is no turn of a recording");
        assert_eq!(Recording::parse(" \n").unwrap_err().to_string(), "there is no turn in it");
    }
}
