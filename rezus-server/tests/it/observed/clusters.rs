//! A cluster that is another one, that went away in part, whose clocks are off, or of which not all is read yet.

use std::time::Duration;

use rezus_core::observed::facts::{Facts, Kubernetes, TalosMachine};
use rezus_core::observed::{Failure, TlsFault};
use rezus_testkit::fake::Turn;
use serde_json::{Value, json};

use super::lab::{Access, INTERVAL, Lab, gone, name, state};
use super::{facts, says};

/// These nodes, as the cluster with this UID tells of them, each of which is another installation there.
fn of_cluster(uid: &str, names: &[&str]) -> Facts {
    let Facts::Kubernetes(kubernetes) = facts::nodes(names) else { unreachable!("Kubernetes") };
    let mut nodes = kubernetes.nodes.unwrap();
    for node in &mut nodes {
        node.info.machine_id = format!("{}-of-{uid}", node.name);
    }
    Facts::Kubernetes(Kubernetes { cluster_uid: Some(uid.to_owned()), nodes: Some(nodes), ..kubernetes })
}

/// A node `a`, and how far the API server's clock is ahead.
fn ahead(millis: i64) -> Facts {
    let Facts::Kubernetes(kubernetes) = facts::nodes(&["a"]) else { unreachable!("Kubernetes") };
    Facts::Kubernetes(Kubernetes { skew_ms: Some(millis), ..kubernetes })
}

/// What happened: type, reason and message of each event.
async fn events(lab: &Lab) -> Vec<(String, String, String)> {
    let items = lab.plane.get("/api/v1/namespaces/web/events").await.expect(200, "events").items();
    let clusterwide = lab.plane.get("/api/v1/namespaces/default/events").await.expect(200, "events").items();
    let text = |event: &Value, member: &str| event[member].as_str().unwrap_or_default().to_owned();
    items
        .iter()
        .chain(&clusterwide)
        .map(|event| (text(event, "type"), text(event, "reason"), text(event, "message")))
        .collect()
}

