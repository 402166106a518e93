//! Bodies that are no states: malformed, damaged, too large, or something else.

use axum::body::Body;
use bytes::Bytes;
use rezus_server::config::{ByteSize, StateConfig};
use rezus_testkit::fixture::{self, Accept};
use serde_json::{Value, json};

use crate::answer::content_md5;
use crate::in_process::{InProcess, local};
use crate::lock::{self, APPLY, state, state_with};

/// No answer, refusal or log line may hold it: it stands for what a state keeps secret.
const CANARY: &str = "canary-7f3a9c";

/// A state of the canary's, changed by `change`.
fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut state: Value = serde_json::from_str(&state_with("l", 2, CANARY)).unwrap();
    state["outputs"] = json!({ CANARY: { "value": CANARY, "type": "string" } });
    change(&mut state);
    state.to_string().into_bytes()
}

fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let whole = changed(|_| {});
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut rows: Vec<(&str, Vec<u8>)> = vec![
        ("zero bytes", Vec::new()),
        ("white space", b" \n\t".to_vec()),
        ("no JSON", format!("secret = {CANARY}").into_bytes()),
        ("HTML", format!("<html>{CANARY}</html>").into_bytes()),
        ("byte order mark", [b"\xef\xbb\xbf", whole.as_slice()].concat()),
        ("UTF-16", text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("no UTF-8", [&whole[..whole.len() - 1], b",\"x\":\"\xff\"}"].concat()),
        ("trailing bytes", [whole.as_slice(), b"x"].concat()),
        ("two documents", [whole.as_slice(), whole.as_slice()].concat()),
        ("trailing zero", [whole.as_slice(), b"\0"].concat()),
        ("comment", [b"// state\n", whole.as_slice()].concat()),
        ("single quotes", text.replace('"', "'").into_bytes()),
        ("trailing comma", text.replace("\"check_results\":null", "\"check_results\":null,").into_bytes()),
        ("bare control character", text.replacen(CANARY, &format!("{CANARY}\n"), 1).into_bytes()),
        (
            "half a surrogate pair is text, half an escape is not",
            text.replacen(CANARY, "\\u12", 1).into_bytes(),
        ),
        ("a saved plan is a zip", b"PK\x03\x04\x14\x00\x08\x00".to_vec()),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff".to_vec()),
        ("deep nesting that never closes", vec![b'['; 1 << 20]),
    ];
    rows.extend((1..whole.len()).step_by(37).map(|length| ("cut", whole[..length].to_vec())));
    rows.push(("cut by one byte", whole[..whole.len() - 1].to_vec()));
    rows
}

