//! What is hidden, and where.

use crate::declared::document::{Document, DocumentError, read, read_with};
use crate::declared::secrets::{RuleStep, SecretKind, SecretRule};

fn masked_in(outputs: &str, instances: &str) -> Result<Vec<Vec<String>>, DocumentError> {
    let body = format!(
        r#"{{"version":4,"outputs":{outputs},"resources":[{{"mode":"managed","type":"t","name":"n","instances":[{instances}]}}]}}"#
    );
    let Document::Plain(state) = read(body.as_bytes())? else { panic!() };
    Ok(state.rows.into_iter().map(|row| row.masked).collect())
}

/// Masks one object whose paths are given as `a.0.k`, a number for an element of a list.
fn marked(attributes: &str, paths: &[&str]) -> Vec<String> {
    let step = |step: &str| match step.parse::<u64>() {
        Ok(index) => format!(r#"{{"type":"index","value":{{"value":{index},"type":"number"}}}}"#),
        Err(_) => format!(r#"{{"type":"get_attr","value":"{step}"}}"#),
    };
    let path = |path: &&str| format!("[{}]", path.split('.').map(step).collect::<Vec<_>>().join(","));
    let paths = paths.iter().map(path).collect::<Vec<_>>().join(",");
    let object = format!(r#"{{"index_key":1,"attributes":{attributes},"sensitive_attributes":[{paths}]}}"#);
    masked_in("{}", &object).unwrap().remove(0)
}

#[test]
fn a_mark_hides_its_place_and_all_below() {
    assert_eq!(marked(r#"{"a":{"b":"x","c":[1]},"d":2}"#, &["a", "a.b"]), ["/attributes/a"]);
    assert_eq!(marked(r#"{"a":[{"k":1},{"k":2}]}"#, &["a.1.k"]), ["/attributes/a/1/k"]);
    assert_eq!(marked(r#"{"a":{"x":1}}"#, &["a"]), ["/attributes/a"]);
}

#[test]
fn a_mark_passes_through_dynamic_wrappers() {
    let attributes = r#"{"a":{"value":{"p":"hunter2-string","l":["x"]},"type":["object",{"p":"string","l":["list","string"]}]},
        "kind":"string","b":"is hunter2-string"}"#;
    assert_eq!(marked(attributes, &["a.p"]), ["/attributes/a/value/p", "/attributes/b"]);
    assert_eq!(marked(attributes, &["a.l.0"]), ["/attributes/a/value/l/0"]);
    assert_eq!(marked(attributes, &["a"]), ["/attributes/a", "/attributes/b"]);
    let typed_first =
        r#"{"a":{"type":["object",{"p":"string"}],"value":{"p":"hunter2"}},"kind":"string","b":"hunter2"}"#;
    assert_eq!(marked(typed_first, &["a"]), ["/attributes/a", "/attributes/b"]);
}

#[test]
fn a_mark_on_null_hides_nothing_and_one_that_leads_nowhere_hides_all() {
    assert_eq!(marked(r#"{"a":null,"b":{"c":null}}"#, &["a", "a.x.0", "b.c"]), [""; 0]);
    assert_eq!(marked("null", &["a"]), [""; 0]);
    for (attributes, path) in
        [(r#"{"a":1}"#, "b"), (r#"{"a":{}}"#, "a.b"), (r#"{"a":[1]}"#, "a.1"), (r#"{"a":"x"}"#, "a.b")]
    {
        assert_eq!(marked(attributes, &[path]), [""], "{path}");
    }
    let flat = r#"{"attributes_flat":{"a":"x"},"sensitive_attributes":[[{"type":"get_attr","value":"a"}]]}"#;
    assert_eq!(masked_in("{}", flat).unwrap(), [[""]]);
    assert_eq!(masked_in("{}", &flat.replace("attributes_flat", "unknown")).unwrap(), [[""; 0]]);
}

#[test]
fn an_element_of_a_set_hides_the_set() {
    let object = r#"{"attributes":{"s":[{"v":"first1"},{"v":"second"}]},"sensitive_attributes":[[
        {"type":"get_attr","value":"s"},
        {"type":"index","value":{"value":{"v":"second"},"type":["object",{"v":"string"}]}},
        {"type":"get_attr","value":"v"}]]}"#;
    let masked = masked_in("{}", object).unwrap().remove(0);
    assert_eq!(masked, ["/attributes/s", "/sensitive_attributes/0/1/value/value/v"]);
    let texts = r#"{"attributes":{"s":["a","b"]},"sensitive_attributes":[[{"type":"get_attr","value":"s"},
        {"type":"index","value":{"value":"a","type":"string"}}]]}"#;
    assert_eq!(masked_in("{}", texts).unwrap(), [["/attributes/s"]]);
}

#[test]
fn a_secret_is_hidden_wherever_it_turns_up() {
    let outputs = r#"{"o":{"value":{"value":["out-secret"],"type":"dynamic"},"type":"dynamic","sensitive":true},
        "p":{"value":"not-secret","type":"string"}}"#;
    let first = r#"{"index_key":1,"attributes":{"k":{"out-secret":1},"d":"dynamic","n":"not-secret","e":"b3V0LXNlY3JldA=="}}"#;
    let second =
        r#"{"attributes_flat":{"a.#":"<out-secret>"},"identity":["out\u002dsecret"],"private":"out-secret"}"#;
    let masked = masked_in(outputs, &format!("{first},{second}")).unwrap();
    assert_eq!(masked, [["/attributes/e", "/attributes/k"], ["/attributes_flat/a.#", "/identity/0"]]);
}

#[test]
fn what_terraform_data_puts_out_is_as_secret_as_what_was_put_in() {
    let body = br#"{"version":4,"resources":[{"mode":"managed","type":"terraform_data","name":"n","instances":[{
        "attributes":{"input":{"value":{"l":[1,22]},"type":"dynamic"},"output":{"value":{"l":[1,22]},"type":"dynamic"}},
        "sensitive_attributes":[[{"type":"get_attr","value":"input"},{"type":"get_attr","value":"l"},
        {"type":"index","value":{"value":1,"type":"number"}}]]}]}]}"#;
    let Ok(Document::Plain(state)) = read(body) else { panic!() };
    assert_eq!(state.rows[0].masked, ["/attributes/input/value/l/1", "/attributes/output/value/l/1"]);
}

