//! What is hidden stays hidden.

use super::*;

const MAPPING: &str = concat!(
    "  m:\n    kind: Machine\n    fields:\n",
    "      name: $.name\n      hostname: $.copy\n      image: $.pass\n",
    "      role: {path: $.user_data, lift: {yaml: machine.type}}\n      zone: {path: $.tags, tag: secret}\n",
    "    secrets: [$.pass, '$.list[*].token']\n    documents: [$.user_data]\n",
);
const DATA: &str = r"machine:\n  token: abcdef.0123456789\n  type: worker\n";

fn of(marks: &str) -> Extract {
    let mappings = only(MAPPING);
    let instance = format!(
        r#"{{"attributes":{{"name":"n","pass":"hunter2hunter2","copy":"see hunter2hunter2","user_data":"{DATA}","tags":{{"secret":"s3cr3t"}},"list":[{{"token":"t0k3nt0k3n"}}]}},"sensitive_attributes":[{marks}]}}"#
    );
    extracts(&mappings, &[block("managed", "m", "n", &[&instance])]).remove(0)
}

#[test]
fn a_secret_yields_nothing_anywhere_and_that_is_told() {
    let found = of("");
    assert_eq!(value(&found, Field::Name), Some("n"));
    assert_eq!((value(&found, Field::Image), value(&found, Field::Hostname)), (None, None));
    let mut told: Vec<&str> = found.problems.iter().map(|problem| problem.field.as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, ["hostname", "image"]);
    assert!(found.problems[0].reason.starts_with("hidden"));
    let shown = format!("{found:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("abcdef.0123"), "{shown}");
    let found = of(r#"[{"type":"get_attr","value":"name"}],[{"type":"get_attr","value":"tags"}]"#);
    assert_eq!((value(&found, Field::Name), value(&found, Field::Zone)), (None, None));
}

#[test]
fn only_a_document_can_be_lifted_from() {
    assert_eq!(value(&of(""), Field::Role), Some("worker"));
    let marked = r#"[{"type":"get_attr","value":"user_data"}]"#;
    assert_eq!(value(&of(marked), Field::Role), Some("worker"));
    let whole = r#"[{"type":"get_attr","value":"gone"}]"#;
    let found = of(whole);
    assert!(found.fields.is_empty() && !found.problems.is_empty(), "{found:?}");
    let credential = MAPPING
        .replace("documents:", "schema: [0, 9]\n    # documents:")
        .replace("$.pass, ", "$.user_data, ");
    let instance = format!(r#"{{"attributes":{{"user_data":"{DATA}"}}}}"#);
    let found = &extracts(&only(&credential), &[block("managed", "m", "n", &[&instance])])[0];
    assert_eq!(value(found, Field::Role), None);
    assert_eq!(found.problems[0].field, "role");
}

#[test]
fn secret_rules_are_kept_by_type_for_all_modes() {
    let mappings = only(
        "  data.x:\n    kind: Ignore\n    secrets: [$.a.*.b]\n  x:\n    kind: Ignore\n    documents: ['$.c[*].d']\n",
    );
    let rules = mappings.secret_rules("x");
    assert_eq!(rules.len(), 2);
    assert_eq!(rules.iter().map(|rule| rule.path.len()).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(mappings.known("x", ""), Known::Ignored);
    assert!(mappings.secret_rules("y").is_empty());
}
