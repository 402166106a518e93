//! What a query is held to, and what is no query.

use std::time::Duration;

use rezus_core::base::{Clock as _, Timestamp};
use rezus_server::config::{QueryConfig, Span};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::{FakeAccountStore, Fault};
use serde_json::json;

use super::lab::{Door, Lab, encoded, entry, labels};

async fn lab(query: QueryConfig) -> Lab {
    let now = ManualClock::default().now();
    let lab = Lab::with(now, Door::Open, FakeAccountStore::new(), query);
    let up = labels("prod", "up", &[]);
    let entries: Vec<_> =
        (0..10).map(|step| entry(&up, Timestamp::from_millis(now.as_millis() - step * 1_000), 1.0)).collect();
    lab.put(&entries).await;
    lab
}

#[tokio::test]
async fn a_query_reads_no_more_samples_than_it_may() {
    let lab = lab(QueryConfig { max_samples: 9, ..QueryConfig::default() }).await;
    let refused = lab.get("query?query=up").await.expect(422, "too many").json();
    assert_eq!((&refused["status"], &refused["errorType"]), (&json!("error"), &json!("execution")));
    assert!(refused["error"].as_str().unwrap().contains("more than 9 samples"), "{refused}");
    // Of several selectors together.
    let few = encoded(&[("query", "count_over_time(up[4s]) + count_over_time(up[5s] offset 1s)")]);
    lab.get(&format!("query?{few}")).await.expect(422, "too many together");
    // And it comes to no more.
    let steps = "start=1796065837&end=1796065847&step=1";
    lab.get(&format!("query_range?query=sum(vector(1))&{steps}")).await.expect(422, "too many values");
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_given_up() {
    let lab = lab(QueryConfig { timeout: Span(Duration::ZERO), ..QueryConfig::default() }).await;
    let refused = lab.get("query?query=up").await.expect(503, "timeout").json();
    assert_eq!((&refused["status"], &refused["errorType"]), (&json!("error"), &json!("timeout")));
    let lab = self::lab(QueryConfig::default()).await;
    lab.get("query?query=up&timeout=0").await.expect(503, "its own timeout");
    lab.get("query?query=up&timeout=1m").await.expect(200, "its own timeout");
    lab.get("query?query=up&timeout=long").await.expect(400, "no timeout");
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_no_empty_answer() {
    let lab = lab(QueryConfig::default()).await;
    lab.series.inject(Fault::Read);
    let refused = lab.get("query?query=up").await.expect(500, "fault").json();
    assert_eq!((&refused["status"], &refused["errorType"]), (&json!("error"), &json!("internal")));
    lab.get("query?query=up").await.expect(200, "the next one");
}

#[tokio::test]
async fn whatever_is_deeply_nested_or_long_is_refused_and_ends_nobody() {
    let lab = lab(QueryConfig::default()).await;
    let many = |piece: &str, times: usize| piece.repeat(times);
    let nested = |times: usize| {
        vec![
            format!("{}up{}", many("(", times), many(")", times)),
            format!("{}up", many("-", times)),
            format!("up{}", many("+up", times)),
            format!("{}up{}", many("abs(", times), many(")", times)),
            format!("{}up{}", many("sum by (a) (", times), many(")", times)),
            format!("up{}", many(" or up", times)),
            format!("1{}", many("^1", times)),
            format!("{}1", many("1^", times)),
            // What looks like the beginning of a text.
            format!("# \"\n{}up", many("-", times)),
            format!("up{{a!=`\\``}} + {}up", many("-", times)),
        ]
    };
    for query in nested(20_000).iter().chain(&nested(5_000)) {
        lab.post("query", &[("query", query)]).await.expect(400, &query[..20]);
    }
    for times in [50, 240, 490] {
        for query in nested(times) {
            let answer = lab.post("query", &[("query", &query)]).await;
            assert!([200, 400].contains(&answer.code), "{}: {}", &query[..20], answer.code);
        }
    }
    let long = format!("up{{a=\"{}\"}}", "x".repeat(70_000));
    lab.post("query", &[("query", &long)]).await.expect(400, "long");
}

#[tokio::test]
async fn what_is_nowhere_is_refused_in_the_words_of_prometheus() {
    let lab = lab(QueryConfig::default()).await;
    let refused = lab.get("nowhere").await.expect(404, "nowhere").json();
    assert_eq!((&refused["status"], &refused["errorType"]), (&json!("error"), &json!("not_found")));
    let answer = lab.plane.send("DELETE", "/prometheus/api/v1/series", "").await.expect(405, "DELETE").json();
    assert_eq!((&answer["status"], &answer["errorType"]), (&json!("error"), &json!("bad_data")));
    // Elsewhere nothing changes.
    assert_eq!(lab.plane.get("/rezus/v1/nowhere").await.expect(404, "nowhere").json()["kind"], "Status");
}
