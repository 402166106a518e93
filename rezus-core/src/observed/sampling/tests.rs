//! Laws of sampling.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::observed::facts::{
    EtcdStatus, Facts, Filesystem, Holds, Kubernetes, Load, MachineMetrics, Memory, Node, NodeCondition,
    NodeMetrics, Pods, Quantities, Service, Stage, Talos, TalosMachine, Usage,
};
use crate::observed::{Incarnations, Marks, Phase};
use crate::series::TENANT;

const EVERY: Duration = Duration::from_secs(30);

fn sampler() -> Sampler {
    Sampler::new(TenantName::parse("prod").unwrap())
}

/// The first cluster, and what it is known by.
fn first() -> Incarnation {
    let (uid, id) = (Some("uid-1".to_owned()), Some("id-1".to_owned()));
    Incarnation { number: 1, marks: Marks { cluster_uid: uid, cluster_id: id, ..Marks::default() } }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn reading(millis: i64, facts: Option<Facts>) -> Reading {
    let failure = || ("all".to_owned(), Failure::Unreachable { phase: Phase::Tcp, detail: String::new() });
    let failures = if facts.is_some() { Vec::new() } else { vec![failure()] };
    Reading { started: at(millis - 250), finished: at(millis), facts, failures }
}

fn node(name: &str, ready: bool) -> Node {
    let condition = |kind: &str, holds| NodeCondition {
        kind: kind.to_owned(),
        status: if holds { Holds::True } else { Holds::Unknown },
        reason: String::new(),
        message: String::new(),
        since: None,
    };
    Node {
        name: name.to_owned(),
        conditions: vec![condition("Ready", ready), condition("DiskPressure", false), condition("Odd", true)],
        allocatable: Quantities {
            cpu_nanocores: Some(4_000_000_000),
            memory_bytes: Some(1 << 33),
            ..Quantities::default()
        },
        ..Node::default()
    }
}

/// A cluster of these nodes, each with whether it is ready.
fn cluster(nodes: &[(&str, bool)]) -> Facts {
    let nodes = nodes.iter().map(|(name, ready)| node(name, *ready)).collect();
    Facts::Kubernetes(Kubernetes { nodes: Some(nodes), ..Kubernetes::default() })
}

/// Whether nodes are ready, as far as samples say so.
fn flags(entries: &[Entry]) -> Vec<(String, f64)> {
    let flags = entries.iter().filter(|entry| entry.labels.get(NAME) == "rezus_node_ready");
    flags.map(|entry| (entry.labels.get("node").to_owned(), entry.sample.value)).collect()
}

fn whole() -> Vec<(Source, Facts)> {
    let usage =
        Usage { node: "a".to_owned(), at: at(0), cpu_nanocores: 1_500_000_000, memory_bytes: 1 << 30 };
    let pods = Pods { running: 7, restarts: 3, ..Pods::default() };
    let kubernetes = Kubernetes {
        failed_checks: Some(Vec::new()),
        skew_ms: Some(2_500),
        nodes: Some(vec![node("a", true)]),
        pods: Some(pods),
        usage: Some(vec![usage]),
        ..Kubernetes::default()
    };
    let filesystem = Filesystem { mounted_on: "/var".to_owned(), size_bytes: 100, available_bytes: 40 };
    let memory = Some(Memory { total_bytes: 1 << 33, available_bytes: 1 << 32 });
    let load = Some(Load { load1: 0.5, load5: 0.25, load15: 0.125 });
    let machine = |raft_index, applied| TalosMachine {
        asked: "10.0.0.1".to_owned(),
        answered_at: Some(at(0)),
        stage: Some(Stage::Running),
        ready: Some(true),
        services: Some(vec![Service {
            id: "etcd".to_owned(),
            state: "Running".to_owned(),
            healthy: Some(false),
            message: String::new(),
        }]),
        booted_at: Some(at(0)),
        memory,
        load,
        filesystems: Some(vec![filesystem.clone()]),
        time_synced: Some(true),
        skew_ms: Some(-40),
        addresses: vec![IpAddr::from([10, 0, 0, 1])],
        etcd: Some(EtcdStatus {
            raft_index,
            raft_applied_index: applied,
            leader: 1,
            ..EtcdStatus::default()
        }),
        ..TalosMachine::default()
    };
    let other =
        TalosMachine { asked: "10.0.0.2".to_owned(), node_name: Some("b".to_owned()), ..machine(100, 100) };
    let talos = Talos {
        machines: vec![machine(98, 97), other],
        etcd: Some(crate::observed::facts::Etcd::default()),
        ..Talos::default()
    };
    let exporter = MachineMetrics {
        asked: "10.0.0.1".to_owned(),
        node_name: Some("a".to_owned()),
        booted_at: Some(at(0)),
        load,
        memory,
        filesystems: vec![filesystem],
        cpu_busy_seconds: Some(10.5),
        cpu_seconds: Some(100.25),
        received_bytes: Some(1e6),
        sent_bytes: Some(2e6),
        time_synced: Some(true),
        time_offset_seconds: Some(0.001),
        ..MachineMetrics::default()
    };
    vec![
        (Source::Kubernetes, Facts::Kubernetes(kubernetes)),
        (Source::Talos, Facts::Talos(talos)),
        (Source::NodeMetrics, Facts::NodeMetrics(NodeMetrics { machines: vec![exporter] })),
    ]
}

#[test]
fn every_metric_is_sampled_and_every_sample_is_of_one() {
    let mut sampler = sampler();
    let mut found = BTreeSet::new();
    for (source, facts) in whole() {
        for entry in sampler.take(source, &reading(60_000, Some(facts)), &first(), Some(at(120_000)), EVERY) {
            assert_eq!((entry.labels.get(TENANT), entry.labels.get("source")), ("prod", source.as_str()));
            assert_eq!(entry.sample.at, at(60_000), "{:?}", entry.labels);
            found.insert(entry.labels.get(NAME).to_owned());
        }
    }
    let known: Vec<&str> = metrics().iter().map(|metric| metric.name).collect();
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), known.iter().copied().collect());
    assert_eq!(known.len(), found.len(), "one name, one metric");
    for MetricInfo { name, kind, unit, help } in metrics() {
        assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
        let name = name.strip_suffix("_total").unwrap_or(name);
        assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name}: {unit}");
        assert!(help.ends_with('.') && name.starts_with("rezus_"), "{name}: {help}");
    }
}

