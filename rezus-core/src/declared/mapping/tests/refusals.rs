//! What is no mapping, and how that is told.

use super::*;

fn refused(text: &str) -> Vec<String> {
    compiled(text).expect_err(text).iter().map(ToString::to_string).collect()
}

fn refused_rule(rule: &str) -> String {
    refused(&format!("mapping: x\ntypes:\n  m:\n    kind: Machine\n    fields:\n      name: {rule}\n"))
        .remove(0)
}

#[test]
fn faults_are_told_with_file_line_and_reason() {
    let text = "mapping: x\ntypes:\n  m:\n    kind: Machine\n    fields:\n      nmae: $.a\n      name: $.\n      zone:\n        - {path: $.a, match: '('}\n        - {path: $.a, shout: true}\n";
    let found = refused(text);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].starts_with("test.yaml:6: unknown field \"nmae\""), "{}", found[0]);
    assert!(found[1].starts_with("test.yaml:7: bad path"), "{}", found[1]);
    assert!(found.iter().any(|fault| fault.starts_with("test.yaml:9: bad expression")), "{found:?}");
    assert!(
        found.iter().any(|fault| fault.starts_with("test.yaml:10: unknown field \"shout\"")),
        "{found:?}"
    );
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    let cases = [
        ("{path: $.a, context: key}", "exactly one of"),
        ("{tag: x}", "exactly one of"),
        ("{context: weather}", "unknown context"),
        ("{context: element}", "unknown context"),
        ("'@.a'", "each block"),
        ("{path: $.a, match: 'a'}", "exactly one capture"),
        ("{path: $.a, match: '(a)(b)'}", "exactly one capture"),
        ("{path: $.a, table: colours}", "unknown table"),
        ("{path: $.a, unit: stone}", "unknown unit"),
        ("{path: $.a, precedence: high}", "whole number"),
        ("{path: $.a, last: ''}", "last is empty"),
        ("{path: $.a, url_host: maybe}", "true or false"),
        ("{path: $.a, lift: {yaml: machine.token}}", "may not be lifted"),
        ("{context: key, lift: {yaml: machine.type}}", "belongs to a path"),
        ("{path: $.a, with: x}", "belongs to concat"),
        ("{path: $.a, parallel: {not: [x]}}", "no names"),
        ("[]", "is empty"),
        ("{join: {type: a, read: $.b}}", "where is missing"),
        ("{join: {where: {$.a: $.b}, read: $.b}}", "type is missing"),
        ("{join: {type: a, where: {$.a: context.x}, read: $.b}}", "unknown context"),
        ("{depends: {type: a}}", "read is missing"),
    ];
    for (rule, reason) in cases {
        let fault = refused_rule(rule);
        assert!(fault.contains(reason) && fault.starts_with("test.yaml:6: "), "{rule}: {fault}");
    }
    let join = |read: &str| format!("{{join: {{type: t, where: {{$.a: $.b}}, read: {read}}}}}");
    let deep = join(&join(&join(&join("$.a"))));
    assert!(refused_rule(&deep).contains("joins nest deeper"), "{}", refused_rule(&deep));
    let deep = (0..12).fold("$.a".to_owned(), |rule, _| format!("{{first: [{rule}]}}"));
    assert!(refused_rule(&deep).contains("rules nest deeper"));
    assert!(refused_rule(&format!("[{}]", vec!["$.a"; 40].join(","))).contains("more than 32"));
}

#[test]
fn types_that_cannot_be_meant_are_refused() {
    let of = |block: &str| refused(&format!("mapping: x\ntypes:\n  m: {block}\n")).remove(0);
    for (block, reason) in [
        ("{fields: {name: $.a}}", "kind is missing"),
        ("{kind: Robot}", "unknown kind \"Robot\": known are"),
        ("{kind: Ignore, fields: {name: $.a}}", "and no more"),
        ("{kind: Machine, schema: [3, 1]}", "[FROM, TO]"),
        ("{kind: Machine, where: [{path: $.a}]}", "exactly one of is, not"),
        ("{kind: Machine, where: [{is: x}]}", "either a path or a context"),
        ("{kind: Machine, each: {key: '@.a'}}", "each has no path"),
        ("{kind: Machine, secrets: ['$.a[0]']}", "members, .* and [*]"),
        ("{kind: Machine, fields: {role: {path: $.a, table: {x: boss}}}}", "\"boss\" in the table of role"),
        ("{kind: Machine, fields: {addresses: {elsewhere: [$.a]}}}", "unknown field \"elsewhere\""),
        ("skip", "or the word ignore, not \"skip\""),
    ] {
        assert!(of(block).contains(reason), "{block}: {}", of(block));
    }
    assert!(refused("mapping: x\ntypes:\n  data.m: {kind: Machine}\n")[0].contains("no machine"));
    assert!(refused("mapping: X y\ntypes: {}\n")[0].contains("no name"));
    assert!(refused("types: {}\n")[0].contains("name is missing"));
    assert!(refused("mapping: x\n")[0].contains("types is missing"));
    assert!(refused("mapping: x\nsources: [hcloud]\ntypes: {}\n")[0].contains("HOST/NAMESPACE/TYPE"));
    assert!(refused("mapping: x\ntypes: {m: ignore, m: ignore}\n")[0].starts_with("test.yaml:2: "));
}

#[test]
fn mappings_are_told_apart_by_source_or_refused() {
    let file = |name: &str, mapping: &str, source: &str| MappingFile {
        name: name.to_owned(),
        text: format!(
            "mapping: {mapping}\nsources: ['{source}']\ntypes:\n  zz_server: {{kind: Machine, fields: {{name: {{value: {mapping}}}}}}}\n  zz_only_{mapping}: ignore\n"
        ),
    };
    let apart = Mappings::compile(&[file("a", "zz-a", "*/one/zz"), file("b", "zz-b", "*/two/zz")]).unwrap();
    let name = |source: &str| {
        let rules = apart.inner.rules("zz_server", source)?;
        apart.providers().get(rules.provider).map(|provider| provider.name.as_str())
    };
    assert_eq!(name("registry.opentofu.org/two/zz"), Some("zz-b"));
    assert_eq!((name("r/three/zz"), name(""), name("r/-/zz")), (None, Some("zz-a"), Some("zz-a")));
    assert_eq!(apart.known("zz_server", "r/three/zz"), Known::Unknown);
    let errors =
        Mappings::compile(&[file("a", "zz-a", "*/one/zz"), file("b", "zz-b", "*/*/ZZ")]).unwrap_err();
    assert!(
        errors[0].to_string().starts_with("b:4: the mapping \"zz-a\" has zz_server too"),
        "{}",
        errors[0]
    );
    let errors = Mappings::compile(&[file("a", "zz-a", "*/*/a"), file("b", "zz-a", "*/*/b")]).unwrap_err();
    assert!(errors[0].reason.contains("another file"), "{}", errors[0]);
}

#[test]
fn a_given_mapping_takes_a_built_in_ones_place() {
    let text = "mapping: hcloud\ndescription: ours\ntypes:\n  hcloud_server: {kind: Machine, fields: {name: {context: key}}}\n";
    let given = MappingFile { name: "dir/hcloud.yaml".to_owned(), text: text.to_owned() };
    let mappings = Mappings::compile(&[given]).unwrap();
    let found: Vec<&Provider> = mappings.providers().iter().filter(|p| p.name == "hcloud").collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].origin, Origin::File("dir/hcloud.yaml".to_owned()));
    assert_eq!(found[0].types, [("hcloud_server".to_owned(), Some(Kind::Machine))]);
}
