//! Whatever one cluster does, the others' news stays new.

use std::time::Duration;

use rezus_testkit::fake::Turn;

use super::lab::{Access, INTERVAL, Lab, gone, name, state};
use super::{facts, says};

/// How many tenants there are beside the one that gives trouble.
const OTHERS: usize = 49;

/// Tenants `t00` ... whose clusters are well.
async fn many(lab: &Lab, tenants: usize) -> Vec<String> {
    let names: Vec<String> = (0..tenants).map(|number| format!("t{number:02}")).collect();
    for tenant in &names {
        lab.tells(tenant, facts::nodes(&["a"]));
        lab.push(tenant, &state(1, &[("a", "worker")], Access::Kubernetes)).await;
    }
    names
}

/// Looks for a while whether the news of all of them stays under two intervals old.
async fn stay_new(lab: &Lab, tenants: &[String], intervals: u32) {
    for _ in 0..intervals {
        lab.pass(INTERVAL).await;
        for tenant in tenants {
            let age = lab.metric("observation_age_seconds", tenant, "kubernetes").await.unwrap();
            assert!(age < (INTERVAL * 2).as_secs_f64(), "{tenant}: {age} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d01_a_cluster_that_hangs_is_unknown_in_time_and_ages_no_others() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let others = many(&lab, OTHERS).await;
    lab.pass(INTERVAL).await;
    for turn in [Turn::Hangs, Turn::Sticks] {
        lab.kubernetes.set(&name("web"), turn);
        stay_new(&lab, &others, 11).await;
        assert_eq!(says(&lab.machine("a").await, "Ready"), ("Unknown", "Stale"));
        lab.tells("web", facts::nodes(&["a"]));
        stay_new(&lab, &others, 22).await;
        assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_clusters_that_hang_leave_the_others_their_turns() {
    let lab = Lab::new();
    let well = many(&lab, 5).await;
    for number in 0..100 {
        let tenant = format!("dark-{number:02}");
        lab.kubernetes.set(&name(&tenant), if number % 2 == 0 { Turn::Sticks } else { Turn::Hangs });
        lab.push(&tenant, &state(1, &[("a", "worker")], Access::Kubernetes)).await;
    }
    lab.pass(INTERVAL).await;
    stay_new(&lab, &well, 20).await;
}

#[tokio::test(start_paused = true)]
async fn a_scrape_that_panics_is_told_and_touches_nobody_else() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let others = many(&lab, 3).await;
    lab.pass(INTERVAL).await;
    lab.kubernetes.set(&name("web"), Turn::Panics);
    stay_new(&lab, &others, 12).await;
    let tenant = lab.tenant().await;
    assert_eq!(says(&tenant, "KubernetesReachable"), ("Unknown", "ScrapeFailed"));
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("Unknown", "Stale"));
    assert_eq!(lab.metric("up", "web", "kubernetes").await, Some(0.0));
    assert_eq!(lab.metric("up", "t00", "kubernetes").await, Some(1.0));
    // The next turn begins anew.
    lab.tells("web", facts::nodes(&["a"]));
    lab.pass(INTERVAL * 2).await;
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn e09_up_is_told_of_each_tenant_and_source_before_anything_answered() {
    let lab = Lab::new();
    lab.kubernetes.set(&name("web"), Turn::Hangs);
    lab.push("web", &state(1, &[("a", "worker")], Access::Both)).await;
    lab.pass(Duration::from_millis(200)).await;
    for source in ["kubernetes", "talos"] {
        assert_eq!(lab.metric("up", "web", source).await, Some(0.0), "{source}");
        assert_eq!(lab.metric("observation_age_seconds", "web", source).await, None, "{source}");
    }
    lab.tells("web", facts::nodes(&["a"]));
    lab.pass(INTERVAL * 4).await;
    assert_eq!(lab.metric("up", "web", "kubernetes").await, Some(1.0));
    assert_eq!(lab.metric("up", "web", "talos").await, Some(0.0));
    // And how long it took, of how many things it told, and how many parts could not be read.
    for (source, items, failures) in [("kubernetes", 1.0, 0.0), ("talos", 0.0, 1.0)] {
        assert_eq!(lab.metric("scrape_duration_seconds", "web", source).await, Some(0.0), "{source}");
        assert_eq!(lab.metric("scrape_items", "web", source).await, Some(items), "{source}");
        assert_eq!(lab.metric("scrape_failures", "web", source).await, Some(failures), "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_asked_ever_more_seldom() {
    let lab = Lab::new();
    lab.kubernetes.set(&name("web"), gone());
    lab.push("web", &state(1, &[("a", "worker")], Access::Kubernetes)).await;
    lab.pass(Duration::from_hours(1)).await;
    // 30 s, 60 s ... and then every ten minutes.
    let turns = lab.kubernetes.turns(&name("web"));
    assert!((8..=11).contains(&turns), "{turns}");
}