/// What reads as JSON and is no state: with a piece of the text that says which kind, or where.
fn unacceptable() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let text = |value: Value| value.to_string().into_bytes();
    let legacy = |version: u64| json!({ "version": version, "terraform_version": "0.11.14", "serial": 2, "lineage": "l", "modules": [{ "path": ["root"], "outputs": { CANARY: CANARY } }] });
    let first = "/resources/0/instances/0";
    let set = |pointer: &'static str, value: Value| {
        changed(move |state| {
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            state.pointer_mut(parent).unwrap()[member] = value;
        })
    };
    vec![
        ("version 1", text(legacy(1)), &["version 1"]),
        ("version 2", text(legacy(2)), &["version 2"]),
        ("version 3", text(legacy(3)), &["version 3", "0.11.14"]),
        ("version 5", set("/version", 5.into()), &["version 5"]),
        ("version 0", set("/version", 0.into()), &["version"]),
        ("version as text", set("/version", "4".into()), &["version"]),
        ("version as fraction", set("/version", json!(4.5)), &["version"]),
        ("no version", changed(|state| drop(state.as_object_mut().unwrap().remove("version"))), &["version"]),
        ("array", text(json!([CANARY])), &["not an object"]),
        ("text", text(json!(CANARY)), &["not an object"]),
        ("null", text(Value::Null), &["not an object"]),
        ("number", text(json!(4)), &["not an object"]),
        (
            "plan as JSON",
            text(
                json!({ "format_version": "1.2", "terraform_version": "1.12.6", "planned_values": { "outputs": { CANARY: {} } }, "resource_changes": [] }),
            ),
            &["plan"],
        ),
        (
            "state as shown",
            text(
                json!({ "format_version": "1.0", "terraform_version": "1.12.6", "values": { "outputs": { CANARY: {} } } }),
            ),
            &["show -json"],
        ),
        ("unknown mode", set("/resources/0/mode", "ephemeral".into()), &["resources[0]", "mode"]),
        (
            "unknown status",
            changed(|state| state["resources"][0]["instances"][0]["status"] = CANARY.into()),
            &["instances[0]", "status"],
        ),
        (
            "key of a wrong kind",
            changed(|state| state["resources"][0]["instances"][0]["index_key"] = true.into()),
            &["instances[0]", "index_key"],
        ),
        (
            "same instance twice",
            changed(|state| {
                let twice = state.pointer(first).unwrap().clone();
                state["resources"][0]["instances"].as_array_mut().unwrap().push(twice);
            }),
            &["terraform_data.one", "twice"],
        ),
        (
            "same deposed twice",
            changed(|state| {
                let mut old = state.pointer(first).unwrap().clone();
                old["deposed"] = "0badcafe".into();
                let all = state["resources"][0]["instances"].as_array_mut().unwrap();
                all.extend([old.clone(), old]);
            }),
            &["terraform_data.one", "0badcafe", "twice"],
        ),
        (
            "same key twice, spelt twice",
            changed(|state| {
                let all = state["resources"][0]["instances"].as_array_mut().unwrap();
                let (mut a, mut b) = (all[0].clone(), all[0].clone());
                a["index_key"] = json!(2);
                b["index_key"] = json!(2.0);
                *all = vec![a, b];
            }),
            &["terraform_data.one[2]", "twice"],
        ),
        (
            "sensitive_attributes as texts",
            changed(|state| state["resources"][0]["instances"][0]["sensitive_attributes"] = json!([CANARY])),
            &["instances[0]", "sensitive_attributes"],
        ),
        (
            "sensitive_attributes as one path",
            changed(|state| {
                state["resources"][0]["instances"][0]["sensitive_attributes"] =
                    json!([{ "type": "get_attr", "value": CANARY }]);
            }),
            &["instances[0]", "sensitive_attributes"],
        ),
        ("resources as object", set("/resources", json!({ CANARY: {} })), &["resources"]),
    ]
}

/// Posts each body to a tenant with a state, and sees that nothing comes of it but the refusal.
async fn are_refused(rows: Vec<(&str, Vec<u8>, &[&str])>, code: u16) {
    let server = InProcess::new();
    let id = lock::id(1);
    server.post("web", state("l", 1)).await.expect(200, "the state before");
    server.lock("web", &id, lock::PUSH).await.expect(200, "LOCK");
    for (number, (what, body, names)) in rows.into_iter().enumerate() {
        let answer = server.post_under("web", &id, body.clone()).await.expect(code, what);
        let message = answer.message();
        assert!(names.iter().all(|name| message.contains(name)), "{what}: {message}");
        assert!(!String::from_utf8_lossy(&answer.body).contains(CANARY), "{what} is repeated: {message}");
        assert_eq!(server.current("web").await.unwrap(), state("l", 1), "{what}");
        let refusals = server.refusals("web").await;
        assert_eq!((refusals.len(), &refusals[0]["code"]), ((number + 1).min(100), &code.into()), "{what}");
        assert!(!refusals[0].to_string().contains(CANARY), "{what} is repeated: {}", refusals[0]);
        // As the first state of a tenant it is no better.
        server.post("new", body).await.expect(code, what);
    }
    assert_eq!(server.versions("web").await.len(), 1);
    server.get("/rezus/v1/tenants/new").await.expect(404, "no tenant comes of a refused write");
    server.post_under("web", &id, state("l", 2)).await.expect(200, "the lock is still held, and good");
}

#[tokio::test]
async fn what_is_no_whole_json_document_is_refused_as_malformed() {
    are_refused(malformed().into_iter().map(|(what, body)| (what, body, &[][..])).collect(), 400).await;
}

#[tokio::test]
async fn json_that_is_no_acceptable_state_is_refused_with_its_kind_or_place() {
    are_refused(unacceptable(), 422).await;
}

#[tokio::test]
async fn a_lock_info_is_named_as_what_it_is() {
    let body = lock::info(CANARY, APPLY).into_bytes();
    are_refused(vec![("lock info", body, &["lock info"])], 422).await;
}

