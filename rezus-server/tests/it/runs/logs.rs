//! Logs: the same bytes for everybody who reads them, however and whenever.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use rezus_core::runs::executor::{RunId, TofuExecutor as _};
use rezus_core::runs::{Operation, Phase, RunName, Stage};
use rezus_testkit::fake::Script;

use super::lab::Lab;

const PATIENCE: Duration = Duration::from_mins(1);
const EVENTS: (&str, &str) = ("accept", "text/event-stream");

fn log(run: &RunName, query: &str) -> String {
    format!("/apis/rezuscloud.io/v1alpha1/namespaces/prod/runs/{run}/log{query}")
}

/// The next piece of an answer.
async fn piece(body: &mut Body) -> Option<Vec<u8>> {
    let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("a piece comes in time")?;
    Some(frame.unwrap().into_data().unwrap().to_vec())
}

async fn rest(body: &mut Body) -> Vec<u8> {
    let mut rest = Vec::new();
    while let Some(piece) = piece(body).await {
        rest.extend(piece);
    }
    rest
}

/// The log that events carry, and the id of the last one; whether they say that the run has ended.
pub(super) fn bytes_of(events: &[u8]) -> (Vec<u8>, u64, bool) {
    let (mut log, mut last, mut is_over) = (Vec::new(), 0, false);
    for event in std::str::from_utf8(events).unwrap().split_terminator("\n\n") {
        if event.starts_with(':') {
            continue;
        }
        if event.starts_with("event: end\n") {
            is_over = true;
            continue;
        }
        let (id, data) = event.split_once('\n').unwrap();
        last = id.strip_prefix("id: ").unwrap().parse().unwrap();
        unescape(data.strip_prefix("data: \"").unwrap().strip_suffix('"').unwrap(), &mut log);
    }
    (log, last, is_over)
}

/// Reads the inside of a JSON string; lone surrogates are bytes (PEP 383).
fn unescape(text: &str, log: &mut Vec<u8>) {
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        assert!(!matches!(char, '\n' | '\r'), "a line of data has no end within");
        if char != '\\' {
            log.extend(char.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match chars.next().unwrap() {
            'n' => log.push(b'\n'),
            'r' => log.push(b'\r'),
            't' => log.push(b'\t'),
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let number = u32::from_str_radix(&digits, 16).unwrap();
                match u8::try_from(number.wrapping_sub(0xdc00)) {
                    Ok(byte) => log.push(byte),
                    Err(_) => log.extend(char::from_u32(number).unwrap().encode_utf8(&mut [0; 4]).bytes()),
                }
            }
            other => log.push(u8::try_from(other).unwrap()),
        }
    }
}

#[tokio::test]
async fn all_who_follow_get_the_stored_log_byte_by_byte() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let many: Vec<u8> =
        (0..200_000).flat_map(|n| format!("line {n} \u{1b}[32m+\u{1b}[0m\n").into_bytes()).collect();
    // Odd lengths, so that pieces end within characters.
    let long = format!("x{}\n", "€".repeat(5 << 18));
    let script = Script::default()
        .say("the first\rline\n")
        .wait("begun")
        .say(many)
        .wait("half")
        .say(long)
        .say(b"not \xff\xfe UTF-8 \xe2\x82\n".to_vec())
        .complain("an error\r\n");
    lab.executor.set_script(None, Stage::Plan, script.exit(0));
    let run = lab.run(&prod, Operation::Plan).await;
    lab.job(&run, Stage::Plan).await;
    let mut one = lab.plane.open(&log(&run, "?follow=true"), &[]).await.into_body();
    let mut two = lab.plane.open(&log(&run, "?follow=true"), &[]).await.into_body();
    let mut sse = lab.plane.open(&log(&run, ""), &[EVENTS]).await.into_body();
    let mut of_one = piece(&mut one).await.unwrap();
    let mut events = piece(&mut sse).await.unwrap();
    lab.executor.open_gate("begun");
    for _ in 0..20 {
        of_one.extend(piece(&mut one).await.unwrap());
        events.extend(piece(&mut sse).await.unwrap());
    }
    // These two break off, and come again where they were.
    drop((one, sse));
    let mut late = lab.plane.open(&log(&run, "?follow=true"), &[]).await.into_body();
    lab.executor.open_gate("half");
    let again = format!("?follow=true&offset={}", of_one.len());
    let mut one = lab.plane.open(&log(&run, &again), &[]).await.into_body();
    let (_, last, is_over) = bytes_of(&events);
    assert!(!is_over);
    let last = last.to_string();
    let mut sse = lab.plane.open(&log(&run, ""), &[EVENTS, ("last-event-id", &last)]).await.into_body();
    let (of_two, of_late) = (rest(&mut two).await, rest(&mut late).await);
    of_one.extend(rest(&mut one).await);
    events.extend(rest(&mut sse).await);
    assert!(lab.ended(&prod, &run).await.phase().is_end());
    let id = RunId { tenant: prod.clone(), run: run.clone() };
    let stored = lab.executor.log(&id, 0, usize::MAX).await.unwrap().unwrap();
    assert!(stored.len() > 8_000_000, "{}", stored.len());
    assert!(of_one == stored && of_two == stored && of_late == stored);
    let (of_events, last, is_over) = bytes_of(&events);
    assert!(of_events == stored);
    assert_eq!((usize::try_from(last).unwrap(), is_over), (stored.len(), true));
    let whole = lab.plane.get(&log(&run, "")).await.expect(200, "the log");
    assert_eq!(whole.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(whole.body == stored);
    let end = lab.plane.get(&log(&run, &format!("?offset={}", stored.len()))).await.expect(200, "its end");
    assert!(end.body.is_empty());
    let beyond = lab.plane.get(&log(&run, &format!("?follow=true&offset={}", stored.len() + 1))).await;
    assert_eq!(beyond.expect(416, "beyond it").json()["code"], 416);
    lab.plane.get(&log(&run, "?offset=x")).await.expect(400, "no number").message();
}

