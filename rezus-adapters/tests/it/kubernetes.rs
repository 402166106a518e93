//! The scraper of Kubernetes, against a server that is one on the wire.

#![expect(clippy::panic, reason = "test code")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_adapters::kubernetes::KubernetesScraper;
use rezus_core::observed::facts::{Facts, Kubernetes};
use rezus_core::observed::{ClusterScraper, Failure, Reading, Session, Target};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::contract::cluster_scraper::ScraperFixture;
use rezus_testkit::fake::cluster::{FakeKubernetes, PeerFault};

mod changes;
mod facts;
mod failures;
mod parts;

/// More than any turn here needs.
const AMPLE: Duration = Duration::from_secs(30);

/// A server with three nodes and six pods, and a scraper whose clock is the server's.
struct Lab {
    fake: FakeKubernetes,
    clock: ManualClock,
    scraper: KubernetesScraper,
}

impl Lab {
    async fn start() -> Self {
        let clock = ManualClock::default();
        let fake = FakeKubernetes::start(Arc::new(clock.clone())).await;
        fake.fill(3, 6);
        let scraper = KubernetesScraper::new(Arc::new(clock.clone()));
        Self { fake, clock, scraper }
    }

    fn open(&self) -> Box<dyn Session> {
        self.scraper.open(self.fake.target("web")).unwrap()
    }
}

#[track_caller]
fn whole(reading: Reading) -> Kubernetes {
    assert_eq!(reading.failures, []);
    some(reading)
}

#[track_caller]
fn some(reading: Reading) -> Kubernetes {
    match reading.facts {
        Some(Facts::Kubernetes(facts)) => facts,
        other => panic!("no facts of Kubernetes: {other:?}, {:?}", reading.failures),
    }
}

#[track_caller]
fn only(reading: Reading) -> Failure {
    assert_eq!(reading.facts, None);
    let [(part, failure)] = <[_; 1]>::try_from(reading.failures).unwrap();
    assert_eq!(part, "all");
    failure
}

#[async_trait]
impl ScraperFixture for Lab {
    fn scraper(&self) -> &dyn ClusterScraper {
        &self.scraper
    }

    fn target(&self) -> Target {
        self.fake.target("web")
    }

    fn faults(&self) -> Vec<PeerFault> {
        PeerFault::ALL.to_vec()
    }

    fn set_fault(&self, fault: Option<PeerFault>) {
        self.fake.set_fault(fault);
    }

    async fn settled(&self) {
        self.fake.settled().await;
    }

    fn break_part(&self) -> String {
        self.fake.forbid("nodes");
        "nodes".to_owned()
    }

    fn connections(&self) -> usize {
        self.fake.connections()
    }

    async fn no_connection(&self) {
        self.fake.no_more_connections_than(0).await;
    }
}

rezus_testkit::cluster_scraper_contract!(Lab::start().await);