#[tokio::test]
async fn every_fixture_is_kept_or_refused_as_it_says() {
    for fixture in fixture::states() {
        let server = InProcess::new();
        let answer = server.post("web", fixture.body.clone()).await;
        match fixture.expect.accept() {
            Accept::Project | Accept::StoreOnly => {
                answer.expect(200, &fixture.name);
                assert_eq!(server.current("web").await.unwrap(), fixture.body, "{}", fixture.name);
            }
            Accept::Refuse => {
                let answer = answer.expect(422, &fixture.name);
                let refusals = server.refusals("web").await;
                for secret in fixture.expect.secret_strings() {
                    assert!(!answer.message().contains(secret), "{} is repeated", fixture.name);
                    assert!(!refusals[0].to_string().contains(secret), "{} is repeated", fixture.name);
                }
            }
            Accept::NoState => drop(answer.expect(400, &fixture.name)),
        }
    }
}

#[tokio::test]
async fn a_body_that_does_not_match_its_digest_is_refused() {
    let server = InProcess::new();
    server.post("web", state("l", 1)).await.expect(200, "the state before");
    let body = state_with("l", 2, CANARY).into_bytes();
    let digest = content_md5(&body);
    let one_byte_off: Vec<u8> =
        String::from_utf8(body.clone()).unwrap().replacen("canary", "canarz", 1).into_bytes();
    let mut flipped = body.clone();
    flipped[20] ^= 1;
    for (what, header, body) in [
        ("one byte changed", digest.as_str(), one_byte_off),
        ("one bit flipped", digest.as_str(), flipped),
        ("tail cut", &digest, body[..body.len() - 10].to_vec()),
        ("nothing left", &digest, Vec::new()),
        ("another digest", &content_md5(b""), body.clone()),
        ("no base64", "not base64!", body.clone()),
        ("hexadecimal", "d41d8cd98f00b204e9800998ecf8427e", body.clone()),
        ("15 bytes", "AAAAAAAAAAAAAAAAAAAA", body.clone()),
        ("empty header", "", body.clone()),
    ] {
        let headers = [("content-md5", header)];
        let answer = server.send_as(local(), "POST", "/state/web", &headers, body).await.expect(400, what);
        assert!(!answer.message().contains(CANARY), "{what}");
        assert_eq!(server.current("web").await.unwrap(), state("l", 1), "{what}");
    }
    assert_eq!(server.versions("web").await.len(), 1);
    let headers = [("content-md5", digest.as_str())];
    server.send_as(local(), "POST", "/state/web", &headers, body.clone()).await.expect(200, "its digest");
    let answer = server.get("/state/web").await;
    assert_eq!(answer.header("content-md5"), Some(digest.as_str()));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.body, body);
}

#[tokio::test]
async fn a_state_over_the_limit_is_refused_with_the_limit() {
    let body = Bytes::from(state("l", 2));
    let limit = u64::try_from(body.len()).unwrap();
    let server = InProcess::with(StateConfig { max_body: ByteSize(limit), ..StateConfig::default() });
    let over = state_with("l", 3, CANARY);
    assert!(over.len() > body.len());
    let announced = over.len().to_string();
    for headers in [&[("content-length", announced.as_str())][..], &[]] {
        let answer = server.send_as(local(), "POST", "/state/web", headers, over.clone()).await;
        let message = answer.expect(413, "over the limit").message();
        assert!(message.contains(&limit.to_string()), "{message}");
    }
    assert_eq!(server.refusals("web").await.len(), 2);
    server.get("/state/web").await.expect(404, "nothing was kept");
    server.post("web", body.clone()).await.expect(200, "as large as the limit");
    assert_eq!(server.current("web").await.unwrap(), body);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_kept() {
    let server = InProcess::new();
    let half = Bytes::from(state("l", 1)[..100].to_owned());
    let error = std::io::Error::other("the connection broke");
    let body = Body::from_stream(futures_util::stream::iter([Ok(half), Err(error)]));
    let answer = server.send_body(local(), "POST", "/state/web", &[("content-length", "500")], body).await;
    let message = answer.expect(400, "a body that breaks off").message();
    assert!(message.contains("100 of 500"), "{message}");
    server.get("/state/web").await.expect(404, "nothing was kept");
}
