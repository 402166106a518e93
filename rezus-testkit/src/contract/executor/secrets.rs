//! What must not be in a log.

#![expect(clippy::unwrap_used, reason = "test code")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rezus_core::runs::Stage;

use super::{ExecutorFixture, follow, job, run, secret, whole_log};
use crate::fake::Script;

/// Neither the log nor an event has a secret that the job was given, however it is written.
pub async fn secrets_are_nowhere(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("secret"));
    let hidden = "s3cr3t <&> \"word\"";
    let forms = [
        hidden.to_owned(),
        STANDARD.encode(hidden),
        URL_SAFE_NO_PAD.encode(hidden),
        "s3cr3t%20%3C%26%3E%20%22word%22".to_owned(),
        "s3cr3t+%3c%26%3e+%22word%22".to_owned(),
        "s3cr3t <&> \\\"word\\\"".to_owned(),
        "s3cr3t \\u003c\\u0026\\u003e \\\"word\\\"".to_owned(),
    ];
    let event = r#"{"@level":"error","@message":"Error: MESSAGE","diagnostic":{"severity":"error","summary":"MESSAGE","detail":"twice:\nMESSAGE MESSAGE"},"type":"diagnostic"}"#;
    let event = event.replace("MESSAGE", &forms[6]);
    let mut script = Script::lines([event]);
    for form in &forms {
        script = script.say(format!("<{form}>\n")).complain(format!("<{form}"));
        script = script.say("\n");
        // In two writes, which are one line.
        let (half, rest) = form.split_at(form.len() / 2);
        script = script.say(half).say(format!("{rest}\n"));
    }
    let mut job = fixture.play(job(id.clone(), Stage::Plan), &script);
    job.secrets = vec![secret(hidden)];
    assert!(!format!("{job:?}").contains("s3cr3t"));
    let mut execution = executor.start(job).await.unwrap();
    let told = follow(execution.as_mut()).await;
    let log = whole_log(executor.as_ref(), &id).await;
    let all = format!("{log}{told:?}{execution:?}{executor:?}");
    for form in &forms {
        assert!(!all.contains(form), "{form} is in {all}");
    }
    assert!(!all.contains("word"), "{all}");
    // Nothing else is missing.
    assert_eq!(log.lines().count(), 3 + 3 * forms.len(), "{log}");
    assert_eq!(log.matches("(sensitive value)").count(), 3 + 3 * forms.len(), "{log}");
}

/// A secret that is added while the job is executed is taken out of what follows.
pub async fn secrets_that_are_added_later_count(fixture: &dyn ExecutorFixture) {
    let (executor, id) = (fixture.executor(), run("later"));
    let gates: Vec<String> = (0..100).map(|i| format!("g{i}")).collect();
    let script = gates.iter().fold(Script::lines(["early topsecret"]), |script, gate| {
        script.wait(gate).say(format!("{gate} topsecret\n"))
    });
    let mut execution = executor.start(fixture.play(job(id.clone(), Stage::Plan), &script)).await.unwrap();
    let ends = |log: &str, line: &str| log.lines().any(|it| it.starts_with(line));
    super::wait_for_line(executor.as_ref(), execution.as_mut(), &id, "early topsecret").await;
    execution.add_secrets(vec![secret("topsecret")]);
    // It is on its way: from some line on, no line has it any more.
    let mut masked = 0;
    for gate in &gates {
        fixture.open_gate(gate).await;
        let mut log = whole_log(executor.as_ref(), &id).await;
        while !ends(&log, &format!("{gate} ")) {
            super::next(execution.as_mut()).await;
            log = whole_log(executor.as_ref(), &id).await;
        }
        let last = log.lines().last().unwrap();
        if last == format!("{gate} (sensitive value)") {
            masked += 1;
        } else {
            assert_eq!((last, masked), (format!("{gate} topsecret").as_str(), 0));
        }
        if masked == 3 {
            break;
        }
    }
    assert_eq!(masked, 3, "it was never taken out");
    execution.kill();
    follow(execution.as_mut()).await;
}
