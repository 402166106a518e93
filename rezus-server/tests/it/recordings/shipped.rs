//! Each recording that comes with rezus shows what its name says, from its beginning to its end.

use std::time::Duration;

use rezus_core::base::{Clock as _, TenantName};
use rezus_core::observed::{Recording, Source};
use serde_json::{Value, json};

use super::{API, STATE, shipped, standings, wait_until};
use crate::in_process::InProcess;
use crate::projection::condition;

/// A plane that shows a recording, turn by turn on a clock of its own.
struct Shown {
    plane: InProcess,
    recording: Recording,
    tenant: TenantName,
    elapsed: Duration,
}

impl Shown {
    async fn new(name: &str) -> Self {
        let text = std::fs::read_to_string(shipped(name)).unwrap();
        let plane = InProcess::new();
        plane.post("demo", STATE).await.expect(200, "POST");
        tokio::spawn(plane.plane().catalogue.clone().run_observed());
        let recording = Recording::parse(&text).unwrap();
        assert_eq!(recording.sources(), [Source::Kubernetes, Source::Talos]);
        Self { plane, recording, tenant: TenantName::parse("demo").unwrap(), elapsed: Duration::ZERO }
    }

    /// Replays up to so many seconds after the beginning, at the collector's paces.
    fn replay_until(&mut self, seconds: u64) {
        let until = Duration::from_secs(seconds);
        loop {
            let mut sources = vec![Source::Kubernetes];
            if self.elapsed.as_secs().is_multiple_of(60) || self.elapsed == until {
                sources.push(Source::Talos);
            }
            for source in sources {
                let reading = self.recording.at(source, self.elapsed, self.plane.clock.now()).unwrap();
                self.plane.plane().board.take(&self.tenant, source, reading);
            }
            if self.elapsed == until {
                return;
            }
            let step = Duration::from_secs(30).min(until.checked_sub(self.elapsed).unwrap());
            self.plane.clock.advance(step);
            self.elapsed += step;
        }
    }

    async fn tenant_once(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let path = format!("{API}/tenants/demo");
        wait_until(async || self.plane.get(&path).await.expect(200, "tenant").json(), is_it).await
    }

    async fn machines(&self) -> Value {
        self.plane.get(&format!("{API}/namespaces/demo/machines")).await.expect(200, "machines").json()
    }
}

fn word<'o>(object: &'o Value, kind: &str) -> Option<&'o str> {
    condition(object, kind)?["status"].as_str()
}

#[tokio::test]
async fn the_healthy_one_shows_all_six_ready_and_a_sound_etcd() {
    let mut shown = Shown::new("healthy").await;
    shown.replay_until(60);
    let tenant = shown.tenant_once(|tenant| tenant["status"]["etcd"]["health"] == "Ok").await;
    assert_eq!(tenant["status"]["machines"]["ready"], 6, "{tenant:#}");
    assert_eq!(tenant["status"]["machines"]["declared"], 6, "{tenant:#}");
    assert_eq!(tenant["status"]["undeclared"], Value::Null, "{tenant:#}");
    assert_eq!(word(&tenant, "Ready"), Some("True"), "{tenant:#}");
    for [name, ready, reason, ..] in standings(&shown.machines().await) {
        assert_eq!((ready, reason), ("True".into(), "Ready".into()), "{name}");
    }
}

#[tokio::test]
async fn the_one_that_lost_its_quorum_begins_sound_and_ends_without() {
    let mut shown = Shown::new("quorum-lost").await;
    shown.replay_until(60);
    let tenant = shown.tenant_once(|tenant| tenant["status"]["etcd"]["health"] == "Ok").await;
    assert_eq!(tenant["status"]["etcd"]["votersUp"], 3, "{tenant:#}");
    shown.replay_until(502);
    let tenant = shown.tenant_once(|tenant| tenant["status"]["etcd"]["health"] == "QuorumLost").await;
    assert_eq!(word(&tenant, "EtcdQuorum"), Some("False"), "{tenant:#}");
    assert_eq!(word(&tenant, "Ready"), Some("False"), "{tenant:#}");
    let etcd = &tenant["status"]["etcd"];
    // The one that is left follows no leader: none is up.
    assert_eq!((&etcd["voters"], &etcd["votersUp"]), (&json!(3), &json!(0)), "{etcd:#}");
}

#[tokio::test]
async fn the_half_that_is_gone_is_three_machines_that_are_not_ready() {
    let mut shown = Shown::new("half-gone").await;
    shown.replay_until(60);
    let is_told = |tenant: &Value| tenant["status"]["etcd"]["votersUp"] == 2;
    let tenant = shown.tenant_once(is_told).await;
    assert_eq!(tenant["status"]["machines"]["ready"], 3, "{tenant:#}");
    assert_eq!(word(&tenant, "EtcdQuorum"), Some("True"), "{tenant:#}");
    let machines = standings(&shown.machines().await);
    let gone: Vec<&Value> = machines.iter().filter(|it| it[1] != "True").map(|it| &it[0]).collect();
    assert_eq!(gone.len(), 3, "{machines:#?}");
    assert!(gone.contains(&&json!("cp-3")), "{machines:#?}");
}