#[test]
fn values_are_what_was_read() {
    let mut sampler = sampler();
    let mut values = BTreeMap::new();
    for (source, facts) in whole() {
        for entry in sampler.take(source, &reading(60_000, Some(facts)), &first(), Some(at(90_000)), EVERY) {
            values.insert(entry.labels.to_string(), entry.sample.value);
        }
    }
    for (series, value) in [
        (r#"rezus_credential_remaining_seconds{source="talos", tenant="prod"}"#, 30.0),
        (r#"rezus_cluster_info{cluster="uid-1", source="kubernetes", tenant="prod"}"#, 1.0),
        (r#"rezus_apiserver_clock_skew_seconds{source="kubernetes", tenant="prod"}"#, 2.5),
        (r#"rezus_scrape_duration_seconds{source="talos", tenant="prod"}"#, 0.25),
        (r#"rezus_node_cpu_usage_cores{node="a", source="kubernetes", tenant="prod"}"#, 1.5),
        (
            r#"rezus_node_condition{condition="DiskPressure", node="a", source="kubernetes", tenant="prod"}"#,
            0.0,
        ),
        (r#"rezus_pods{phase="Running", source="kubernetes", tenant="prod"}"#, 7.0),
        (r#"rezus_machine_stage{node="b", source="talos", stage="running", tenant="prod"}"#, 1.0),
        // A machine that tells no name has the address that was asked.
        (r#"rezus_etcd_raft_lag{node="10.0.0.1", source="talos", tenant="prod"}"#, 3.0),
        (r#"rezus_etcd_raft_lag{node="b", source="talos", tenant="prod"}"#, 0.0),
        (r#"rezus_machine_unhealthy_services{node="b", source="talos", tenant="prod"}"#, 1.0),
        (r#"rezus_node_clock_skew_seconds{node="b", source="talos", tenant="prod"}"#, -0.04),
        (
            r#"rezus_node_filesystem_available_bytes{mount="/var", node="b", source="talos", tenant="prod"}"#,
            40.0,
        ),
        (r#"rezus_node_cpu_seconds_total{node="a", source="node-metrics", tenant="prod"}"#, 100.25),
    ] {
        let found = values.get(series).unwrap_or_else(|| panic!("{series} of {values:#?}"));
        assert!((found - value).abs() < 1e-9, "{series}: {found}");
    }
}

#[test]
fn what_is_read_often_is_sampled_once_in_its_pace() {
    let mut sampler = sampler();
    let mut sampled = Vec::new();
    for step in 0..480 {
        let millis = 1_000_000 + step * 250;
        let entries = sampler.take(
            Source::Kubernetes,
            &reading(millis, Some(cluster(&[("a", true)]))),
            &first(),
            None,
            EVERY,
        );
        if !entries.is_empty() {
            sampled.push(step * 250);
        }
    }
    assert_eq!(sampled, [0, 27_000, 54_000, 81_000, 108_000]);
}

#[test]
fn a_node_that_becomes_ready_or_is_it_no_more_is_sampled_at_once_and_alone() {
    let mut sampler = sampler();
    let mut take = |millis, ready: &[(&str, bool)]| {
        sampler.take(Source::Kubernetes, &reading(millis, Some(cluster(ready))), &first(), None, EVERY)
    };
    assert!(take(0, &[("a", true), ("b", true)]).len() > 2);
    assert_eq!(take(0, &[("a", true), ("b", false)]), [], "two values of one time");
    let entries = take(200, &[("a", true), ("b", false)]);
    assert_eq!((flags(&entries), entries.len()), (vec![("b".to_owned(), 0.0)], 1));
    // Not more often than each second, and not lost.
    assert_eq!(take(1_100, &[("a", false), ("b", false)]), []);
    assert_eq!(flags(&take(1_200, &[("a", false), ("b", false)])), [("a".to_owned(), 0.0)]);
    assert_eq!(take(5_000, &[("a", false), ("b", false)]), []);
}

#[test]
fn a_source_that_falls_silent_ends_its_series_at_once_and_no_others() {
    let mut sampler = sampler();
    for (source, facts) in whole() {
        sampler.take(source, &reading(0, Some(facts)), &first(), None, EVERY);
    }
    let entries = sampler.take(Source::Kubernetes, &reading(1_000, None), &first(), None, EVERY);
    let (ended, told): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.sample.is_stale());
    assert!(ended.iter().all(|entry| entry.labels.get("source") == "kubernetes"));
    assert!(ended.iter().any(|entry| entry.labels.get(NAME) == "rezus_node_ready"));
    let told: Vec<_> = told.iter().map(|entry| (entry.labels.get(NAME), entry.sample.value)).collect();
    let expected = [
        ("rezus_scrape_up", 0.0),
        ("rezus_scrape_duration_seconds", 0.25),
        ("rezus_scrape_failed_parts", 1.0),
    ];
    assert_eq!(told, expected);
    assert_eq!(sampler.take(Source::Kubernetes, &reading(2_000, None), &first(), None, EVERY), []);
    let live = sampler.live();
    let rest = sampler.end(at(3_000));
    assert_eq!((rest.len(), sampler.live()), (live, 0));
    assert!(rest.iter().all(|entry| entry.sample.is_stale()));
    let of = |source: &str| rest.iter().filter(|entry| entry.labels.get("source") == source).count();
    assert!((of("kubernetes"), of("talos") > 20, of("node-metrics") > 10) == (3, true, true));
}

#[test]
fn series_of_another_cluster_are_others_and_say_so() {
    let mut sampler = sampler();
    for (source, facts) in whole() {
        sampler.take(source, &reading(0, Some(facts)), &first(), None, EVERY);
    }
    let live = sampler.live();
    let authorities = [(Source::Kubernetes, "key-2".to_owned())].into();
    let marks = Marks { authorities, ..Marks::default() };
    let second = Incarnation { number: 2, marks };
    let nodes = || Some(cluster(&[("a", true)]));
    let entries = sampler.take(Source::Kubernetes, &reading(1_000, nodes()), &second, None, EVERY);
    let (ended, told): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.sample.is_stale());
    // Those of all sources: nothing that was told before is true of it.
    assert_eq!(ended.len(), live);
    assert!(ended.iter().all(|entry| entry.labels.get("incarnation").is_empty()));
    assert!(told.iter().all(|entry| entry.labels.get("incarnation") == "2") && told.len() == sampler.live());
    let flipped = sampler.take(
        Source::Kubernetes,
        &reading(3_000, Some(cluster(&[("a", false)]))),
        &second,
        None,
        EVERY,
    );
    assert_eq!((flipped.len(), flipped[0].labels.get("incarnation")), (1, "2"));
    // What was there once is known by its series.
    let all: Vec<&Labels> = entries.iter().map(|entry| &entry.labels).collect();
    let info = all.into_iter().filter(|labels| labels.get(NAME) == "rezus_cluster_info");
    let expected = BTreeMap::from([(1, first().marks), (2, second.marks)]);
    assert_eq!(clusters(info), Incarnations::of(expected));
    let odd = Labels::new([(NAME, "rezus_cluster_info"), ("incarnation", "-1")]).unwrap();
    assert_eq!(clusters([&odd]), Incarnations::default());
    let wanted = cluster_series(&TenantName::parse("prod").unwrap());
    let wanted: BTreeSet<&str> =
        entries.iter().filter(|it| wanted.is_of(&it.labels)).map(|it| it.labels.get(NAME)).collect();
    assert_eq!(wanted, ["rezus_cluster_info"].into());
}

#[test]
fn a_source_that_is_not_installed_is_none() {
    let absent = |millis| {
        let failure = Failure::NotInstalled { what: "node-metrics in the recording".to_owned() };
        Reading { failures: vec![("all".to_owned(), failure)], ..reading(millis, None) }
    };
    let mut sampler = sampler();
    assert_eq!(sampler.take(Source::NodeMetrics, &absent(0), &first(), None, EVERY), []);
    let (source, facts) = whole().remove(2);
    let told = sampler.take(source, &reading(1_000, Some(facts)), &first(), None, EVERY);
    let ended = sampler.take(source, &absent(2_000), &first(), None, EVERY);
    assert_eq!((ended.len(), sampler.live()), (told.len(), 0));
    assert!(ended.iter().all(|entry| entry.sample.is_stale()));
}

#[test]
fn a_clock_that_was_set_back_stops_nothing() {
    let mut sampler = sampler();
    let mut take = |millis| {
        sampler
            .take(Source::Kubernetes, &reading(millis, Some(cluster(&[("a", true)]))), &first(), None, EVERY)
            .len()
    };
    assert!(take(10_000_000) > 0 && take(4_000_000) > 0);
    assert_eq!(take(4_001_000), 0);
}

/// A reading some time after the one before: nothing told, or these nodes.
fn step() -> impl Strategy<Value = (i64, Option<Vec<(u8, bool)>>)> {
    let nodes = prop::collection::vec((0..6_u8, any::<bool>()), 0..8);
    (1..60_000_i64, prop::option::weighted(0.9, nodes))
}

proptest! {
    #[test]
    fn what_samples_say_is_what_was_told(steps in prop::collection::vec(step(), 1..40)) {
        let mut sampler = sampler();
        let mut now = 1_000_000;
        let mut shown: BTreeMap<Labels, Sample> = BTreeMap::new();
        for (wait, nodes) in steps {
            now += wait;
            let names: Option<Vec<(String, bool)>> =
                nodes.map(|nodes| nodes.iter().map(|(name, ready)| (format!("n{name}"), *ready)).collect());
            let facts = names.as_ref().map(|nodes| {
                cluster(&nodes.iter().map(|(name, ready)| (name.as_str(), *ready)).collect::<Vec<_>>())
            });
            let reading = reading(now, facts);
            let entries = sampler.take(Source::Kubernetes, &reading, &first(), None, EVERY);
            let is_whole = entries.iter().any(|entry| entry.labels.get(NAME) == "rezus_scrape_up");
            for Entry { labels, sample } in entries {
                let before = shown.insert(labels.clone(), sample);
                // One sample of each series at a time, later than the one before; it ends once.
                prop_assert!(before.is_none_or(|before| before.at < sample.at), "{labels:?}");
                prop_assert!(!sample.is_stale() || before.is_some_and(|it| !it.is_stale()), "{labels:?}");
            }
            if is_whole {
                // All that is told is live, and nothing else.
                let live = shown.iter().filter(|(_, sample)| !sample.is_stale());
                let live: BTreeSet<&str> = live.map(|(labels, _)| labels.get("node")).filter(|it| !it.is_empty()).collect();
                let told = names.iter().flatten().map(|(name, _)| name.as_str()).collect();
                prop_assert_eq!(live, told);
            }
        }
    }
}
