//! The cluster as a whole.

use super::*;
use crate::declared::projection::providers::parse;
use crate::declared::resource::ProviderConfig;

#[test]
fn facts_are_taken_by_precedence_and_disagreement_shows() {
    let state = State::default()
        .cluster("data.talos_machine_configuration.cp", &[(Field::KubernetesVersion, "v1.35.0")])
        .cluster("data.talos_machine_configuration.wk", &[(Field::KubernetesVersion, "v1.34.0")])
        .cluster("talos_cluster.this", &[(Field::ClusterName, "dunes")])
        .machine("talos_machine.x", &[(Field::TalosVersion, "v1.12.1")], &[]);
    let cluster = state.project().cluster;
    assert_eq!(cluster.kubernetes_version.as_deref(), Some("v1.35.0"));
    assert_eq!(
        (cluster.cluster_name.as_deref(), cluster.talos_version.as_deref()),
        (Some("dunes"), Some("v1.12.1"))
    );
    assert_eq!(cluster.endpoint, None);
    assert_eq!(
        cluster.provenance.iter().map(|(field, _)| field).collect::<Vec<_>>(),
        ["clusterName", "kubernetesVersion", "talosVersion"]
    );
    let [problem] = cluster.problems.as_slice() else { panic!() };
    assert_eq!(problem.field, "kubernetesVersion");
    assert!(problem.reason.starts_with("data.talos_machine_configuration.wk says otherwise"));

    let state = state
        .cluster("talos_cluster.x", &[(Field::KubernetesVersion, "v1.36.0")])
        .precedence(Field::KubernetesVersion, 3);
    let cluster = state.project().cluster;
    assert_eq!(cluster.kubernetes_version.as_deref(), Some("v1.36.0"));
    assert!(cluster.problems.is_empty());
}

#[test]
fn unknown_types_are_counted_where_they_are_managed_and_current() {
    let state = State::default()
        .object("acme_box.unknown[0]")
        .object("acme_box.unknown[1]")
        .object("acme_box.unknown[1]")
        .change_row(|row| row.deposed = Some("00000001".to_owned()))
        .object("data.acme_box.unknown")
        .object("a_thing.unknown")
        .object("hcloud_server.known");
    assert_eq!(state.project().cluster.unmapped, [("a_thing".to_owned(), 1), ("acme_box".to_owned(), 2)]);
}

#[test]
fn provider_configurations_are_listed_once() {
    let mut state = State::default();
    for provider in [
        "module.a.provider[\"r/b/c\"].x",
        "provider[\"r/b/c\"].x",
        "provider[\"r/b/c\"]",
        "provider.aws",
        "",
        "nonsense",
    ] {
        state = state.object("hcloud_server.a").change_row(|row| provider.clone_into(&mut row.provider));
    }
    let cluster = from_extracts(VersionNumber::FIRST, &state.rows, &[], |_| Known::Mapped).cluster;
    let shown = |config: &ProviderConfig| format!("{} {:?}", config.source, config.alias);
    assert_eq!(
        cluster.providers.iter().map(shown).collect::<Vec<_>>(),
        ["aws None", "r/b/c None", "r/b/c Some(\"x\")"]
    );
    assert_eq!(cluster.problems[0].field, "providers");
}

#[test]
fn provider_addresses_are_read_in_all_spellings() {
    let config = |source: &str, alias: Option<&str>, key: Option<&str>| {
        Some(ProviderConfig {
            source: source.to_owned(),
            alias: alias.map(ToOwned::to_owned),
            key: key.map(ToOwned::to_owned),
        })
    };
    let source = "registry.opentofu.org/hetznercloud/hcloud";
    for (text, expected) in [
        (format!("provider[\"{source}\"]"), config(source, None, None)),
        (
            format!("provider[\"{source}\"].by_region[\"hel\"]"),
            config(source, Some("by_region"), Some("hel")),
        ),
        (format!("provider[\"{source}\"][\"eu-1\"]"), config(source, None, Some("eu-1"))),
        (
            format!("provider[\"{source}\"].x[\"a\\\"]\\u00e4$${{b\"]"),
            config(source, Some("x"), Some("a\"]ä${b")),
        ),
        (
            format!("module.m[\"provider[\\\"x\\\"]\"].module.n[0].provider[\"{source}\"].x"),
            config(source, Some("x"), None),
        ),
        ("provider.aws".to_owned(), config("aws", None, None)),
        ("module.m.provider.aws.west".to_owned(), config("aws", Some("west"), None)),
        ("provider".to_owned(), None),
        ("provider[\"x".to_owned(), None),
        ("provider[\"x\"].".to_owned(), None),
        ("provider[\"x\"].a[\"b\"]c".to_owned(), None),
        ("provider[\"\\ud800\"]".to_owned(), None),
        ("module.".to_owned(), None),
        (String::new(), None),
    ] {
        assert_eq!(parse(&text), expected, "{text}");
    }
}
