//! What is told of jobs, and what their logs hold.

#![expect(clippy::unwrap_used, reason = "test code")]

use rezus_core::runs::Stage;
use rezus_core::runs::stream::Event;

use super::{ExecutorFixture, assert_good, execute, follow, job, read_log, run, wait_for_line, whole_log};
use crate::contract::poll::drop_after;
use crate::fake::Script;

const VERSION: &str = r#"{"@level":"info","@message":"OpenTofu 1.12.6","tofu":"1.12.6","type":"version"}"#;
const COMPLETE: &str = r#"{"@level":"info","@message":"a.b: Creation complete","hook":{"resource":{"addr":"a.b","resource_type":"a"},"action":"create","id_value":"i-1"},"type":"apply_complete"}"#;
const ERROR: &str = r#"{"@level":"error","@message":"Error: no","diagnostic":{"severity":"error","summary":"no","detail":"for a reason"},"type":"diagnostic"}"#;
const UNKNOWN: &str = r#"{"@level":"info","@message":"something new","type":"unheard_of"}"#;

/// Text is in the log as it was written, in its order, standard error included; the last line is ended.
pub async fn text_is_kept_in_its_order(fixture: &dyn ExecutorFixture) {
    let id = run("text");
    let script = Script::lines(["one", "", "\u{1b}[1mtwo\u{1b}[0m\rthree"])
        .complain("four\n")
        .say("{\"no\": \"event\"}\n")
        .complain("fi")
        .say(b"ve \xff\xfe\n".to_vec())
        .say("six");
    let told = execute(fixture, &id, &script).await;
    assert_good(told.ending);
    assert!(told.events.is_empty());
    let log = read_log(fixture.executor().as_ref(), &id, 0, 1000).await.unwrap();
    let expected = b"one\n\n\x1b[1mtwo\x1b[0m\rthree\nfour\n{\"no\": \"event\"}\nfive \xff\xfe\nsix\n";
    assert_eq!(log, expected, "{}", String::from_utf8_lossy(&log));
    assert_eq!(told.log, u64::try_from(expected.len()).unwrap());
}

/// Lines that are events are told, and are in the log as people read them.
pub async fn events_are_told_and_read_well_in_the_log(fixture: &dyn ExecutorFixture) {
    let id = run("events");
    let script = Script::lines([VERSION, "text", COMPLETE, UNKNOWN, ERROR]).exit(1);
    let told = execute(fixture, &id, &script).await;
    let [Event::Version { version, .. }, Event::Completed(hook), Event::Diagnostic(diagnostic)] =
        &told.events[..]
    else {
        unreachable!("other events: {:?}", told.events)
    };
    assert_eq!((version.as_str(), hook.id.as_deref(), diagnostic.is_error), ("1.12.6", Some("i-1"), true));
    let expected =
        "OpenTofu 1.12.6\ntext\na.b: Creation complete\nsomething new\nError: no\n  for a reason\n";
    assert_eq!(whole_log(fixture.executor().as_ref(), &id).await, expected);
}

/// From any offset on, the log is the rest of the whole; there is nothing at its end and beyond.
pub async fn a_log_at_an_offset_is_the_rest_of_it(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("offsets"));
    assert_eq!(executor.log(&id, 0, 10).await.unwrap(), None);
    let script = Script::lines(["äöü", "second line", "third"]);
    assert_good(execute(fixture, &id, &script).await.ending);
    let whole = read_log(executor.as_ref(), &id, 0, 1000).await.unwrap();
    for from in 0..=whole.len() {
        let rest = read_log(executor.as_ref(), &id, u64::try_from(from).unwrap(), 5).await.unwrap();
        assert_eq!(rest, whole[from..], "from {from}");
    }
    assert_eq!(executor.log(&id, 1_000_000, 10).await.unwrap().as_deref(), Some(&[][..]));
}

/// Who follows a job while it is executed and who does so afterwards are told the same, and read the same.
pub async fn two_readers_see_the_same(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("readers"));
    let script = Script::lines([VERSION, "one"]).wait("more").say_lines([COMPLETE, "two"]).exit(2);
    let mut first = executor.start(fixture.play(job(id.clone(), Stage::Plan), &script)).await.unwrap();
    wait_for_line(executor.as_ref(), first.as_mut(), &id, "one").await;
    let mut second = executor.find(&id, Stage::Plan).await.unwrap().unwrap();
    let early = read_log(executor.as_ref(), &id, 0, 7).await.unwrap();
    fixture.open_gate("more").await;
    let (first, second) = tokio::join!(follow(first.as_mut()), follow(second.as_mut()));
    assert_eq!((first.ending, first.log), (second.ending, second.log));
    assert_eq!(second.events.len(), 2);
    let whole = read_log(executor.as_ref(), &id, 0, 3).await.unwrap();
    assert!(whole.starts_with(&early) && whole.len() > early.len());
    assert_eq!(whole, read_log(executor.as_ref(), &id, 0, 1 << 20).await.unwrap());
}

