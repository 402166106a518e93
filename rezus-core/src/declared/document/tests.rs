//! What a body is, and why it is refused.

use super::*;
use crate::declared::index::{InstanceKey, Mode};

fn state(resources: &str) -> Result<PlainState, DocumentError> {
    let body = format!(r#"{{"version":4,"serial":1,"outputs":{{}},"resources":{resources}}}"#);
    match read(body.as_bytes())? {
        Document::Plain(state) => Ok(state),
        Document::Encrypted(_) => panic!("not an envelope"),
    }
}

fn instances(instances: &str) -> Result<PlainState, DocumentError> {
    state(&format!(r#"[{{"mode":"managed","type":"a","name":"b","provider":"p","instances":{instances}}}]"#))
}

fn addresses(state: &PlainState) -> Vec<&str> {
    state.rows.iter().map(|row| row.address.as_str()).collect()
}

fn refusal(body: &str) -> DocumentError {
    read(body.as_bytes()).unwrap_err()
}

#[test]
fn a_row_says_where_its_object_is() {
    let body = r#"{"version":4,"serial": 18446744073709551615 ,"lineage":"l","terraform_version":"1.12.6",
        "outputs":{"o":{"value":1,"type":"number"}},"resources":[
        {"mode":"data","type":"t","name":"empty","instances":[]},
        {"module":"module.m[\"k\"]","mode":"managed","type":"t","name":"n","provider":"p","instances":[
        {"index_key":"x","status":"tainted","schema_version":0,"attributes":{"id":"1"}},
        {"index_key":"x","deposed":"deadbeef","provider":"q"}]}]}"#;
    let Document::Plain(state) = read(body.as_bytes()).unwrap() else { panic!() };
    assert_eq!(state.serial, Serial::new(u64::MAX));
    assert_eq!(&body[state.serial_span.clone().unwrap()], "18446744073709551615");
    assert_eq!((state.lineage.as_str(), state.writer.as_deref(), state.outputs), ("l", Some("1.12.6"), 1));
    let [current, deposed] = state.rows.as_slice() else { panic!() };
    assert_eq!(current.address.as_str(), r#"module.m["k"].t.n["x"]"#);
    assert_eq!(current.json_path(), "$.resources[1].instances[0]");
    assert_eq!((current.mode, current.tainted, current.provider.as_str()), (Mode::Managed, true, "p"));
    assert_eq!(current.key, Some(InstanceKey::Text("x".to_owned())));
    let span = usize::try_from(current.span.start).unwrap()..usize::try_from(current.span.end).unwrap();
    assert!(body[span.clone()].starts_with("{\"index_key\"") && body[span.clone()].ends_with("\"1\"}}"));
    assert_eq!(current.checksum, crc32fast::hash(&body.as_bytes()[span]));
    assert_eq!((deposed.deposed.as_deref(), deposed.provider.as_str()), (Some("deadbeef"), "q"));
}

#[test]
fn members_are_found_as_gos_reader_finds_them() {
    let body = r#"{"VERSION":4,"serial":1,"Serial":2,"serial":null,"lineage":null,"resources":{},"unknown":{"version":9},
        "Resources":[{"Mode":"data","mode":"managed","TYPE":"a","na\u006de":"b","instances":[{"Index_Key":2.0}]}]}"#;
    let Document::Plain(state) = read(body.as_bytes()).unwrap() else { panic!() };
    assert_eq!((state.serial, state.lineage.as_str()), (Serial::new(2), ""));
    assert_eq!(addresses(&state), ["a.b[2]"]);
}

#[test]
fn keys_that_differ_in_kind_are_different_instances() {
    let found =
        instances(r#"[{},{"index_key":0},{"index_key":"0"},{"index_key":1e1},{"index_key":""}]"#).unwrap();
    assert_eq!(addresses(&found), ["a.b", "a.b[0]", r#"a.b["0"]"#, "a.b[10]", r#"a.b[""]"#]);
}

#[test]
fn blocks_of_one_resource_are_merged_and_the_same_object_twice_is_refused() {
    let block = r#"{"mode":"managed","type":"a","name":"b","instances":[{"index_key":1}]}"#;
    let other = block.replace("1}", "2}");
    assert_eq!(addresses(&state(&format!("[{block},{other}]")).unwrap()), ["a.b[1]", "a.b[2]"]);
    let error = state(&format!("[{block},{block}]")).unwrap_err();
    assert_eq!(error.to_string(), "the state cannot be read: it holds a.b[1] twice");
    let deposed = r#"[{},{"deposed":"00000001"},{"deposed":"00000002"}]"#;
    assert_eq!(instances(deposed).unwrap().rows.len(), 3);
    assert!(instances(&deposed.replace('2', "1")).is_err());
}

#[test]
fn what_the_tools_read_is_never_refused() {
    for good in [
        "[null]",
        "null",
        r#"[{"attributes":null,"attributes_flat":null,"sensitive_attributes":null,"dependencies":null}]"#,
        r#"[{"attributes":[1],"identity":7,"private":"","skip_destroy":true,"depends_on":["x"]}]"#,
        r#"[{"attributes_flat":{"a.#":"1"},"dependencies":["module.a.b.c"],"create_before_destroy":true}]"#,
        r#"[{"status":"","deposed":"","index_key":null,"schema_version":null,"provider":null}]"#,
    ] {
        assert!(instances(good).is_ok(), "{good}");
    }
    for good in ["null", r#"[{"module":"not one","mode":"data","type":"","name":"","each":"list"}]"#] {
        assert!(state(good).is_ok(), "{good}");
    }
    for good in [
        r#"{"version":4}"#,
        r#"{"version":4,"check_results":null,"terraform_version":"","outputs":null,"format_version":"1"}"#,
        r#"{"version":4,"check_results":[{"any":"thing"}],"terraform_version":"1.6.0-dev"}"#,
        r#"{"version":4,"encryption_version":"v0","encrypted_data":"x"}"#,
    ] {
        assert!(matches!(read(good.as_bytes()), Ok(Document::Plain(_))), "{good}");
    }
}

#[test]
fn what_the_tools_cannot_read_is_refused_and_named() {
    for bad in [
        r#"[{"index_key":true}]"#,
        r#"[{"status":"gone"}]"#,
        r#"[{"deposed":"123"}]"#,
        r#"[{"schema_version":-1}]"#,
        r#"[{"schema_version":1.0}]"#,
        r#"[{"attributes_flat":{"a":1}}]"#,
        r#"[{"sensitive_attributes":["a"]}]"#,
        r#"[{"sensitive_attributes":[[{"type":"attr","value":"a"}]]}]"#,
        r#"[{"dependencies":[1]}]"#,
        r#"[{"create_before_destroy":1}]"#,
        "[1]",
        "{}",
    ] {
        let error = instances(bad).unwrap_err();
        assert!(matches!(error, DocumentError::Unreadable { .. }), "{bad}");
        assert!(error.to_string().contains("$.resources[0]"), "{error}");
    }
    for bad in ["{}", "[null]", r#"[{"mode":"ephemeral"}]"#, r#"[{"mode":"data","name":1}]"#] {
        assert!(matches!(state(bad), Err(DocumentError::Unreadable { .. })), "{bad}");
    }
    for bad in [
        r#""serial":"4""#,
        r#""serial":1.0"#,
        r#""serial":-1"#,
        r#""lineage":1"#,
        r#""terraform_version":"banana""#,
        r#""check_results":{}"#,
        r#""outputs":[]"#,
        r#""outputs":{"a":{"value":1}}"#,
        r#""outputs":{"a":{"type":"number","value":1,"sensitive":"yes"}}"#,
    ] {
        let error = refusal(&format!(r#"{{"version":4,{bad}}}"#));
        assert!(matches!(error, DocumentError::Unreadable { .. }), "{bad}");
    }
}

#[test]
fn each_kind_of_document_is_called_by_its_name() {
    use DocumentError as E;
    let legacy =
        |version, writer: Option<&str>| E::LegacyVersion { version, writer: writer.map(str::to_owned) };
    let cases = [
        ("", E::Empty),
        ("\u{feff}{}", E::ByteOrderMark),
        (r#"{"version":1,"serial":3}"#, legacy(1, None)),
        (r#"{"version":3,"terraform_version":"0.11.14","resources":1}"#, legacy(3, Some("0.11.14"))),
        (r#"{"version":3,"terraform_version":"not one"}"#, legacy(3, None)),
        (
            r#"{"version":5,"terraform_version":"2.0.0"}"#,
            E::NewerVersion { version: 5, writer: Some("2.0.0".to_owned()) },
        ),
        (r#"{"version":"4"}"#, E::StrangeVersion),
        (r#"{"version":4.0}"#, E::StrangeVersion),
        (r#"{"version":0}"#, E::StrangeVersion),
        (r#"{"version":null}"#, E::NoVersion),
        (r#"{"format_version":"1.0","values":{}}"#, E::ShownPlan),
        (r#"{"ID":"x","Operation":"OperationTypeApply"}"#, E::LockInfo),
        (r#"{"ID":"x","Operation":"OperationTypeApply","Version":"1.12.6"}"#, E::LockInfo),
        (r#"{"version":3,"backend":{"type":"http","config":{"password":"secret"}}}"#, E::BackendCache),
        ("[]", E::NotAState),
        ("{}", E::NoVersion),
    ];
    for (body, error) in cases {
        assert_eq!(refusal(body), error, "{body}");
        assert_eq!(error.is_malformed(), body.is_empty() || body.starts_with('\u{feff}'));
    }
    for malformed in ["{", "{} x", r#"{"version":4,"resources":[1,]}"#, "\0\0"] {
        assert!(refusal(malformed).is_malformed(), "{malformed}");
    }
    assert_eq!(read(b"{\"a\":\"\xff\"}"), Err(E::NotUtf8 { offset: 6 }));
}

#[test]
fn an_envelope_is_known_by_its_marker() {
    let read = |body: &str| read(body.as_bytes());
    let body = r#"{"serial":12,"lineage":"l","meta":{},"encrypted_data":"eA==","encryption_version":"v0"}"#;
    let whole = Envelope { serial: Some(Serial::new(12)), lineage: Some(Lineage::new("l")) };
    assert_eq!(read(body), Ok(Document::Encrypted(whole)));
    let bare = r#"{"encrypted_data":"eA==","encryption_version":"v0"}"#;
    assert_eq!(read(bare), Ok(Document::Encrypted(Envelope { serial: None, lineage: None })));
    assert_eq!(read(&body.replace("v0", "")), Err(DocumentError::NoVersion));
    assert!(read(&body.replace("12", "-12")).is_err());
}

#[test]
fn a_member_that_cannot_be_read_is_named_with_its_resource() {
    let block = r#"{"module":"module.a[\"k\"]","mode":"managed","type":"t","name":"n","instances":[{},{"index_key":"x","status":"odd"}]}"#;
    let text = format!(
        r#"{{"version":4,"serial":1,"lineage":"l","resources":[{{"mode":"data","type":"d","name":"m","instances":[]}},{block}]}}"#
    );
    let error = read(text.as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains(r#"module.a["k"].t.n["x"]: $.resources[1].instances[1].status must be"#),
        "{error}"
    );
    let error = read(text.replace("\"data\"", "7").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("d.m: $.resources[0].mode must be"), "{error}");
    let nameless = text.replace("\"type\":\"t\"", "\"type\":7");
    let error = read(nameless.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("read: $.resources[1].type must be"), "{error}");
}

#[test]
fn a_lineage_that_no_tool_makes_is_refused() {
    let state = |length: usize| format!(r#"{{"version":4,"serial":1,"lineage":"{}"}}"#, "l".repeat(length));
    assert!(read(state(1_024).as_bytes()).is_ok());
    assert_eq!(read(state(1_025).as_bytes()), Err(DocumentError::LongLineage { length: 1_025 }));
}