#[tokio::test]
async fn a_follower_waits_with_its_run_and_is_kept_alive() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.hold(Stage::Plan, Script::default(), "first", 0);
    let first = lab.run(&prod, Operation::Drift).await;
    lab.until(&prod, &first, Phase::Planning).await;
    let second = lab.run(&prod, Operation::Plan).await;
    assert!(lab.plane.get(&log(&second, "")).await.expect(200, "nothing yet").body.is_empty());
    let mut plain = lab.plane.open(&log(&second, "?follow=true"), &[]).await.into_body();
    let response = lab.plane.open(&log(&second, ""), &[EVENTS]).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut events = response.into_body();
    // Of a time that passes by itself where nothing else happens: two minutes of silence.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    for _ in 0..8 {
        assert_eq!(piece(&mut events).await.unwrap(), b": keep-alive\n\n");
    }
    assert!(begun.elapsed() >= Duration::from_secs(110), "{:?}", begun.elapsed());
    tokio::time::resume();
    lab.executor.set_script(None, Stage::Plan, Script::lines(["hello"]).exit(0));
    lab.executor.open_gate("first");
    assert_eq!(rest(&mut plain).await, b"hello\n");
    let (said, _, is_over) = bytes_of(&rest(&mut events).await);
    assert_eq!((said.as_slice(), is_over), (&b"hello\n"[..], true));
    let nobody = RunName::parse("nobody").unwrap();
    assert_eq!(
        lab.plane.get(&log(&nobody, "")).await.expect(404, "no run").json()["details"]["name"],
        "nobody"
    );
}

#[tokio::test]
async fn a_follower_is_let_go_when_the_server_ends() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.hold(Stage::Plan, Script::lines(["hello"]), "never", 0);
    let run = lab.run(&prod, Operation::Plan).await;
    lab.job(&run, Stage::Plan).await;
    let mut body = lab.plane.open(&log(&run, "?follow=true"), &[]).await.into_body();
    assert_eq!(piece(&mut body).await.unwrap(), b"hello\n");
    lab.plane.plane().draining.begin();
    assert!(rest(&mut body).await.is_empty());
}

#[tokio::test]
async fn what_a_state_marks_as_secret_is_in_no_run_and_no_log() {
    const SECRET: &str = "canary-9f3a-of-runs";
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let state = super::lab::state_of(1, 1).replace(
        r#""outputs":{}"#,
        &format!(r#""outputs":{{"token":{{"value":"{SECRET}","type":"string","sensitive":true}}}}"#),
    );
    lab.plane.post("prod", state).await.expect(200, "a state");
    let error = format!(
        r#"{{"@level":"error","@message":"Error: no {SECRET}","diagnostic":{{"severity":"error","summary":"no {SECRET}","detail":"{SECRET}"}},"type":"diagnostic"}}"#
    );
    lab.executor.set_script(None, Stage::Plan, Script::lines([error, format!("bare {SECRET}")]).exit(1));
    let run = lab.run(&prod, Operation::Plan).await;
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Failed);
    let one = format!("/apis/rezuscloud.io/v1alpha1/namespaces/prod/runs/{run}");
    for target in [
        log(&run, ""),
        one.clone(),
        format!("{one}/status"),
        "/apis/rezuscloud.io/v1alpha1/runs".to_owned(),
        "/apis/rezuscloud.io/v1alpha1/tenants/prod".to_owned(),
    ] {
        let shown = lab.plane.get(&target).await.expect(200, &target);
        let text = String::from_utf8_lossy(&shown.body).into_owned();
        assert!(!text.contains(SECRET), "{target}: {text}");
        assert!(!target.ends_with("/log") || text.contains("bare"), "{text}");
    }
}
