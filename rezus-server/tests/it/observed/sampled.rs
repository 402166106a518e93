//! How it got here: what was sampled of clusters, machine by machine.

use std::time::Duration;

use rezus_core::observed::facts::{Facts, Kubernetes, Load, Quantities, Stage, TalosMachine, Usage};
use rezus_testkit::fake::Turn;
use serde_json::{Value, json};

use super::lab::{Access, INTERVAL, Lab, gone, name, state};
use super::{API, facts};
use crate::in_process::local;

/// A cluster whose node `a` uses so many millionths of a core.
fn uses(microcores: u64) -> Facts {
    let Facts::Kubernetes(kubernetes) = facts::nodes(&["a", "b"]) else { unreachable!("Kubernetes") };
    let usage = Usage {
        node: "a".to_owned(),
        at: rezus_core::base::Timestamp::from_millis(0),
        cpu_nanocores: microcores * 1_000,
        memory_bytes: 1 << 30,
    };
    let mut nodes = kubernetes.nodes.unwrap();
    nodes[0].allocatable = Quantities { cpu_nanocores: Some(4_000_000_000), ..Quantities::default() };
    Facts::Kubernetes(Kubernetes { usage: Some(vec![usage]), nodes: Some(nodes), ..kubernetes })
}

async fn metrics(lab: &Lab, machine: &str, query: &str) -> Value {
    lab.get(&format!("/namespaces/web/machines/{machine}/metrics{query}")).await
}

/// The only series of an answer.
fn only(answer: &Value) -> &Value {
    let [only] = answer["series"].as_array().unwrap().as_slice() else { panic!("{answer:#}") };
    only
}

fn names(answer: &Value) -> Vec<&str> {
    answer["series"].as_array().unwrap().iter().map(|series| series["name"].as_str().unwrap()).collect()
}