/// A job is found after its end, and tells all again; one that was never begun is not.
pub async fn find_gives_everything_again(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("found"));
    assert!(executor.find(&id, Stage::Plan).await.unwrap().is_none());
    let told = execute(fixture, &id, &Script::lines([VERSION, COMPLETE, "x"]).exit(1)).await;
    assert!(executor.find(&id, Stage::Apply).await.unwrap().is_none());
    for _ in 0..2 {
        let mut found = executor.find(&id, Stage::Plan).await.unwrap().unwrap();
        assert_eq!(follow(found.as_mut()).await, told);
    }
}

/// A wait that is dropped has lost no event.
pub async fn a_dropped_wait_loses_nothing(fixture: &dyn ExecutorFixture) {
    let id = run("dropped");
    let script = Script::lines([COMPLETE; 50]);
    let told = execute(fixture, &id, &script).await;
    let mut found = fixture.executor().find(&id, Stage::Plan).await.unwrap().unwrap();
    for polls in 0..100 {
        // What ended is another matter: that was told.
        if drop_after(polls % 3, async { found.next().await.map(drop) }).await {
            break;
        }
    }
    let rest = follow(found.as_mut()).await;
    assert!(rest.events.len() + 1 >= told.events.len(), "{} of {}", rest.events.len(), told.events.len());
    assert_eq!(told.events.len(), 50);
}

/// Both stages of a run write one log.
pub async fn both_stages_write_one_log(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("both"));
    assert_good(execute(fixture, &id, &Script::lines([VERSION, "planned"])).await.ending);
    let script = Script::lines(["applied", COMPLETE]);
    let mut apply = executor.start(fixture.play(job(id.clone(), Stage::Apply), &script)).await.unwrap();
    let told = follow(apply.as_mut()).await;
    assert!(matches!(told.events[..], [Event::Completed(_)]));
    let log = whole_log(executor.as_ref(), &id).await;
    assert_eq!(log, "OpenTofu 1.12.6\nplanned\napplied\na.b: Creation complete\n");
    assert_eq!(told.log, u64::try_from(log.len()).unwrap());
}

/// What is beyond the limit is not kept, and the log says how much that was.
pub async fn a_log_has_a_limit(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("long"));
    let script = Script::lines(["12345678"; 100]).say_lines([COMPLETE]);
    let mut job = fixture.play(job(id.clone(), Stage::Plan), &script);
    job.log_limit = 90;
    let mut execution = executor.start(job).await.unwrap();
    let told = follow(execution.as_mut()).await;
    assert_good(told.ending);
    // Events are no part of it.
    assert_eq!(told.events.len(), 1);
    let log = whole_log(executor.as_ref(), &id).await;
    let (kept, note) = log.split_at(90);
    assert_eq!(kept, "12345678\n".repeat(10));
    assert!(
        note.starts_with("rezus: ") && note.contains(" more bytes") && note.lines().count() == 1,
        "{note}"
    );
}

/// A sealed log reads as before, and the job is found with its end.
pub async fn a_sealed_log_is_the_log(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("sealed"));
    let lines = (0..5000).map(|i| format!("line {i} of a log that is to be sealed"));
    let told = execute(fixture, &id, &Script::default().say(lines.collect::<Vec<_>>().join("\n"))).await;
    let before = read_log(executor.as_ref(), &id, 0, 1 << 20).await.unwrap();
    for _ in 0..2 {
        executor.seal(&id).await.unwrap();
        assert_eq!(read_log(executor.as_ref(), &id, 0, 1 << 20).await.unwrap(), before);
        assert_eq!(read_log(executor.as_ref(), &id, 4321, 999).await.unwrap(), before[4321..]);
    }
    let mut found = executor.find(&id, Stage::Plan).await.unwrap().unwrap();
    let found = follow(found.as_mut()).await;
    assert_eq!((found.ending, found.log), (told.ending, told.log));
    // There is nothing to seal where there was no run.
    executor.seal(&run("none")).await.unwrap();
}

/// Of a run that was forgotten there is neither a job nor a log.
pub async fn a_run_that_was_forgotten_has_left_nothing(fixture: &dyn ExecutorFixture) {
    let executor = fixture.executor();
    for (name, is_sealed) in [("forgotten", false), ("forgotten-sealed", true)] {
        let id = run(name);
        execute(fixture, &id, &Script::lines(["x"])).await;
        if is_sealed {
            executor.seal(&id).await.unwrap();
        }
        for _ in 0..2 {
            executor.forget(&id).await.unwrap();
            assert_eq!(executor.log(&id, 0, 10).await.unwrap(), None);
            assert!(executor.find(&id, Stage::Plan).await.unwrap().is_none());
        }
    }
}