#[test]
fn short_secrets_and_numbers_count_in_their_own_place_only() {
    let attributes =
        r#"{"a":"abcde","b":"abcde","c":12345678,"d":12345678,"e":true,"f":"abcdef","g":"xabcdefx"}"#;
    assert_eq!(
        marked(attributes, &["a", "c", "e", "f"]),
        ["/attributes/a", "/attributes/c", "/attributes/e", "/attributes/f", "/attributes/g"]
    );
}

#[test]
fn paths_that_are_none_are_refused() {
    for bad in [
        "1",
        r#"["a"]"#,
        r#"[{"type":"get_attr"}]"#,
        r#"[{"type":"get_attr","value":1}]"#,
        r#"[{"type":"index","value":"a"}]"#,
        r#"[{"type":"index","value":{"value":"a"}}]"#,
        r#"[{"value":"a"}]"#,
        "[null]",
    ] {
        let object = format!(r#"{{"attributes":{{}},"sensitive_attributes":[{bad}]}}"#);
        assert!(matches!(masked_in("{}", &object), Err(DocumentError::Unreadable { .. })), "{bad}");
    }
}

#[test]
fn rules_of_a_type_need_no_mark() {
    let body = br#"{"version":4,"resources":[{"mode":"managed","type":"my_type","name":"n","instances":[{"attributes":{
        "pw":[{"x.y":"a credential"},{"x.y":null}],"doc":"a long document","copy":["a credential","a long document"],
        "old":"all in one text"}}]}]}"#;
    let rule = |kind, path: &[&'static str]| SecretRule {
        kind,
        path: path
            .iter()
            .map(|step| if *step == "*" { RuleStep::Any } else { RuleStep::Member((*step).into()) })
            .collect(),
    };
    let rules = [
        rule(SecretKind::Credential, &["pw", "x.y"]),
        rule(SecretKind::Document, &["doc"]),
        rule(SecretKind::Document, &["old", "*", "key"]),
        rule(SecretKind::Document, &["absent"]),
    ];
    let Ok(Document::Plain(state)) = read_with(body, &|of| if of == "my_type" { &rules } else { &[] }) else {
        panic!()
    };
    let expected = ["/attributes/copy/0", "/attributes/doc", "/attributes/old", "/attributes/pw/0/x.y"];
    assert_eq!(state.rows[0].masked, expected);
}
