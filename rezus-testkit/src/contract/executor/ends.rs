//! How jobs end.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::time::Duration;

use rezus_core::runs::Stage;
use rezus_core::runs::executor::{Exit, Happening, Stopped};

use super::{ExecutorFixture, assert_good, execute, follow, job, next, run, wait_for_line, whole_log};
use crate::fake::{OnInterrupt, Script};

fn waiting(on_interrupt: OnInterrupt) -> Script {
    Script::lines(["works"]).wait("never").on_interrupt(on_interrupt)
}

/// An interrupt reaches the program, which ends as it sees fit; a second one does nothing.
pub async fn an_interrupt_reaches_the_program(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("interrupted"));
    let says = b"saved\n".to_vec();
    let script = waiting(OnInterrupt::Exit { says, code: 7 });
    let mut execution = executor.start(fixture.play(job(id.clone(), Stage::Apply), &script)).await.unwrap();
    wait_for_line(executor.as_ref(), execution.as_mut(), &id, "works").await;
    execution.interrupt();
    execution.interrupt();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!((ending.exit, ending.stopped, ending.killed), (Exit::Code(7), Some(Stopped::Asked), false));
    assert_eq!(whole_log(executor.as_ref(), &id).await, "works\nsaved\n");
}

/// A program that ignores interrupts is ended by a kill, at once.
pub async fn a_kill_ends_what_ignores_interrupts(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("killed"));
    let script = waiting(OnInterrupt::Ignore);
    let mut execution = executor.start(fixture.play(job(id.clone(), Stage::Apply), &script)).await.unwrap();
    wait_for_line(executor.as_ref(), execution.as_mut(), &id, "works").await;
    execution.interrupt();
    execution.kill();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!((ending.exit, ending.stopped, ending.killed), (Exit::Signal(9), Some(Stopped::Asked), true));
}

/// A program that ignores interrupts is killed when its grace is over.
pub async fn what_ignores_interrupts_is_killed_after_its_grace(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("graceless"));
    let mut job = fixture.play(job(id.clone(), Stage::Apply), &waiting(OnInterrupt::Ignore));
    job.grace = Duration::from_millis(50);
    let mut execution = executor.start(job).await.unwrap();
    wait_for_line(executor.as_ref(), execution.as_mut(), &id, "works").await;
    execution.interrupt();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!((ending.exit, ending.stopped, ending.killed), (Exit::Signal(9), Some(Stopped::Asked), true));
}

/// A program that does not end is interrupted when its time is over.
pub async fn what_does_not_end_is_interrupted(fixture: &dyn ExecutorFixture) {
    let mut job = fixture.play(job(run("endless"), Stage::Plan), &waiting(OnInterrupt::Die));
    job.timeout = Duration::from_millis(300);
    let mut execution = fixture.executor().start(job).await.unwrap();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!(
        (ending.exit, ending.stopped, ending.killed),
        (Exit::Signal(2), Some(Stopped::TimedOut), false)
    );
}

/// The end is told as often as it is asked for, and what comes after it has no effect.
pub async fn the_end_is_told_again(fixture: &dyn ExecutorFixture) {
    let script = Script::lines(["x"]).exit(3);
    let job = fixture.play(job(run("over"), Stage::Plan), &script);
    let mut execution = fixture.executor().start(job).await.unwrap();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!((ending.exit, ending.stopped, ending.killed), (Exit::Code(3), None, false));
    execution.interrupt();
    execution.kill();
    execution.add_secrets(vec![super::secret("too late")]);
    for _ in 0..3 {
        assert_eq!(next(execution.as_mut()).await, Happening::Ended(ending));
    }
}

/// A job goes on when its execution is dropped, and is found again.
pub async fn a_job_goes_on_when_nobody_follows_it(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("alone"));
    let script = Script::lines(["before"]).wait("on").say_lines(["after"]);
    drop(executor.start(fixture.play(job(id.clone(), Stage::Plan), &script)).await.unwrap());
    fixture.open_gate("on").await;
    let mut execution = executor.find(&id, Stage::Plan).await.unwrap().unwrap();
    assert_good(follow(execution.as_mut()).await.ending);
    assert_eq!(whole_log(executor.as_ref(), &id).await, "before\nafter\n");
}

/// A run executes one job at a time, and each stage once; while it does, it is neither sealed nor forgotten.
pub async fn a_stage_is_executed_once(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("once"));
    let script = Script::lines(["one"]).wait("end");
    let start = |stage| executor.start(fixture.play(job(id.clone(), stage), &script));
    let mut execution = start(Stage::Plan).await.unwrap();
    assert!(start(Stage::Plan).await.is_err());
    assert!(start(Stage::Apply).await.is_err());
    assert!(executor.seal(&id).await.is_err());
    assert!(executor.forget(&id).await.is_err());
    fixture.open_gate("end").await;
    assert_good(follow(execution.as_mut()).await.ending);
    assert!(start(Stage::Plan).await.is_err());
    assert!(executor.find(&id, Stage::Apply).await.unwrap().is_none());
    assert_eq!(whole_log(executor.as_ref(), &id).await, "one\n");
    // Another run of the tenant is another thing.
    assert_good(execute(fixture, &run("twice"), &Script::default()).await.ending);
}