/// The incarnations that series of a machine's being ready are of, and the values of each.
async fn ready(lab: &Lab) -> Vec<(Value, Vec<f64>)> {
    let target = "/namespaces/web/machines/a/metrics?name=rezus_node_ready&range=3h&step=1s";
    let answer = lab.get(target).await;
    let values = |series: &Value| {
        series["points"].as_array().unwrap().iter().map(|it| it[1].as_f64().unwrap()).collect()
    };
    let series = answer["series"].as_array().unwrap().iter();
    let mut found: Vec<_> =
        series.map(|series| (series["labels"]["incarnation"].clone(), values(series))).collect();
    found.sort_by_key(|(incarnation, _)| incarnation.to_string().replace("null", ""));
    found
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_built_anew_is_another_incarnation_and_what_was_before_is_kept_apart() {
    let lab = Lab::web(&["a", "b"], of_cluster("one", &["a", "b"])).await;
    let declared = lab.declared("web").await;
    assert_eq!(lab.tenant().await["status"]["incarnation"], 1);
    lab.pass(INTERVAL).await;
    let before = ready(&lab).await;
    assert_eq!((before.len(), &before[0].0), (1, &Value::Null));

    // It is not believed at once: it may be an answer that comes late.
    lab.tells("web", of_cluster("two", &["a"]));
    lab.pass(INTERVAL).await;
    let tenant = lab.tenant().await;
    assert_eq!(tenant["status"]["incarnation"], 1);
    assert_eq!(says(&tenant, "KubernetesReachable"), ("False", "AnotherCluster"));
    lab.pass(INTERVAL * 2).await;
    assert_eq!(lab.tenant().await["status"]["incarnation"], 2);
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
    assert_eq!(says(&lab.machine("b").await, "Ready"), ("False", "Missing"));
    let told = events(&lab).await;
    let reasons: Vec<&str> = told.iter().map(|(_, reason, _)| reason.as_str()).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "Rebuilt").count(), 1, "{told:?}");
    // All of them are others, which goes without saying.
    assert!(!reasons.contains(&"Replaced") && !reasons.contains(&"Gone"), "{told:?}");
    lab.pass(INTERVAL).await;
    let after = ready(&lab).await;
    assert_eq!((after.len(), &after[0], &after[1].0), (2, &before[0], &json!("2")), "{after:?}");

    // Whoever begins to observe it again, after a restart too, knows which one it is, and one that is back.
    for (uid, number) in [("two", 2), ("one", 1), ("three", 3)] {
        lab.plane.send("PATCH", "/rezus/v1/tenants/web", r#"{"collect":false}"#).await.expect(200, "PATCH");
        lab.pass(Duration::from_secs(10)).await;
        lab.tells("web", of_cluster(uid, &["a"]));
        lab.plane.send("PATCH", "/rezus/v1/tenants/web", r#"{"collect":true}"#).await.expect(200, "PATCH");
        lab.pass(INTERVAL).await;
        // After a start it is believed at once, and is no event: nothing was shown of the other one.
        assert_eq!(lab.tenant().await["status"]["incarnation"], number, "{uid}");
        let rebuilt = events(&lab).await.into_iter().filter(|(_, reason, _)| reason == "Rebuilt").count();
        assert_eq!(rebuilt, 1, "{uid}");
    }
    let all: Vec<Value> = ready(&lab).await.into_iter().map(|(incarnation, _)| incarnation).collect();
    assert_eq!(all, [Value::Null, json!("2"), json!("3")]);
    assert_eq!(lab.declared("web").await, declared);
}

#[tokio::test(start_paused = true)]
async fn two_clusters_behind_one_name_are_no_change_and_neither_is_taken_for_the_other() {
    let lab = Lab::web(&["a", "b"], of_cluster("one", &["a"])).await;
    for _ in 0..10 {
        lab.kubernetes.set_quietly(&name("web"), Turn::Tells(Box::new(of_cluster("two", &["b"]))));
        lab.pass(INTERVAL).await;
        lab.kubernetes.set_quietly(&name("web"), Turn::Tells(Box::new(of_cluster("one", &["a"]))));
        lab.pass(INTERVAL).await;
        assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
        assert_eq!(says(&lab.machine("b").await, "Ready"), ("False", "Missing"));
    }
    assert_eq!(lab.tenant().await["status"]["incarnation"], 1);
    let told = events(&lab).await;
    let reasons = ["Rebuilt", "IdentityMismatch", "AnotherCluster", "Replaced", "Gone"];
    assert!(told.iter().all(|(_, reason, _)| !reasons.contains(&reason.as_str())), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_another_one_under_its_name_is_told_as_replaced() {
    let lab = Lab::web(&["a"], of_cluster("one", &["a"])).await;
    let Facts::Kubernetes(kubernetes) = of_cluster("one", &["a"]) else { unreachable!("Kubernetes") };
    let mut nodes = kubernetes.nodes.unwrap();
    nodes[0].info.machine_id = "another".to_owned();
    lab.tells("web", Facts::Kubernetes(Kubernetes { nodes: Some(nodes), ..kubernetes }));
    lab.pass(INTERVAL * 4).await;
    let told = events(&lab).await;
    let replaced: Vec<_> = told.iter().filter(|(_, reason, _)| reason == "Replaced").collect();
    assert!(
        matches!(*replaced, [(kind, _, message)] if kind == "Normal" && message.contains("another machine")),
        "{told:?}"
    );
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn many_that_go_at_once_do_not_hide_what_else_happens() {
    let many: Vec<String> = (0..80).map(|number| format!("n{number:02}")).collect();
    let mut names: Vec<&str> = many.iter().map(String::as_str).collect();
    names.push("a");
    let lab = Lab::web(&["a"], facts::nodes(&names)).await;
    lab.tells("web", facts::kubernetes(vec![facts::ailing("a")]));
    lab.pass(INTERVAL).await;
    let told = events(&lab).await;
    let gone: Vec<_> = told.iter().filter(|(_, reason, _)| reason == "Gone").collect();
    assert!(matches!(*gone, [(_, _, message)] if message.ends_with("n08, n09 and 70 more")), "{gone:?}");
    assert!(
        told.iter().any(|(kind, reason, _)| kind == "Warning" && reason == "MachinesNotReady"),
        "{told:?}"
    );
    assert_eq!(lab.tenant().await["status"]["gone"].as_array().unwrap().len(), 80);
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_fewer_requests_is_asked_less_often() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let limited = Failure::RateLimited { retry_after: Some(INTERVAL * 5) };
    lab.kubernetes.set_quietly(&name("web"), Turn::Fails(limited));
    lab.pass(INTERVAL * 2).await;
    let turns = lab.kubernetes.turns(&name("web"));
    lab.pass(INTERVAL * 20).await;
    let more = lab.kubernetes.turns(&name("web")) - turns;
    assert!((3..=4).contains(&more), "{more}");
    assert_eq!(says(&lab.tenant().await, "KubernetesReachable"), ("False", "RateLimited"));
    // Where that is a part alone, half as often: what the others tell does not grow old by it.
    let limited = Failure::RateLimited { retry_after: Some(INTERVAL * 100) };
    let nodes = Box::new(facts::nodes(&["a"]));
    lab.kubernetes.set(&name("web"), Turn::Lacks(nodes, "usage", limited));
    lab.pass(INTERVAL * 6).await;
    let turns = lab.kubernetes.turns(&name("web"));
    for _ in 0..10 {
        lab.pass(INTERVAL * 2).await;
        assert_eq!(lab.machine("a").await["status"]["node"].get("stale"), None);
    }
    let more = lab.kubernetes.turns(&name("web")) - turns;
    assert!((9..=10).contains(&more), "{more}");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_write_any_more_is_shown_as_old() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let node = async || lab.machine("a").await["status"]["node"].clone();
    assert_eq!(node().await.get("stale"), None);
    // It is read all the same, in every turn: no lease is renewed.
    lab.tells("web", facts::silent(vec![facts::node("a")], 200));
    lab.pass(INTERVAL).await;
    assert_eq!(node().await["stale"], true);
    assert_eq!(lab.tenant().await["status"]["kubernetes"]["stale"], true);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_and_not_declared_is_told_as_gone() {
    let lab = Lab::web(&["a", "b"], facts::nodes(&["a", "b", "c"])).await;
    let gone = async || lab.tenant().await["status"].get("gone").cloned();
    assert_eq!(gone().await, None);
    // One that is declared is missing, another one gone.
    lab.tells("web", facts::nodes(&["a"]));
    lab.pass(INTERVAL).await;
    let names = |gone: Option<Value>| -> Vec<String> {
        let gone = gone.unwrap_or_default();
        gone.as_array().into_iter().flatten().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(gone().await), ["c"]);
    assert_eq!(says(&lab.machine("b").await, "Ready"), ("False", "Missing"));
    lab.push("web", &state(2, &[("a", "worker")], Access::Kubernetes)).await;
    lab.pass(INTERVAL).await;
    assert_eq!(names(gone().await), ["b", "c"]);
    let told = events(&lab).await;
    let gone_events = told.iter().filter(|(_, reason, _)| reason == "Gone").count();
    assert_eq!(gone_events, 2, "{told:?}");
    // What cannot be read says nothing of who is there.
    lab.kubernetes.set(&name("web"), self::gone());
    lab.pass(INTERVAL).await;
    assert_eq!(names(gone().await), ["b", "c"]);
    lab.tells("web", facts::nodes(&["a", "c"]));
    lab.pass(INTERVAL * 2).await;
    assert_eq!(names(gone().await), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_off_are_a_warning_of_the_tenant() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    assert_eq!(says(&lab.tenant().await, "ClockSkew"), ("none", "none"));
    lab.tells("web", ahead(-900));
    lab.pass(INTERVAL).await;
    assert_eq!(says(&lab.tenant().await, "ClockSkew"), ("False", "InStep"));
    lab.tells("web", ahead(7_000));
    lab.pass(INTERVAL).await;
    let tenant = lab.tenant().await;
    assert_eq!(says(&tenant, "ClockSkew"), ("True", "ClockSkew"));
    // It is a warning, and no verdict on the cluster.
    assert_eq!(says(&tenant, "Ready"), ("True", "Ready"));
    let warnings = async || {
        let told = events(&lab).await;
        told.into_iter().filter(|(_, reason, _)| reason == "ClockSkew").collect::<Vec<_>>()
    };
    let message = "the clock of the API server is more than 5 seconds ahead of rezus' own";
    let expected = ("Warning".to_owned(), "ClockSkew".to_owned(), message.to_owned());
    assert_eq!(warnings().await, [expected]);
    // That it drifts is no news.
    lab.tells("web", ahead(8_000));
    lab.pass(INTERVAL).await;
    assert_eq!(lab.tenant().await["metadata"]["resourceVersion"], tenant["metadata"]["resourceVersion"]);
    // A certificate that seems to be too old may be none, then.
    let detail = "certificate expired".to_owned();
    let expired = Failure::TlsRejected { fault: TlsFault::Expired, detail };
    lab.kubernetes.set(&name("web"), Turn::Fails(expired));
    lab.pass(INTERVAL).await;
    let tenant = lab.tenant().await;
    let source =
        tenant["status"]["sources"].as_array().unwrap().iter().find(|it| it["source"] == "kubernetes");
    let message = source.unwrap()["message"].as_str().unwrap();
    assert!(message.contains("clocks are off"), "{message}");
    // One that is hardly off, or one of several, is not off and in step by turns.
    for millis in [-900, 5_100, 4_900, 5_100, 4_400] {
        lab.tells("web", ahead(millis));
        lab.pass(INTERVAL * 2).await;
        assert_eq!(says(&lab.tenant().await, "ClockSkew"), ("True", "ClockSkew"), "{millis}");
    }
    assert_eq!(warnings().await.len(), 1);
    lab.pass(Duration::from_mins(11)).await;
    assert_eq!(says(&lab.tenant().await, "ClockSkew"), ("False", "InStep"));
    assert_eq!(warnings().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_a_machine_that_follows_none_is_told() {
    let lab = Lab::new();
    let machine =
        TalosMachine { time_synced: Some(false), ..facts::control_plane("a", 1, Some((1, 1, false))) };
    lab.tells("web", facts::nodes(&["a"]));
    lab.talos.set(&name("web"), Turn::Tells(Box::new(facts::talos(vec![machine], None))));
    lab.push("web", &state(1, &[("a", "controlplane")], Access::Both)).await;
    lab.pass(INTERVAL).await;
    let tenant = lab.tenant().await;
    let condition = crate::projection::condition(&tenant, "ClockSkew").unwrap();
    assert_eq!(
        (&condition["status"], &condition["message"]),
        (&json!("True"), &json!("no other clock is followed by a"))
    );
}

#[tokio::test(start_paused = true)]
async fn first_verdicts_are_marked_until_every_source_had_its_first_turn() {
    let lab = Lab::new();
    lab.tells("web", facts::nodes(&["a"]));
    lab.talos.set(&name("web"), Turn::Hangs);
    lab.push("web", &state(1, &[("a", "controlplane")], Access::Both)).await;
    lab.pass(Duration::from_secs(10)).await;
    let all = async || {
        [lab.tenant().await, lab.machine("a").await, lab.get("/namespaces/web/nodegroups/controlplane").await]
    };
    for object in all().await {
        assert_eq!(
            (says(&object, "Ready").0, &object["status"]["warming"]),
            ("True", &json!(true)),
            "{object:#}"
        );
    }
    // It told nothing, in all of its time: more is not waited for.
    lab.pass(Duration::from_mins(1)).await;
    for object in all().await {
        assert_eq!((says(&object, "Ready").0, object["status"].get("warming")), ("True", None), "{object:#}");
    }
    // One that was never read otherwise is not waited for either.
    lab.tells("other", facts::nodes(&["a"]));
    lab.push("other", &state(1, &[("a", "worker")], Access::Kubernetes)).await;
    lab.pass(Duration::from_secs(10)).await;
    let other = lab.get("/tenants/other").await;
    assert_eq!((says(&other, "Ready").0, other["status"].get("warming")), ("True", None), "{other:#}");
}