fn values(series: &Value) -> Vec<f64> {
    series["points"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_s_node_told_is_shown_step_by_step() {
    let lab = Lab::web(&["a", "b"], uses(100_000)).await;
    for microcores in [300_000, 500_000] {
        lab.kubernetes.set_quietly(&name("web"), Turn::Tells(Box::new(uses(microcores))));
        lab.pass(INTERVAL * 4).await;
    }
    let answer = metrics(&lab, "a", "?name=rezus_node_cpu_usage_cores&range=10m&step=1m").await;
    assert_eq!((&answer["machine"], &answer["nodes"]), (&json!("a"), &json!(["a"])));
    assert_eq!((answer["stepSeconds"].as_f64(), answer.get("reason")), (Some(60.0), None));
    let series = only(&answer);
    assert_eq!((&series["type"], &series["unit"]), (&json!("gauge"), &json!("cores")));
    assert_eq!(series["labels"], json!({ "node": "a", "source": "kubernetes" }));
    let values = values(series);
    assert!(values.is_sorted() && values.first() == Some(&0.1) && values.last() == Some(&0.5), "{series:#}");
    let point = series["points"].as_array().unwrap().last().unwrap();
    assert!(point[0].as_str().unwrap().ends_with(":00.000Z"), "{point}");
    assert_eq!(point.as_array().unwrap()[1..], [json!(0.5), json!(0.5), json!(0.5)]);
    // Between them somewhere, both are in one step.
    let wide = metrics(&lab, "a", "?name=rezus_node_cpu_usage_cores&range=1h&step=1h").await;
    let bounds = only(&wide)["points"].as_array().unwrap();
    let least = bounds.iter().map(|point| point[2].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    let greatest = bounds.iter().map(|point| point[3].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!((least, greatest), (0.1, 0.5));

    let all = metrics(&lab, "a", "").await;
    let found = names(&all);
    for wanted in ["rezus_node_ready", "rezus_node_allocatable_cpu_cores", "rezus_node_memory_usage_bytes"] {
        assert!(found.contains(&wanted), "{found:?}");
    }
    // What is of the cluster as a whole is of no machine, and what is of another machine of that one.
    assert!(!found.contains(&"rezus_pods"), "{found:?}");
    assert!(!names(&metrics(&lab, "b", "").await).contains(&"rezus_node_cpu_usage_cores"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_as_a_whole_has_series_of_its_own_and_names_those_of_its_machines() {
    let lab = Lab::web(&["a", "b"], uses(100_000)).await;
    lab.pass(INTERVAL).await;
    let answer = lab.get("/tenants/web/metrics").await;
    let found = names(&answer);
    assert!(found.contains(&"rezus_scrape_up") && found.contains(&"rezus_pods"), "{found:?}");
    assert!(!found.contains(&"rezus_node_ready"), "{found:?}");
    let listed = answer["metrics"].as_array().unwrap();
    let ready = listed.iter().find(|metric| metric["name"] == "rezus_node_ready").unwrap();
    assert_eq!((&ready["series"], &ready["type"]), (&json!(2), &json!("gauge")));
    let both = lab.get("/tenants/web/metrics?name=rezus_node_ready").await;
    assert_eq!(both["series"].as_array().unwrap().len(), 2);
    let remaining = lab.get("/tenants/web/metrics?name=rezus_credential_remaining_seconds").await;
    assert!(values(only(&remaining))[0] > 0.0);
    // Of another tenant there is nothing, and it says why.
    lab.push("other", &state(1, &[("a", "worker")], Access::None)).await;
    let other = lab.get("/tenants/other/metrics").await;
    assert_eq!(
        (&other["series"], &other["reason"]),
        (&json!([]), &json!("there are no samples of that time"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_becomes_unready_is_in_a_sample_of_its_own_and_what_falls_silent_ends() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    lab.pass(Duration::from_secs(5)).await;
    lab.tells("web", facts::kubernetes(vec![facts::ailing("a")]));
    lab.pass(Duration::from_secs(5)).await;
    let answer = metrics(&lab, "a", "?name=rezus_node_ready&range=2m&step=1s").await;
    let readings = values(only(&answer));
    assert_eq!(readings, [1.0, 1.0, 0.0], "{answer:#}");

    lab.kubernetes.set(&name("web"), gone());
    lab.pass(INTERVAL * 2).await;
    let up = lab.get("/tenants/web/metrics?name=rezus_scrape_up&range=2m&step=1s").await;
    let kubernetes: Vec<&Value> =
        up["series"].as_array().unwrap().iter().filter(|it| it["labels"]["source"] == "kubernetes").collect();
    assert_eq!(values(kubernetes[0]).last(), Some(&0.0));
    // Nobody knows whether it is ready now: nothing is said of it. What was, is shown of the machine all the same.
    lab.pass(INTERVAL * 12).await;
    let later = metrics(&lab, "a", "?name=rezus_node_ready&range=5m").await;
    assert_eq!((&later["series"], &later["nodes"]), (&json!([]), &json!(["a"])));
    assert_eq!(
        values(only(&metrics(&lab, "a", "?name=rezus_node_ready&range=1h&step=1s").await)),
        [1.0, 1.0, 0.0]
    );
}

#[tokio::test(start_paused = true)]
async fn talos_tells_of_a_machine_by_the_name_of_its_node() {
    let lab = Lab::new();
    let machine = TalosMachine {
        load: Some(Load { load1: 0.5, load5: 0.25, load15: 0.125 }),
        stage: Some(Stage::Running),
        ..facts::control_plane("a", 1, Some((1, 1, false)))
    };
    lab.tells("web", facts::nodes(&["a"]));
    lab.talos.set(&name("web"), Turn::Tells(Box::new(facts::talos(vec![machine], None))));
    lab.push("web", &state(1, &[("a", "controlplane")], Access::Both)).await;
    lab.pass(INTERVAL * 3).await;
    let load = metrics(&lab, "a", "?name=rezus_node_load1").await;
    assert_eq!(values(only(&load)).last(), Some(&0.5));
    assert_eq!(only(&load)["labels"], json!({ "node": "a", "source": "talos" }));
    let stage = metrics(&lab, "a", "?name=rezus_machine_stage").await;
    assert_eq!(only(&stage)["labels"]["stage"], "running");
    assert!(names(&metrics(&lab, "a", "").await).contains(&"rezus_etcd_has_leader"));
}

#[tokio::test(start_paused = true)]
async fn what_there_is_none_of_is_said_with_the_reason() {
    let lab = Lab::web(&["a", "elsewhere"], facts::nodes(&["a"])).await;
    let answer = metrics(&lab, "elsewhere", "").await;
    assert_eq!((&answer["series"], &answer["nodes"]), (&json!([]), &json!([])));
    assert!(answer["reason"].as_str().unwrap().contains("matched with this machine"), "{answer}");

    let get = async |target: &str| lab.plane.get(&format!("{API}{target}")).await;
    for (query, named) in [
        ("?name=node_load", "name: there is no such metric; there are: rezus_apiserver_clock_skew_seconds"),
        ("?range=never", "range: it is no length of time"),
        ("?from=now", "from: it is no date"),
        ("?step=1s&range=90d", "step: that is more than 11000 points"),
        ("?colour=red", "colour"),
    ] {
        for place in ["/namespaces/web/machines/a/metrics", "/tenants/web/metrics"] {
            let message = get(&format!("{place}{query}")).await.expect(400, query).message();
            assert!(message.contains(named), "{query}: {message}");
        }
    }
    get("/namespaces/web/machines/nobody/metrics").await.expect(404, "no machine");
    get("/namespaces/nobody/machines/a/metrics").await.expect(404, "no tenant");
    get("/tenants/nobody/metrics").await.expect(404, "no tenant");

    // A cluster that is not observed any more ends, and says so.
    lab.plane.send("PATCH", "/rezus/v1/tenants/web", r#"{"collect":false}"#).await.expect(200, "PATCH");
    lab.pass(Duration::from_mins(10)).await;
    let off = metrics(&lab, "a", "?range=5m").await;
    assert_eq!(
        (&off["series"], off["reason"].as_str().unwrap().contains("switched off")),
        (&json!([]), true)
    );
    let told = lab.plane.plane().samples.told();
    assert_eq!((told.live, told.waiting, told.lost), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_server_s_own_metrics_tell_what_became_of_samples() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    lab.pass(INTERVAL).await;
    let answer = lab.plane.send_as(local(), "GET", "/metrics", &[], "").await.expect(200, "metrics");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let number = |metric: &str| -> u64 {
        let line =
            text.lines().find(|line| line.starts_with(metric)).unwrap_or_else(|| panic!("{metric}: {text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!(number("rezus_samples_total{outcome=\"kept\"}") > 10);
    for nothing in ["late", "early", "repeated", "over_limit", "lost"] {
        assert_eq!(number(&format!("rezus_samples_total{{outcome=\"{nothing}\"}}")), 0);
    }
    assert!(number("rezus_series_live ") > 10);
    assert_eq!(number("rezus_samples_waiting "), 0);
}
