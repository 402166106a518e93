//! What nobody tells any more grows old where everybody can see it.

use std::time::Duration;

use rezus_testkit::fake::Turn;
use serde_json::Value;

use super::lab::{INTERVAL, Lab, gone, name};
use super::{facts, says};

/// The machine's `Ready`, and what each other place says of it.
async fn all_says(lab: &Lab) -> Vec<(&'static str, String)> {
    let ready = |object: &Value| says(object, "Ready").0.to_owned();
    let cell = |row: &Value, column: &str| match &row[column] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let listed = lab.get("/namespaces/web/machines").await;
    let everywhere = lab.get("/machines").await;
    let groups = lab.get("/namespaces/web/nodegroups").await;
    let tenants = lab.get("/tenants").await;
    vec![
        ("machine", ready(&lab.machine("a").await)),
        ("machines", ready(&listed["items"][0])),
        ("all machines", ready(&everywhere["items"][0])),
        ("groups", ready(&groups["items"][0])),
        ("tenants", ready(&tenants["items"][0])),
        ("tenant", ready(&lab.tenant().await)),
        ("table of machines", cell(&lab.rows("/namespaces/web/machines").await[0], "Ready")),
        ("table of all machines", cell(&lab.rows("/machines").await[0], "Ready")),
    ]
}

fn all_are(says: &[(&str, String)], word: &str) {
    for (place, said) in says {
        assert_eq!(said, word, "{place}: {says:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d05_a_tenant_that_is_cut_off_is_unknown_and_last_seen_then_in_every_place() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    all_are(&all_says(&lab).await, "True");
    assert_eq!(lab.metric("up", "web", "kubernetes").await, Some(1.0));
    lab.kubernetes.set(&name("web"), gone());
    lab.pass(INTERVAL).await;
    let seen = lab.machine("a").await["status"]["observedAt"].clone();
    assert_eq!(lab.metric("up", "web", "kubernetes").await, Some(0.0));
    // What was told last is shown with its date, then as old, and then no longer.
    all_are(&all_says(&lab).await, "True");
    lab.pass(INTERVAL * 4).await;
    let machine = lab.machine("a").await;
    assert_eq!(machine["status"]["node"]["stale"], true, "{machine:#}");
    lab.pass(INTERVAL * 7).await;
    let says_now = all_says(&lab).await;
    all_are(&says_now, "Unknown");
    let machine = lab.machine("a").await;
    assert!(machine["status"].get("node").is_none(), "{machine:#}");
    assert_eq!((says(&machine, "Ready").1, &machine["status"]["observedAt"]), ("Stale", &seen));
    assert_eq!(lab.tenant().await["status"]["observedAt"], seen);
    for (target, column) in [("/namespaces/web/machines", "Seen"), ("/tenants", "Observed")] {
        let row = &lab.rows(target).await[0];
        let cell = row[column].as_str().unwrap_or_else(|| panic!("{row}"));
        assert!(cell.starts_with("5m") || cell.starts_with("6m"), "{target}: {row}");
    }
    for target in ["/tenants", "/namespaces/web/nodegroups", "/nodegroups"] {
        let row = &lab.rows(target).await[0];
        assert_eq!(row["Ready"], "<unknown>", "{target}: {row}");
    }
    assert_eq!(lab.metric("up", "web", "kubernetes").await, Some(0.0));
    assert!(lab.metric("observation_age_seconds", "web", "kubernetes").await.unwrap() > 300.0);
}

#[tokio::test(start_paused = true)]
async fn d06_values_age_out_once_the_collector_is_dead() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    lab.stop_collector();
    lab.pass(INTERVAL * 2).await;
    all_are(&all_says(&lab).await, "True");
    lab.pass(INTERVAL * 2).await;
    assert_eq!(lab.machine("a").await["status"]["node"]["stale"], true);
    lab.pass(INTERVAL * 8).await;
    all_are(&all_says(&lab).await, "Unknown");
}

#[tokio::test(start_paused = true)]
async fn d06_a_turn_that_eats_its_whole_budget_is_recorded() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    for turn in [Turn::Hangs, Turn::Sticks] {
        lab.kubernetes.set(&name("web"), turn.clone());
        lab.pass(INTERVAL * 2).await;
        let tenant = lab.tenant().await;
        assert_eq!(says(&tenant, "KubernetesReachable"), ("False", "Timeout"), "{turn:?}");
        assert_eq!(lab.metric("up", "web", "kubernetes").await, Some(0.0));
        lab.tells("web", facts::nodes(&["a"]));
        // A session that is stuck tells no news: its next turn is waited for.
        lab.pass(INTERVAL * 4).await;
        assert_eq!(says(&lab.tenant().await, "KubernetesReachable"), ("True", "Answers"), "{turn:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d06_a_blip_flaps_nothing() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let before = lab.machine("a").await;
    let events = lab.plane.get("/api/v1/namespaces/web/events").await.expect(200, "events").items().len();
    for _ in 0..5 {
        lab.kubernetes.set(&name("web"), gone());
        lab.pass(Duration::from_secs(1)).await;
        assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
        lab.tells("web", facts::nodes(&["a"]));
        lab.pass(INTERVAL).await;
        assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
    }
    let since = |machine: &Value| {
        crate::projection::condition(machine, "Ready").unwrap()["lastTransitionTime"].clone()
    };
    assert_eq!(since(&lab.machine("a").await), since(&before));
    let after = lab.plane.get("/api/v1/namespaces/web/events").await.expect(200, "events").items();
    assert_eq!(after.len(), events, "{after:#?}");
}
