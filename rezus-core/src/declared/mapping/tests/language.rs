//! Rules: paths, steps, joins.

use super::*;

#[test]
fn paths_pass_through_what_states_wrap_values_in() {
    for attributes in [
        r#"{"m":[{"v":"x"}]}"#,
        r#"{"m":{"v":"x"}}"#,
        r#"{"m":{"value":{"v":"x"},"type":["object",{"v":"string"}]}}"#,
        r#"{"m":{"v":{"value":"x","type":"string"}}}"#,
        r#"{"m":[{"v":["x"]}]}"#,
    ] {
        assert_eq!(name_of("$.m.v", attributes).as_deref(), Some("x"), "{attributes}");
        assert_eq!(name_of("'$.m[0].v'", attributes).as_deref(), Some("x"), "{attributes}");
        assert_eq!(name_of("'$.m[*].v'", attributes).as_deref(), Some("x"), "{attributes}");
    }
    assert_eq!(name_of("$.m.value", r#"{"m":{"value":"x","type":"string"}}"#).as_deref(), Some("x"));
    assert_eq!(name_of("$.m.type", r#"{"m":{"value":"x","type":"string"}}"#).as_deref(), Some("string"));
    let labels = r#"{"l":{"k8s.io/role's":"x"}}"#;
    assert_eq!(name_of(r#"{path: "$.l['k8s.io/role\\'s']"}"#, labels).as_deref(), Some("x"));
    assert_eq!(name_of("'$.a[-1][0]'", r#"{"a":[[1],[2.50]]}"#).as_deref(), Some("2.5"));
    assert_eq!(
        name_of("$.a.*", r#"{"a":{"b":"","c":12345678901234567890123}}"#).as_deref(),
        Some("12345678901234567890123")
    );
}

#[test]
fn flat_attributes_are_found_by_the_same_paths() {
    let flat = r#"{"n.#":"2","n.0.ip":"10.0.0.1","n.1.ip":"10.0.0.2","t.%":"1","t.a.b/c":"x","s.#":"1","s.1389306207":"y","name":"z"}"#;
    let mappings = only(
        "  m:\n    kind: Machine\n    fields:\n      name: \"$.t['a.b/c']\"\n      hostname: $.s[0]\n      zone: $.name\n      addresses: {internal: ['$.n[*].ip']}\n",
    );
    let instance = format!(r#"{{"attributes_flat":{flat}}}"#);
    let found = &extracts(&mappings, &[block("managed", "m", "n", &[&instance])])[0];
    assert_eq!(
        [Field::Name, Field::Hostname, Field::Zone].map(|f| value(found, f)),
        [Some("x"), Some("y"), Some("z")]
    );
    assert_eq!(spelt(found), ["I:10.0.0.1", "I:10.0.0.2"]);
    assert_eq!(
        found.fields[&Field::Name].source.path(),
        "$.resources[0].instances[0].attributes_flat['t.a.b/c']"
    );
}

#[test]
fn provenance_is_a_json_path_and_the_rule() {
    let mappings = only(
        "  m:\n    kind: Machine\n    fields:\n      name: {path: $.labels, tag: \"k8s.io/it's\"}\n      zone: {context: key}\n      cpus: '$.input[0].n'\n",
    );
    let instance = r#"{"index_key":"k","attributes":{"labels":{"k8s.io/it's":"x"},"input":{"value":{"n":1},"type":["object",{}]}}}"#;
    let found = &extracts(&mappings, &[block("managed", "m", "n", &["{}", instance])])[1];
    let source = |field| &found.fields[&field].source;
    assert_eq!(source(Field::Name).path(), r"$.resources[0].instances[1].attributes.labels['k8s.io/it\'s']");
    assert_eq!(&*source(Field::Name).place.rule, "$.labels tag k8s.io/it's");
    assert_eq!(source(Field::Name).address.as_str(), "m.n[\"k\"]");
    assert_eq!(source(Field::Zone).path(), "$.resources[0].instances[1]");
    assert_eq!(source(Field::Cpus).path(), "$.resources[0].instances[1].attributes.input.value.n");
}

#[test]
fn chains_fall_through_what_counts_as_nothing() {
    for nothing in [r#""""#, "null", "[]", "{}", r#""  ""#, r#""DHCP""#, "[1,2]", r#"{"a":{}}"#] {
        let attributes = format!(r#"{{"a":{nothing},"b":"x"}}"#);
        assert_eq!(name_of("[$.missing, $.a, $.b]", &attributes).as_deref(), Some("x"), "{nothing}");
    }
    let rule = "[{path: $.a, unless: ['Attempt to *', 0.0.0.0]}, $.b]";
    assert_eq!(name_of(rule, r#"{"a":"attempt to boot","b":"x"}"#).as_deref(), Some("x"));
    assert_eq!(name_of("{first: [$.a, $.b]}", r#"{"b":"x"}"#).as_deref(), Some("x"));
    assert_eq!(name_of("{concat: [$.a, $.b], with: ':'}", r#"{"a":"1","b":2}"#).as_deref(), Some("1:2"));
    assert_eq!(name_of("{concat: [$.a, $.b]}", r#"{"a":"1"}"#), None);
    assert_eq!(name_of("{value: fixed}", "{}").as_deref(), Some("fixed"));
}

#[test]
fn elements_are_chosen_by_their_siblings() {
    let nics = r#"{"n":[{"public":true,"family":4,"address":"203.0.113.1"},{"public":false,"family":4,"address":"10.0.0.1"},{"public":false,"family":6,"address":"fd00::1"}],"p":"10.0.0.1"}"#;
    let cases: [(&str, &[&str]); 6] = [
        ("$.n[?@.public == false].address", &["I:10.0.0.1", "I:fd00::1"]),
        ("$.n[?@.public == false && @.family != '6'].address", &["I:10.0.0.1"]),
        ("$.n[?!(@.public == false) || @.family == 6].address", &["I:203.0.113.1", "I:fd00::1"]),
        ("$.n[?@.address == $.p].address", &["I:10.0.0.1"]),
        ("$.n[?@.gone].address", &[]),
        ("$.n[?@.gone != 'x' && @.address == '[FD00:0::1]'].address", &["I:fd00::1"]),
    ];
    for (path, expected) in cases {
        assert_eq!(addresses_of(&format!("{{internal: [\"{path}\"]}}"), nics), expected, "{path}");
    }
    let bpg = r#"{"names":["lo","eth0","cilium_host"],"v4":[["127.0.0.1"],["10.0.0.5/24","10.0.0.9"],["10.244.0.1"]],"cfg":"10.0.0.7/24"}"#;
    let by = |parallel: &str| {
        let first = format!("{{first: [{{path: '$.v4[*][*]', parallel: {parallel}}}, $.cfg]}}");
        addresses_of(&format!("{{internal: [{first}]}}"), bpg)
    };
    assert_eq!(by("{names: $.names, not: [lo, 'cilium*']}"), ["I:10.0.0.5", "I:10.0.0.9"]);
    assert_eq!(by("{names: '$.names[*]', only: ['eth*']}"), ["I:10.0.0.5", "I:10.0.0.9"]);
    assert_eq!(by("{names: $.names, only: [lo]}"), ["I:10.0.0.7"]);
    assert_eq!(by("{names: $.gone, only: ['*']}"), ["I:10.0.0.7"]);
}

#[test]
fn tags_are_found_in_every_shape() {
    for tags in [
        r#"{"role":"worker"}"#,
        r#"["a","role:worker"]"#,
        r#"["role=worker"]"#,
        r#""x;role:worker""#,
        r#""role=worker,y""#,
        r#"[{"key":"x","value":"y"},{"key":"role","value":"worker"}]"#,
    ] {
        let attributes = format!(r#"{{"tags":{tags}}}"#);
        assert_eq!(name_of("{path: $.tags, tag: role}", &attributes).as_deref(), Some("worker"), "{tags}");
    }
    for tags in [r#"["x","Worker"]"#, r#""talos;worker""#, r#"{"worker":""}"#] {
        let attributes = format!(r#"{{"tags":{tags}}}"#);
        let rule = "{path: $.tags, tag: {any_of: [controlplane, worker]}}";
        assert_eq!(name_of(rule, &attributes).as_deref(), Some("worker"), "{tags}");
    }
    assert_eq!(name_of("{path: $.tags, tag: role}", r#"{"tags":["roles:x","role"]}"#), None);
}

#[test]
fn texts_are_worked_on_step_by_step() {
    let cases = [
        ("{path: $.a, match: '(?:^|,)ip=([^,]+)'}", "gw=1,ip=x", Some("x")),
        ("{path: $.a, match: '(?:^|,)ip=([^,]+)'}", "gw=1", None),
        ("{path: $.a, last: '/'}", "https://x/y/z", Some("z")),
        ("{path: $.a, before: '/'}", "x/y", Some("x")),
        ("{path: $.a, drop_last: '-', last: '/'}", "z/europe-west1-b", Some("europe-west1")),
        ("{path: $.a, drop_last: '-'}", "x", None),
        ("{path: $.a, strip_prefix: v}", "v1.2", Some("1.2")),
        ("{path: $.a, split: ';,', match: '^r-(.*)$'}", "a;b,r-1", Some("1")),
        ("{path: $.a, url_host: true}", "https://api.example:6443/x", Some("api.example")),
        ("{path: $.a, table: {X: y, '*': z}}", "x", Some("y")),
        ("{path: $.a, table: {X: y, '*': z}}", "q", Some("z")),
        ("{path: $.a, table: {X: y}}", "q", None),
        ("{context: text_key, match: '^([^/]+)/'}", "", Some("cp")),
        ("{context: provider_source, last: /}", "", Some("acme")),
        ("{context: module}", "", None),
        ("{context: name}", "", Some("node")),
    ];
    for (rule, text, expected) in cases {
        let attributes = format!(r#"{{"a":"{text}"}}"#);
        assert_eq!(name_of(rule, &attributes).as_deref(), expected, "{rule} {text}");
    }
}

#[test]
fn tables_units_and_numbers() {
    let role =
        |text: &str| field_of("role", Field::Role, "[$.a, {value: cp}]", &format!(r#"{{"a":"{text}"}}"#));
    assert_eq!(role("Worker").as_deref(), Some("worker"));
    assert_eq!(role("bastion").as_deref(), Some("controlplane"));
    let power = |text: &str| field_of("recordedPower", Field::Power, "$.a", &format!(r#"{{"a":{text}}}"#));
    assert_eq!(power("true").as_deref(), Some("running"));
    assert_eq!(power(r#""SHUTOFF""#).as_deref(), Some("stopped"));
    assert_eq!(power(r#""???""#), None);
    let memory = |rule: &str, attributes: &str| field_of("memoryMiB", Field::MemoryMib, rule, attributes);
    assert_eq!(memory("{path: $.m, unit: bytes}", r#"{"m":8589934592}"#).as_deref(), Some("8192"));
    assert_eq!(memory("{path: $.m, unit: GiB}", r#"{"m":"1.5e0"}"#).as_deref(), Some("1536"));
    let by_path = "{path: $.m, unit: KiB, unit_path: $.u}";
    assert_eq!(memory(by_path, r#"{"m":4,"u":"GiB"}"#).as_deref(), Some("4096"));
    assert_eq!(memory(by_path, r#"{"m":4096}"#).as_deref(), Some("4"));
    assert_eq!(memory("$.m", r#"{"m":8.192e3}"#).as_deref(), Some("8192"));
    let cpus = |attributes: &str| field_of("cpus", Field::Cpus, "{path: $.c, times: $.s}", attributes);
    assert_eq!(cpus(r#"{"c":2,"s":2}"#).as_deref(), Some("4"));
    assert_eq!(cpus(r#"{"c":"2.50"}"#).as_deref(), Some("2.5"));
    assert_eq!(cpus(r#"{"c":"host"}"#), None);
}

#[test]
fn addresses_are_cleaned_and_sorted() {
    let lists = "{internal: ['$.a[*]'], mixed: ['$.m[*]'], hostname: ['$.h[*]'], external: [$.e]}";
    let attributes = r#"{"a":["10.0.0.1/24","[fd00:0::1]","dhcp","","fe80::1","169.254.1.1","0.0.0.0",null],
        "m":["10.0.0.1","100.64.0.9","203.0.113.5","node.example"],"h":["edge-1","10.1.1.1"],"e":"::ffff:198.51.100.1"}"#;
    assert_eq!(
        addresses_of(lists, attributes),
        [
            "I:10.0.0.1",
            "I:fd00::1",
            "E:198.51.100.1",
            "I:100.64.0.9",
            "E:203.0.113.5",
            "H:node.example",
            "H:edge-1"
        ]
    );
    let mappings = only(
        "  m:\n    kind: Machine\n    fields:\n      addresses: {internal: [$.a], shared: ['$.vips[*]']}\n",
    );
    let instance = r#"{"attributes":{"a":"nonsense","vips":["10.0.0.9/32","10.0.0.9"]}}"#;
    let found = &extracts(&mappings, &[block("managed", "m", "n", &[instance])])[0];
    assert_eq!(found.shared_addresses, ["10.0.0.9"]);
    assert_eq!(
        (found.problems[0].field.as_str(), found.problems[0].reason.as_str()),
        ("addresses", "not an IP address")
    );
}

#[test]
fn joins_reach_over_three_hops_and_compare_as_text_or_address() {
    let mappings = only(concat!(
        "  vm:\n    kind: Machine\n    fields:\n",
        "      role: {join: {type: apply, where: {$.node: '$.ips[*]'}, read: $.role}}\n",
        "      addresses:\n        external:\n",
        "          - join:\n              type: [port, data.port]\n              where: {$.device: $.id}\n",
        "              read: {join: {type: assoc, where: {$.port: $.id}, read: {join: {type: fip, where: {$.id: $.fip}, read: $.ip}}}}\n",
    ));
    let blocks = [
        block(
            "managed",
            "fip",
            "f",
            &[
                r#"{"index_key":0,"attributes":{"id":"f1","ip":"203.0.113.1"}}"#,
                r#"{"index_key":1,"attributes":{"id":"f2","ip":"203.0.113.2"}}"#,
            ],
        ),
        block(
            "managed",
            "assoc",
            "a",
            &[
                r#"{"index_key":0,"attributes":{"port":"p1","fip":"f1"}}"#,
                r#"{"index_key":1,"attributes":{"port":"p2","fip":"f2"}}"#,
                r#"{"index_key":1,"deposed":"abcdef01","attributes":{"port":"p1","fip":"f2"}}"#,
            ],
        ),
        block("data", "port", "p", &[r#"{"attributes":{"id":"p1","device":"7"}}"#]),
        block("managed", "port", "p", &[r#"{"attributes":{"id":"p2","device":"7.0"}}"#]),
        block("managed", "apply", "x", &[r#"{"attributes":{"node":"2001:DB8:0::5","role":"worker"}}"#]),
        block("managed", "vm", "v", &[r#"{"attributes":{"id":7,"ips":["2001:db8::5/64"]}}"#]),
    ];
    let found = extracts(&mappings, &blocks);
    assert_eq!(found.len(), 1);
    assert_eq!(spelt(&found[0]), ["E:203.0.113.1"]);
    assert_eq!(value(&found[0], Field::Role), Some("worker"));
    assert_eq!(found[0].fields[&Field::Role].source.address.as_str(), "apply.x");
    assert_eq!(found[0].addresses[0].1.path(), "$.resources[0].instances[0].attributes.ip");
    assert_eq!(found[0].read.len(), 5);
    assert_eq!(mappings.known("fip", ""), Known::Ignored);
}

#[test]
fn a_join_can_be_of_one_module_and_of_so_many_objects() {
    let mappings = only(concat!(
        "  vm:\n    kind: Machine\n    fields:\n      name: {join: {type: port, module: same, where: {$.name: context.name}, read: $.v}}\n",
        "      addresses: {internal: [{join: {type: port, where: {$.name: context.name, $.n: $.n}, read: $.ip}}]}\n",
    ));
    let in_module =
        |module: &str, block: String| block.replacen('{', &format!(r#"{{"module":"{module}","#), 1);
    let many: Vec<String> = (0..70)
        .map(|i| {
            format!(r#"{{"index_key":{i},"attributes":{{"name":"v","n":{},"ip":"10.0.1.{i}"}}}}"#, i % 2)
        })
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let port = |v: &str| format!(r#"{{"attributes":{{"name":"v","v":"{v}"}}}}"#);
    let blocks = [
        in_module("module.a", block("managed", "port", "p", &[&port("in a")])),
        in_module("module.b", block("managed", "port", "p", &[&port("in b")])),
        block("managed", "port", "q", &many),
        in_module("module.b", block("managed", "vm", "v", &[r#"{"attributes":{"n":1}}"#])),
    ];
    let found = extracts(&mappings, &blocks);
    assert_eq!(value(&found[0], Field::Name), Some("in b"));
    assert_eq!(found[0].addresses.len(), 35);
    let crowded = only(
        "  vm:\n    kind: Machine\n    fields:\n      name: {join: {type: port, where: {$.name: context.name}, read: $.ip}}\n",
    );
    let found = extracts(&crowded, &blocks);
    assert_eq!(value(&found[0], Field::Name), None);
    assert!(found[0].problems[0].reason.contains("more than 64"), "{:?}", found[0].problems);
}

#[test]
fn dependencies_are_followed_and_ambiguity_is_told() {
    let mappings = only(
        "  apply:\n    kind: TalosMachine\n    fields:\n      role: {depends: {type: data.config, read: $.machine_type}}\n",
    );
    let depends = |on: &str| format!(r#"{{"attributes":{{}},"dependencies":["x.y","data.config.{on}"]}}"#);
    let blocks = [
        block(
            "data",
            "config",
            "cp",
            &[
                r#"{"index_key":0,"attributes":{"machine_type":"controlplane"}}"#,
                r#"{"index_key":1,"attributes":{"machine_type":"controlplane"}}"#,
            ],
        ),
        block(
            "data",
            "config",
            "mixed",
            &[
                r#"{"index_key":0,"attributes":{"machine_type":"controlplane"}}"#,
                r#"{"index_key":1,"attributes":{"machine_type":"worker"}}"#,
            ],
        ),
        block("managed", "apply", "a", &[&depends("cp")]),
        block("managed", "apply", "b", &[&depends("mixed")]),
        block("managed", "apply", "c", &[&depends("gone")]),
    ];
    let found = extracts(&mappings, &blocks);
    assert_eq!(value(&found[0], Field::Role), Some("controlplane"));
    assert_eq!(found[0].read, [4, 0]);
    assert_eq!((value(&found[1], Field::Role), found[1].problems.len()), (None, 1));
    assert!(found[1].problems[0].reason.starts_with("ambiguous"));
    assert_eq!((value(&found[2], Field::Role), found[2].problems.len()), (None, 0));
}

#[test]
fn an_element_is_a_machine_of_its_own() {
    let mappings = only(concat!(
        "  pool:\n    kind: Machine\n    each: {path: '$.pools[*].nodes[*]', key: '@.id'}\n    fields:\n",
        "      name: '@.name'\n      nodeGroup: ^.name\n      region: $.region\n      zone: {context: element}\n",
        "      hostname: {join: {type: host, where: {$.id: '@.id'}, read: $.name}}\n",
    ));
    let instance = r#"{"attributes":{"region":"r","pools":[{"name":"a","nodes":[{"id":1,"name":"a1"},{"id":2,"name":"a2"}]},{"name":"b","nodes":[{"id":1,"name":"b1"}]}]}}"#;
    let blocks = [
        block("managed", "host", "h", &[r#"{"attributes":{"id":2,"name":"h2"}}"#]),
        block("managed", "pool", "p", &[instance]),
    ];
    let found = extracts(&mappings, &blocks);
    let of = |field| found.iter().map(|extract| value(extract, field).unwrap_or("-")).collect::<Vec<_>>();
    assert_eq!(of(Field::Name), ["a1", "a2", "b1"]);
    assert_eq!(of(Field::NodeGroup), ["a", "a", "b"]);
    assert_eq!(of(Field::Zone), ["1", "2", "1#1.0"]);
    assert_eq!(of(Field::Hostname), ["-", "h2", "-"]);
    assert_eq!(of(Field::Region), ["r", "r", "r"]);
    assert_eq!(found[1].read, [1, 0]);
}

#[test]
fn objects_are_chosen_by_schema_conditions_and_source() {
    let mappings = only(concat!(
        "  m:\n    - {kind: Machine, schema: [0, 1], where: [{path: $.template, not: 'true'}], fields: {name: $.old}}\n",
        "    - {kind: Cluster, schema: [2, 9], where: [{path: $.x, exists: true}, {path: $.x, match: '^a'}, {context: provider_source, is: '*/acme/*'}], fields: {clusterName: $.x}}\n",
        "  data.m: {kind: Cluster, fields: {endpoint: $.e}}\n  n: ignore\n",
    ));
    let blocks = [
        block(
            "managed",
            "m",
            "m",
            &[
                r#"{"index_key":0,"schema_version":1,"attributes":{"old":"n0"}}"#,
                r#"{"index_key":1,"schema_version":1,"attributes":{"old":"n1","template":true}}"#,
                r#"{"index_key":2,"schema_version":2,"attributes":{"x":"ab"}}"#,
                r#"{"index_key":3,"schema_version":2,"attributes":{"x":"b"}}"#,
                r#"{"index_key":0,"deposed":"abcdef01","schema_version":1,"attributes":{"old":"gone"}}"#,
            ],
        ),
        block("data", "m", "d", &[r#"{"attributes":{"e":"https://x"}}"#]),
    ];
    let found = extracts(&mappings, &blocks);
    assert_eq!(
        found.iter().map(|extract| (extract.row, extract.kind)).collect::<Vec<_>>(),
        [(0, Kind::Machine), (2, Kind::Cluster), (5, Kind::Cluster)]
    );
    assert_eq!(value(&found[2], Field::Endpoint), Some("https://x"));
    assert_eq!(mappings.known("m", ""), Known::Mapped);
    assert_eq!(mappings.known("n", "x/y/z"), Known::Ignored);
    assert_eq!(mappings.known("o", ""), Known::Unknown);
}

#[test]
fn the_wrong_kind_costs_its_field_and_is_told() {
    let mappings = only(
        "  m:\n    kind: Machine\n    fields: {name: $.name, zone: $.zone, cpus: $.cpus, addresses: {internal: ['$.net[*].ip']}}\n",
    );
    let instance = r#"{"attributes":{"name":["a","b"],"zone":"z","cpus":"many","net":"10.0.0.1"}}"#;
    let found = &extracts(&mappings, &[block("managed", "m", "n", &[instance])])[0];
    assert_eq!(value(found, Field::Zone), Some("z"));
    let fields: Vec<&str> = found.problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["name", "cpus", "addresses"]);
    assert!(found.fields.len() == 1 && found.addresses.is_empty());
}

#[test]
fn a_huge_object_is_looked_at_in_part() {
    let mappings = only(
        "  m:\n    kind: Machine\n    fields: {zone: $.zone, name: '$.a[*][*].x', addresses: {internal: ['$.b[*]']}}\n",
    );
    let inner = format!("[{}]", vec!["[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"; 4_000].join(","));
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let ips: Vec<String> = (0..2_000).map(|i| format!("\"10.1.{}.{}\"", i / 250, i % 250)).collect();
    let instance =
        format!(r#"{{"attributes":{{"a":{inner},"zone":"z","deep":{deep},"b":[{}]}}}}"#, ips.join(","));
    let found = &extracts(&mappings, &[block("managed", "m", "n", &[&instance])])[0];
    assert_eq!(value(found, Field::Zone), Some("z"));
    assert!(found.addresses.len() <= 1_000 && found.problems.len() >= 2, "{:?}", found.problems);
}

#[test]
fn instances_that_ours_cannot_refer_to_are_no_ambiguity() {
    let mappings = only(
        "  apply:\n    kind: TalosMachine\n    fields:\n      role: {depends: {type: data.config, read: $.type}}\n",
    );
    let within = |key: &str, block: String| {
        block.replacen('{', &format!(r#"{{"module":"module.pool[\"{key}\"]","#), 1)
    };
    let config = |kind: &str| {
        let instance = format!(r#"{{"attributes":{{"type":"{kind}"}}}}"#);
        block("data", "config", "c", &[&instance])
    };
    let apply = || {
        block("managed", "apply", "a", &[r#"{"attributes":{},"dependencies":["module.pool.data.config.c"]}"#])
    };
    let blocks = [
        within("cp", config("controlplane")),
        within("wk", config("worker")),
        within("cp", apply()),
        within("wk", apply()),
        apply(),
    ];
    let found = extracts(&mappings, &blocks);
    let roles: Vec<Option<&str>> = found.iter().map(|extract| value(extract, Field::Role)).collect();
    assert_eq!(roles, [Some("controlplane"), Some("worker"), None]);
    assert_eq!(found[2].problems.len(), 1);
}

#[test]
fn a_value_has_the_precedence_of_its_rule() {
    let mappings = only(
        "  m:\n    kind: Machine\n    fields:\n      name: {path: $.a, precedence: 20}\n      zone: {first: [{path: $.a, precedence: -5}]}\n      image: $.a\n",
    );
    let found = &extracts(&mappings, &[block("managed", "m", "n", &[r#"{"attributes":{"a":"x"}}"#])])[0];
    let of = |field| found.fields[&field].precedence;
    assert_eq!([of(Field::Name), of(Field::Zone), of(Field::Image)], [20, -5, 0]);
}
