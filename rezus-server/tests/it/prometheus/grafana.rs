//! The calls of Grafana's Prometheus data source, as it makes them, and what it is answered.

use rezus_core::base::Timestamp;
use serde_json::json;

use super::lab::{Lab, entry, labels};

/// A minute of two machines, one sample every fifteen seconds.
const NOW: i64 = 1_796_065_800_000;

async fn lab() -> Lab {
    let lab = Lab::at(Timestamp::from_millis(NOW));
    let mut entries = Vec::new();
    for (machine, base) in [("cp-1", 100.0), ("w-1", 200.0)] {
        let total = labels("prod", "node_cpu_seconds_total", &[("machine", machine), ("mode", "user")]);
        let memory = labels("prod", "node_memory_available_bytes", &[("machine", machine)]);
        for step in 0..=20_i32 {
            let at = Timestamp::from_millis(NOW - 300_000 + i64::from(step) * 15_000);
            entries.push(entry(&total, at, base + f64::from(step) * 3.0));
            entries.push(entry(&memory, at, base * 1_048_576.0));
        }
    }
    lab.put(&entries).await;
    lab
}

#[tokio::test]
async fn save_and_test_is_content() {
    let lab = lab().await;
    let answer = lab.post("query", &[("query", "1+1"), ("time", "4")]).await.expect(200, "1+1");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({ "status": "success", "data": { "resultType": "scalar", "result": [4, "2"] } })
    );
    let build = lab.data("status/buildinfo").await;
    assert_eq!(build["version"], "2.42.0");
    assert!(build["revision"].as_str().unwrap().starts_with("rezus "));
    assert_eq!(lab.data("rules").await, json!({ "groups": [] }));
    assert_eq!(lab.data("alerts").await, json!({ "alerts": [] }));
}

#[tokio::test]
async fn the_query_builder_finds_metrics_labels_and_values() {
    let lab = lab().await;
    let time = "start=1796065500&end=1796065800";
    assert_eq!(
        lab.data(&format!("label/__name__/values?{time}")).await,
        json!(["node_cpu_seconds_total", "node_memory_available_bytes"])
    );
    let selector = "match%5B%5D=%7B__name__%3D%22node_cpu_seconds_total%22%7D";
    assert_eq!(
        lab.data(&format!("labels?{time}&{selector}")).await,
        json!(["__name__", "machine", "mode", "tenant"])
    );
    assert_eq!(lab.data(&format!("label/machine/values?{time}&{selector}")).await, json!(["cp-1", "w-1"]));
    // The metrics explorer asks by a part of the name.
    let part = "match%5B%5D=%7B__name__%3D~%22.*memory.*%22%7D";
    assert_eq!(
        lab.data(&format!("label/__name__/values?{time}&{part}&limit=40000")).await,
        json!(["node_memory_available_bytes"])
    );
    assert_eq!(
        lab.data(&format!("series?{time}&{part}")).await,
        json!([
            { "__name__": "node_memory_available_bytes", "machine": "cp-1", "tenant": "prod" },
            { "__name__": "node_memory_available_bytes", "machine": "w-1", "tenant": "prod" },
        ])
    );
    let limited = lab.get(&format!("series?{time}&{part}&limit=1")).await.expect(200, "limit").json();
    assert_eq!(limited["data"].as_array().unwrap().len(), 1);
    assert_eq!(limited["warnings"], json!(["results truncated due to limit"]));
    assert_eq!(
        lab.data("metadata?limit=5000").await,
        json!({
            "node_cpu_seconds_total": [{ "type": "counter", "help": "", "unit": "" }],
            "node_memory_available_bytes": [{ "type": "gauge", "help": "", "unit": "" }],
        })
    );
    let own = labels("prod", "rezus_machine_ready", &[("machine", "cp-1")]);
    lab.put(&[entry(&own, Timestamp::from_millis(NOW), 1.0)]).await;
    assert_eq!(
        lab.data("metadata?metric=rezus_machine_ready").await,
        json!({ "rezus_machine_ready": [
            { "type": "gauge", "help": "Whether a machine says that it is ready.", "unit": "" },
        ] })
    );
}

#[tokio::test]
async fn newer_releases_post_what_older_ones_got() {
    let lab = lab().await;
    let form = [("start", "1796065500"), ("end", "1796065800"), ("match[]", "node_cpu_seconds_total")];
    let posted = lab.post("labels", &form).await.expect(200, "labels").json();
    assert_eq!(posted["data"], json!(["__name__", "machine", "mode", "tenant"]));
    let posted = lab.post("series", &form).await.expect(200, "series").json();
    assert_eq!(posted["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_panel_is_a_form_with_steps() {
    let lab = lab().await;
    let form = [
        ("query", "sum by (mode) (rate(node_cpu_seconds_total{machine=~\"cp-1|w-1\"}[1m]))"),
        ("start", "1796065680"),
        ("end", "1796065800"),
        ("step", "60"),
    ];
    let answer = lab.post("query_range", &form).await.expect(200, "panel").json();
    assert_eq!(
        answer,
        json!({ "status": "success", "data": { "resultType": "matrix", "result": [{
            "metric": { "mode": "user" },
            "values": [[1_796_065_680, "0.4"], [1_796_065_740, "0.4"], [1_796_065_800, "0.4"]],
        }] } })
    );
    let exemplars = lab.post("query_exemplars", &form).await.expect(200, "exemplars").json();
    assert_eq!(exemplars, json!({ "status": "success", "data": [] }));
}

#[tokio::test]
async fn a_table_is_a_query_at_one_time() {
    let lab = lab().await;
    let form = [("query", "node_memory_available_bytes / 1024 / 1024"), ("time", "2026-11-30T19:10:00Z")];
    let answer = lab.post("query", &form).await.expect(200, "table").json();
    assert_eq!(
        answer["data"],
        json!({ "resultType": "vector", "result": [
            { "metric": { "machine": "cp-1", "tenant": "prod" }, "value": [1_796_065_800, "100"] },
            { "metric": { "machine": "w-1", "tenant": "prod" }, "value": [1_796_065_800, "200"] },
        ] })
    );
}

#[tokio::test]
async fn what_is_not_evaluated_here_is_named() {
    let lab = lab().await;
    for (query, name) in [
        ("histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m])))", "histogram_quantile()"),
        ("predict_linear(up[1h], 3600)", "predict_linear()"),
        ("label_replace(up, \"a\", \"b\", \"c\", \"d\")", "label_replace()"),
        ("absent(up)", "absent()"),
        ("count_values(\"v\", up)", "count_values"),
        ("rate(up[5m:1m])", "a subquery"),
        ("max_over_time(rate(up[5m])[1h:])", "a subquery"),
        ("\"text\"", "a text"),
    ] {
        let answer = lab.post("query", &[("query", query)]).await.expect(422, query).json();
        assert_eq!(answer["errorType"], "execution", "{query}");
        let said = answer["error"].as_str().unwrap();
        assert!(
            said.starts_with(&format!("{name} is not supported: use ")) || said.contains("ask for"),
            "{said}"
        );
        assert!(said.starts_with(name), "{said}");
        assert!(said.ends_with("or ask a Prometheus that is fed by remote write"), "{said}");
    }
}
