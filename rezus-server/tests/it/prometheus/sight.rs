//! Whose series a caller sees: of other tenants nothing, wherever it could show.

use rezus_core::base::{Clock as _, Timestamp};
use rezus_testkit::clock::ManualClock;
use serde_json::{Value, json};

use super::lab::{Lab, encoded, entry, labels};
use crate::access::people::{FOREIGN, OWN};

/// Series of two tenants; of one of them a metric and a label that only it has.
async fn lab() -> Lab {
    let lab = Lab::closed().await;
    let now = ManualClock::default().now();
    let at = |seconds: i64| Timestamp::from_millis(now.as_millis() - seconds * 1_000);
    let mut entries = Vec::new();
    for (tenant, value) in [(OWN, 1.0), (FOREIGN, 2.0)] {
        let up = labels(tenant, "up", &[("machine", &format!("m-{tenant}"))]);
        entries.extend([entry(&up, at(60), value), entry(&up, at(0), value)]);
    }
    let alone = labels(FOREIGN, "foreign_total", &[("foreign_label", "foreign-value")]);
    entries.extend([entry(&alone, at(60), 1.0), entry(&alone, at(0), 2.0)]);
    lab.put(&entries).await;
    lab
}

async fn data(lab: &Lab, who: &str, target: &str) -> Value {
    let answer = lab.ask(who, target).await.expect(200, &format!("{target} by {who}")).json();
    answer["data"].clone()
}

fn query(query: &str) -> String {
    format!("query?{}", encoded(&[("query", query)]))
}

#[tokio::test]
async fn a_tenants_series_are_there_for_who_views_it() {
    let lab = lab().await;
    for (who, tenants) in [
        ("view-own", vec![OWN]),
        ("edit-own", vec![OWN]),
        ("admin-own", vec![OWN]),
        ("view-all", vec![FOREIGN, OWN]),
    ] {
        let found = data(&lab, who, &query("up")).await;
        let found: Vec<&str> = found["result"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["metric"]["tenant"].as_str().unwrap())
            .collect();
        assert_eq!(found, tenants, "{who}");
        let values = data(&lab, who, "label/tenant/values").await;
        assert_eq!(values, json!(tenants), "{who}");
        let sum = data(&lab, who, &query("sum(up)")).await;
        assert_eq!(sum["result"][0]["value"][1], if tenants.len() == 1 { "1" } else { "3" }, "{who}");
    }
}

#[tokio::test]
async fn nothing_tells_of_a_tenant_that_is_not_seen() {
    let lab = lab().await;
    let now = ManualClock::default().now().as_millis() / 1_000;
    let range = |query: &str| {
        let (start, end) = ((now - 60).to_string(), now.to_string());
        let pairs = [("query", query), ("start", &*start), ("end", &*end), ("step", "30")];
        format!("query_range?{}", encoded(&pairs))
    };
    let matched = |path: &str, selector: &str| format!("{path}?{}", encoded(&[("match[]", selector)]));
    let targets = [
        query("up"),
        query("foreign_total"),
        query("{__name__=~\".+\"}"),
        query("{tenant=\"foreign\"}"),
        query("{tenant!=\"own\"}"),
        query("{tenant=~\"own|foreign\"}[5m]"),
        query("count by (tenant, machine, foreign_label, __name__) ({__name__=~\".+\"})"),
        query("up or foreign_total"),
        query("topk(9, {__name__!=\"\"})"),
        // A refusal that names what it found twice.
        query("up * on () {__name__=~\".+\"}"),
        range("up"),
        range("rate(foreign_total[5m])"),
        range("{tenant=\"foreign\"}"),
        matched("series", "{__name__=~\".+\"}"),
        matched("series", "{tenant=\"foreign\"}"),
        "labels".to_owned(),
        matched("labels", "{tenant=\"foreign\"}"),
        "label/__name__/values".to_owned(),
        "label/tenant/values".to_owned(),
        "label/machine/values".to_owned(),
        "label/foreign_label/values".to_owned(),
        matched("label/machine/values", "{tenant=~\".*\"}"),
        "metadata".to_owned(),
        "metadata?metric=foreign_total".to_owned(),
        "rules".to_owned(),
        "alerts".to_owned(),
        "status/buildinfo".to_owned(),
    ];
    let mut seen = 0;
    for target in targets {
        let own = lab.ask("view-own", &target).await;
        let text = String::from_utf8(own.body.to_vec()).unwrap();
        assert!(!text.contains("foreign"), "{target}: {text}");
        let all = lab.ask("view-all", &target).await;
        seen += usize::from(String::from_utf8_lossy(&all.body).contains("foreign"));
    }
    // What others see is there to be seen.
    assert!(seen > 15, "{seen}");
}

#[tokio::test]
async fn who_has_no_role_or_shows_nothing_is_refused_in_the_words_of_prometheus() {
    let lab = lab().await;
    for (who, code, kind) in [
        ("no-grants", 403, "forbidden"),
        ("backend-own", 403, "forbidden"),
        ("bad", 401, "unauthorized"),
        ("expired", 401, "unauthorized"),
    ] {
        for target in ["query?query=up", "labels", "metadata", "status/buildinfo"] {
            let answer = lab.ask(who, target).await.expect(code, who);
            let refused = answer.json();
            assert_eq!((&refused["status"], &refused["errorType"]), (&json!("error"), &json!(kind)), "{who}");
            assert!(refused["error"].is_string());
            assert_eq!(answer.header("www-authenticate").is_some(), code == 401);
        }
    }
}

#[tokio::test]
async fn grafanas_basic_auth_is_a_token_as_password() {
    use base64::Engine as _;
    let lab = lab().await;
    let token = crate::access::people::secret("view-own");
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("grafana:{}", token.reveal()));
    let headers = [("authorization", format!("Basic {basic}"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let target = "/prometheus/api/v1/query?query=up";
    let answer = lab.plane.send_as(crate::in_process::elsewhere(), "GET", target, &headers, "").await;
    assert_eq!(answer.expect(200, "basic").json()["data"]["result"].as_array().unwrap().len(), 1);
}
