//! What was recorded of clusters, read again as if it were now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::recorded::RecordedScraper;
use rezus_core::base::{Clock as _, TenantName};
use rezus_core::observed::facts::{Facts, Kubernetes};
use rezus_core::observed::{
    ClusterScraper as _, Destinations, Failure, Reading, Recording, Session, Source, Target,
};
use rezus_testkit::clock::ManualClock;
use tempfile::TempDir;

const BUDGET: Duration = Duration::from_secs(5);

fn target(path: &Path) -> Target {
    Target {
        tenant: TenantName::parse("acme").unwrap(),
        endpoints: vec![path.display().to_string()],
        credential: None,
        destinations: Destinations::default(),
    }
}

fn open(path: &Path, source: Source, clock: &ManualClock) -> Result<Box<dyn Session>, Failure> {
    RecordedScraper::new(source, Arc::new(clock.clone())).open(target(path))
}

/// A recording of two turns of Kubernetes, a minute apart, by two versions of the API server.
fn recorded(directory: &TempDir) -> PathBuf {
    let clock = ManualClock::default();
    let began = clock.now();
    let turn = |version: &str| {
        let facts = Kubernetes { version: Some(version.to_owned()), ..Kubernetes::default() };
        let (started, finished) = (clock.now(), clock.now());
        let reading =
            Reading { started, finished, facts: Some(Facts::Kubernetes(facts)), failures: Vec::new() };
        Recording::line(began, Source::Kubernetes, &reading)
    };
    let first = turn("v1");
    clock.advance(Duration::from_mins(1));
    let path = directory.path().join("cluster.jsonl");
    std::fs::write(&path, format!("{first}\n{}\n", turn("v2"))).unwrap();
    path
}

fn version(reading: &Reading) -> Option<&str> {
    match &reading.facts {
        Some(Facts::Kubernetes(facts)) => facts.version.as_deref(),
        _ => None,
    }
}

fn causes(reading: &Reading) -> Vec<(&str, &'static str)> {
    reading.failures.iter().map(|(part, failure)| (part.as_str(), failure.reason())).collect()
}

#[tokio::test]
async fn turns_come_at_their_times_and_are_of_now() {
    let directory = TempDir::new().unwrap();
    let clock = ManualClock::default();
    // Years after it was recorded.
    clock.advance(Duration::from_hours(20_000));
    let mut session = open(&recorded(&directory), Source::Kubernetes, &clock).unwrap();
    for (wait, expected) in [(0, "v1"), (59, "v1"), (1, "v2"), (1, "v1")] {
        clock.advance(Duration::from_secs(wait));
        let reading = session.read(BUDGET).await;
        assert_eq!((version(&reading), reading.finished), (Some(expected), clock.now()));
        assert_eq!(causes(&reading), []);
    }
    let waited = tokio::time::timeout(Duration::from_millis(50), session.changed()).await;
    assert!(waited.is_err(), "nobody tells of changes");
}

#[tokio::test]
async fn each_session_begins_at_the_beginning_and_needs_the_file_no_more() {
    let directory = TempDir::new().unwrap();
    let path = recorded(&directory);
    let clock = ManualClock::default();
    let mut first = open(&path, Source::Kubernetes, &clock).unwrap();
    clock.advance(Duration::from_mins(1));
    let mut second = open(&path, Source::Kubernetes, &clock).unwrap();
    drop(directory);
    assert_eq!(version(&first.read(BUDGET).await), Some("v2"));
    assert_eq!(version(&second.read(BUDGET).await), Some("v1"));
}

#[tokio::test]
async fn a_source_that_was_not_recorded_is_one_failure() {
    let directory = TempDir::new().unwrap();
    let clock = ManualClock::default();
    let mut session = open(&recorded(&directory), Source::Talos, &clock).unwrap();
    let reading = session.read(BUDGET).await;
    assert_eq!(reading.facts, None);
    assert_eq!(causes(&reading), [("all", "NotInstalled")]);
    assert_eq!((reading.started, reading.finished), (clock.now(), clock.now()));
}

#[tokio::test]
async fn a_turn_that_is_dropped_leaves_the_session_usable() {
    let directory = TempDir::new().unwrap();
    let clock = ManualClock::default();
    let mut session = open(&recorded(&directory), Source::Kubernetes, &clock).unwrap();
    drop(session.read(BUDGET));
    assert_eq!(version(&session.read(BUDGET).await), Some("v1"));
}

#[test]
fn what_is_no_recording_is_refused_and_nothing_of_it_told() {
    let directory = TempDir::new().unwrap();
    let clock = ManualClock::default();
    let file = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let cases = [
        (directory.path().join("absent"), "entity not found"),
        (directory.path().to_owned(), "it is no file"),
        (file("empty", b""), "no turn"),
        (file("secret", b"password: hunter2\n"), "line 1 is no turn"),
        (file("binary", &[0xff, 0xfe]), "invalid data"),
    ];
    for (path, expected) in cases {
        for source in Source::ALL {
            let failure = open(&path, source, &clock).map(drop).unwrap_err();
            let told = format!("{failure} {failure:?}");
            assert!(matches!(failure, Failure::Internal { .. }), "{told}");
            assert!(told.contains(expected), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
    // Nobody ever writes into it: whoever opened it would wait.
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let failure = open(&pipe, Source::Kubernetes, &clock).map(drop).unwrap_err();
    assert!(failure.to_string().contains("it is no file"), "{failure}");
}
