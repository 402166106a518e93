//! Which state may follow which: serial and lineage.

use bytes::Bytes;
use rezus_testkit::fixture;
use serde_json::{Value, json};

use crate::in_process::InProcess;
use crate::lock::{self, PUSH, empty_state, state, state_with};

/// One row: what is stored, what is posted, what becomes of it, and what a refusal names.
struct Row {
    what: &'static str,
    stored: String,
    posted: String,
    code: u16,
    names: &'static [&'static str],
}

fn row(what: &'static str, stored: String, posted: String, code: u16, names: &'static [&'static str]) -> Row {
    Row { what, stored, posted, code, names }
}

fn without(state: &str, member: &str) -> String {
    let mut state: Value = serde_json::from_str(state).unwrap();
    state.as_object_mut().unwrap().remove(member);
    state.to_string()
}

fn with(state: &str, member: &str, value: Value) -> String {
    let mut state: Value = serde_json::from_str(state).unwrap();
    state[member] = value;
    state.to_string()
}

fn envelope(lineage: Option<&str>, serial: Option<u64>, content: &str) -> String {
    let mut envelope = json!({
        "meta": { "key_provider.pbkdf2.a": "eyJzYWx0IjoiIn0=" },
        "encrypted_data": content,
        "encryption_version": "v0",
    });
    if let Some(lineage) = lineage {
        envelope["lineage"] = lineage.into();
    }
    if let Some(serial) = serial {
        envelope["serial"] = serial.into();
    }
    envelope.to_string()
}

fn rows() -> Vec<Row> {
    let output = json!({ "x": { "value": "1", "type": "string" } });
    let block = json!([{ "mode": "managed", "type": "a_b", "name": "c", "provider": "provider[\"x/y/z\"]", "instances": [] }]);
    vec![
        row("next", state("l", 5), state("l", 6), 200, &[]),
        row("gap", state("l", 5), state("l", 5_000), 200, &[]),
        row("greatest", state("l", 5), state("l", u64::MAX), 200, &[]),
        row("lower", state("l", 5), state("l", 4), 409, &["5", "4"]),
        row("much lower", state("l", u64::MAX), state("l", 0), 409, &["18446744073709551615", "0"]),
        row(
            "neighbours beyond 2^53",
            state("l", 9_007_199_254_740_993),
            state("l", 9_007_199_254_740_992),
            409,
            &["9007199254740993", "9007199254740992"],
        ),
        row("equal, other bytes", state("l", 5), state_with("l", 5, "other"), 409, &["5"]),
        row("equal, other spelling", state("l", 5), format!("{}\n", state("l", 5)), 409, &["5"]),
        row("equal, same bytes", state("l", 5), state("l", 5), 200, &[]),
        row("other lineage", state("first", 5), state("second", 6), 409, &["first", "second"]),
        row("lineages are opaque", state("LINE", 5), state("line", 6), 409, &["LINE", "line"]),
        row("empty posted lineage", state("l", 5), state("", 1), 200, &[]),
        row("empty stored lineage", state("", 5), state("l", 1), 200, &[]),
        row("absent posted lineage", state("l", 5), without(&state("l", 4), "lineage"), 200, &[]),
        row("absent stored lineage", without(&state("l", 5), "lineage"), state("l", 4), 200, &[]),
        row("absent posted serial is 0", state("l", 5), without(&state("l", 4), "serial"), 409, &["5", "0"]),
        row("empty stored, other lineage", empty_state("first", 5), state("second", 1), 200, &[]),
        row("empty stored, lower serial", empty_state("l", 5), state("l", 1), 200, &[]),
        row("empty stored, equal serial", empty_state("l", 5), state("l", 5), 200, &[]),
        row(
            "block without instances is empty",
            with(&empty_state("l", 5), "resources", block),
            state("m", 1),
            200,
            &[],
        ),
        row(
            "outputs alone are not empty",
            with(&empty_state("l", 5), "outputs", output),
            state("m", 1),
            409,
            &["l", "m"],
        ),
        row("empty posted is no exception", state("l", 5), empty_state("l", 4), 409, &["5", "4"]),
        row("sealed next", state("l", 5), envelope(Some("l"), Some(6), "a"), 200, &[]),
        row("sealed lower", state("l", 5), envelope(Some("l"), Some(4), "a"), 409, &["5", "4"]),
        row(
            "sealed equal",
            envelope(Some("l"), Some(5), "a"),
            envelope(Some("l"), Some(5), "b"),
            409,
            &["5"],
        ),
        row("sealed other lineage", envelope(Some("l"), Some(5), "a"), state("m", 6), 409, &["l", "m"]),
        row("sealed to plain lower", envelope(Some("l"), Some(5), "a"), state("l", 4), 409, &["5", "4"]),
        row(
            "sealed is never known to be empty",
            envelope(Some("l"), Some(5), ""),
            state("m", 1),
            409,
            &["l", "m"],
        ),
        row("sealed without both, stored", envelope(None, None, "a"), state("m", 1), 200, &[]),
        row("sealed without both, posted", state("l", 5), envelope(None, None, "a"), 200, &[]),
        row("sealed without serial", state("l", 5), envelope(Some("l"), None, "a"), 200, &[]),
        row(
            "sealed without serial, other lineage",
            state("l", 5),
            envelope(Some("m"), None, "a"),
            409,
            &["l", "m"],
        ),
        row("sealed without lineage", state("l", 5), envelope(None, Some(1), "a"), 200, &[]),
    ]
}

#[tokio::test]
async fn a_state_follows_another_by_serial_and_lineage() {
    let server = InProcess::new();
    for (number, Row { what, stored, posted, code, names }) in rows().into_iter().enumerate() {
        let tenant = format!("t{number}");
        server.post(&tenant, stored.clone()).await.expect(200, &format!("{what}: the stored state"));
        let answer = server.post(&tenant, posted.clone()).await.expect(code, what);
        let kept = if code == 200 { &posted } else { &stored };
        assert_eq!(server.current(&tenant).await.unwrap(), Bytes::from(kept.clone()), "{what}");
        if code != 200 {
            let message = answer.message();
            assert!(names.iter().all(|name| message.contains(name)), "{what}: {message}");
        }

        // The same under a lock: only that of `state push` sets the rules aside, and it shows.
        for (number, operation, code) in [(1, lock::APPLY, code), (2, PUSH, 200)] {
            let (tenant, id) = (format!("{tenant}-{number}"), lock::id(number));
            server.post(&tenant, stored.clone()).await.expect(200, &format!("{what}: the stored state"));
            server.lock(&tenant, &id, operation).await.expect(200, what);
            server
                .post_under(&tenant, &id, posted.clone())
                .await
                .expect(code, &format!("{what} under {operation}"));
            server.unlock(&tenant, &id).await.expect(200, what);
            let versions = server.versions(&tenant).await;
            let forced = versions.last().unwrap()["forced"] == true;
            assert_eq!(forced, operation == PUSH && !names.is_empty(), "{what} under {operation}");
        }
    }
}

#[tokio::test]
async fn what_counts_is_the_current_serial_and_not_the_highest() {
    let server = InProcess::new();
    server.post("web", state("l", 10)).await.expect(200, "POST");
    server.push("web", &lock::id(1), state("l", 3)).await.expect(200, "a push back");
    server.post("web", state("l", 3)).await.expect(200, "the same bytes again");
    server.post("web", state("l", 2)).await.expect(409, "lower than the current one");
    server.post("web", state("l", 4)).await.expect(200, "above the current one");
    assert_eq!(server.versions("web").await.len(), 3);
}

#[tokio::test]
async fn after_a_deletion_anything_may_come() {
    let server = InProcess::new();
    server.post("web", state("l", 10)).await.expect(200, "POST");
    server.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    server.post("web", state("m", 1)).await.expect(200, "another state");
    let versions = server.versions("web").await;
    assert_eq!(versions.iter().map(|version| &version["forced"]).collect::<Vec<_>>(), [false; 3]);
}

#[tokio::test]
async fn a_real_envelope_is_kept_as_it_is() {
    let server = InProcess::new();
    let sealed = fixture::state("tofu-encrypted");
    server.post("web", sealed.body.clone()).await.expect(200, "POST");
    assert_eq!(server.current("web").await.unwrap(), sealed.body);
    let version = &server.versions("web").await[0];
    assert_eq!(version["encrypted"], true);
    assert!(version.get("resources").is_none());
}

#[tokio::test]
async fn writes_say_how_they_were_made() {
    let server = InProcess::new();
    let id = lock::id(1);
    server.post("web", state("l", 1)).await.expect(200, "POST");
    server.lock("web", &id, lock::APPLY).await.expect(200, "LOCK");
    server.post_under("web", &id, state("l", 2)).await.expect(200, "POST under a lock");
    server.unlock("web", &id).await.expect(200, "UNLOCK");
    let versions = server.versions("web").await;
    let facts = |name: &str| versions.iter().map(|version| version[name].clone()).collect::<Vec<_>>();
    assert_eq!(facts("unlocked"), [true, false]);
    assert_eq!(facts("lockOperation"), [Value::Null, lock::APPLY.into()]);
    assert_eq!(facts("writtenBy"), ["127.0.0.1", "127.0.0.1"]);
    assert_eq!(facts("serial"), [1, 2]);

    server
        .send("PATCH", "/rezus/v1/tenants/web", r#"{"requireLocks":true}"#)
        .await
        .expect(200, "require locks");
    let refused = server.post("web", state("l", 3)).await.expect(423, "POST without the lock");
    assert!(refused.message().contains("lock_address"));
    server.send("DELETE", "/state/web", "").await.expect(423, "DELETE without the lock");
    server.push("web", &lock::id(2), state("l", 3)).await.expect(200, "POST under the lock");
}

#[tokio::test]
async fn snapshots_of_one_operation_are_marked_once_it_writes_again() {
    let server = InProcess::new();
    let (first, second) = (lock::id(1), lock::id(2));
    for (id, serials) in [(&first, [1, 2, 3]), (&second, [4, 5, 6])] {
        server.lock("web", id, lock::APPLY).await.expect(200, "LOCK");
        for serial in serials {
            server.post_under("web", id, state("l", serial)).await.expect(200, "a snapshot");
        }
        server.unlock("web", id).await.expect(200, "UNLOCK");
    }
    let marks: Vec<bool> =
        server.versions("web").await.iter().map(|version| version["intermediate"] == true).collect();
    assert_eq!(marks, [true, true, false, true, true, false]);
    let listed = server.get("/rezus/v1/tenants/web/versions").await.items();
    assert_eq!(listed.iter().map(|version| version["serial"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 6]);
}
