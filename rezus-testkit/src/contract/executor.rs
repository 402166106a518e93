//! The laws of `TofuExecutor`.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

mod ends;
mod reads;
mod secrets;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::TenantName;
use rezus_core::runs::executor::{
    Ending, Execution, Exit, Happening, Job, RunId, TofuExecutor, Tool, ToolKind,
};
use rezus_core::runs::stream::Event;
use rezus_core::runs::{RunName, SecretText, Stage};

use crate::fake::Script;

pub use ends::{
    a_job_goes_on_when_nobody_follows_it, a_kill_ends_what_ignores_interrupts, a_stage_is_executed_once,
    an_interrupt_reaches_the_program, the_end_is_told_again, what_does_not_end_is_interrupted,
    what_ignores_interrupts_is_killed_after_its_grace,
};
pub use reads::{
    a_dropped_wait_loses_nothing, a_log_at_an_offset_is_the_rest_of_it, a_log_has_a_limit,
    a_run_that_was_forgotten_has_left_nothing, a_sealed_log_is_the_log, both_stages_write_one_log,
    events_are_told_and_read_well_in_the_log, find_gives_everything_again, text_is_kept_in_its_order,
    two_readers_see_the_same,
};
pub use secrets::{secrets_are_nowhere, secrets_that_are_added_later_count};

/// Longer than anything that is waited for takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// An executor of its own for one law.
#[async_trait]
pub trait ExecutorFixture: Send + Sync {
    /// The executor.
    fn executor(&self) -> Arc<dyn TofuExecutor>;

    /// Makes `job` one that does as the script says: its tool, its steps and its working directory.
    fn play(&self, job: Job, script: &Script) -> Job;

    /// Opens a gate that scripts wait for.
    async fn open_gate(&self, gate: &str);
}

/// Makes a test of each law of `TofuExecutor`, in a module `executor_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! executor_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            executor_laws,
            $crate::contract::executor,
            $fixture,
            a_dropped_wait_loses_nothing,
            a_job_goes_on_when_nobody_follows_it,
            a_kill_ends_what_ignores_interrupts,
            a_log_at_an_offset_is_the_rest_of_it,
            a_log_has_a_limit,
            a_run_that_was_forgotten_has_left_nothing,
            a_sealed_log_is_the_log,
            a_stage_is_executed_once,
            an_interrupt_reaches_the_program,
            both_stages_write_one_log,
            events_are_told_and_read_well_in_the_log,
            find_gives_everything_again,
            secrets_are_nowhere,
            secrets_that_are_added_later_count,
            text_is_kept_in_its_order,
            the_end_is_told_again,
            two_readers_see_the_same,
            what_does_not_end_is_interrupted,
            what_ignores_interrupts_is_killed_after_its_grace,
        );
    };
}

/// The run of a name.
pub fn run(name: &str) -> RunId {
    RunId { tenant: TenantName::parse("prod").unwrap(), run: RunName::parse(name).unwrap() }
}

/// A job with nothing but its names; the fixture makes it do something.
pub fn job(id: RunId, stage: Stage) -> Job {
    Job {
        id,
        stage,
        tool: Tool { path: PathBuf::from("/none"), kind: ToolKind::Tofu, version: "1.12.6".to_owned() },
        work_dir: PathBuf::from("/none"),
        steps: vec![vec![stage.as_str().to_owned()]],
        environment: BTreeMap::new(),
        secrets: Vec::new(),
        timeout: PATIENCE * 2,
        grace: PATIENCE * 2,
        log_limit: 1 << 30,
    }
}

/// A secret.
pub fn secret(text: &str) -> SecretText {
    SecretText::new(text.to_owned())
}

/// Waits for what happens next, and not forever.
pub async fn next(execution: &mut dyn Execution) -> Happening {
    tokio::time::timeout(PATIENCE, execution.next()).await.expect("something happens").unwrap()
}

/// What was told of a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// All events, in their order.
    pub events: Vec<Event>,
    /// The length of the log that was told last.
    pub log: u64,
    /// How it ended.
    pub ending: Ending,
}

/// Follows a job to its end.
pub async fn follow(execution: &mut dyn Execution) -> Told {
    let (mut events, mut log) = (Vec::new(), 0);
    loop {
        match next(execution).await {
            Happening::Event(event) => events.push(event),
            Happening::Log(length) => {
                assert!(length > log, "{length} after {log}");
                log = length;
            }
            Happening::Ended(ending) => return Told { events, log, ending },
        }
    }
}

/// Executes a script to its end as the plan of a run.
pub async fn execute(fixture: &dyn ExecutorFixture, id: &RunId, script: &Script) -> Told {
    let job = fixture.play(job(id.clone(), Stage::Plan), script);
    let mut execution = fixture.executor().start(job).await.unwrap();
    follow(execution.as_mut()).await
}

/// Reads a log from an offset on, so many bytes at a time.
pub async fn read_log(executor: &dyn TofuExecutor, id: &RunId, from: u64, most: usize) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let offset = from + u64::try_from(whole.len()).unwrap();
        let piece = executor.log(id, offset, most).await.unwrap()?;
        assert!(piece.len() <= most);
        if piece.is_empty() {
            return Some(whole);
        }
        whole.extend_from_slice(&piece);
    }
}

/// The whole log, as text.
pub async fn whole_log(executor: &dyn TofuExecutor, id: &RunId) -> String {
    String::from_utf8_lossy(&read_log(executor, id, 0, 1 << 20).await.unwrap()).into_owned()
}

/// Waits until the log has a line.
async fn wait_for_line(executor: &dyn TofuExecutor, execution: &mut dyn Execution, id: &RunId, line: &str) {
    loop {
        if whole_log(executor, id).await.lines().any(|it| it == line) {
            return;
        }
        let happening = next(execution).await;
        assert!(!matches!(happening, Happening::Ended(_)), "it ended without {line}");
    }
}

/// A program ended well, by itself.
fn assert_good(ending: Ending) {
    assert_eq!(ending, Ending { exit: Exit::Code(0), step: 0, stopped: None, killed: false });
}
