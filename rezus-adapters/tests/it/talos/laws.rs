//! The scraper under the laws of its port.

use std::sync::Arc;

use async_trait::async_trait;
use rezus_adapters::talos::TalosScraper;
use rezus_core::observed::{ClusterScraper, Target};
use rezus_testkit::contract::cluster_scraper::ScraperFixture;
use rezus_testkit::fake::cluster::PeerFault;
use rezus_testkit::fake::cluster::talos::Door;

use super::fixture::Fixture;

struct Whole {
    fixture: Fixture,
    scraper: TalosScraper,
}

impl Whole {
    async fn new() -> Self {
        let fixture = Fixture::new(1, 0).await;
        let scraper = TalosScraper::new(Arc::new(fixture.clock.clone()));
        Self { fixture, scraper }
    }
}

/// How a machine's server behaves with a fault; what is left out is of answers over HTTP/1.
const DOORS: [(PeerFault, Door); 11] = [
    (PeerFault::NotAccepting, Door::Closed),
    (PeerFault::SilentTls, Door::Silent),
    (PeerFault::SameNamedAuthority, Door::OtherAuthority),
    (PeerFault::UnknownAuthority, Door::UnknownIssuer),
    (PeerFault::Expired, Door::Expired),
    (PeerFault::NotYetValid, Door::NotYetValid),
    (PeerFault::WrongName, Door::WrongName),
    (PeerFault::SilentHttp, Door::SilentHttp),
    (PeerFault::Html, Door::Html),
    (PeerFault::Cut, Door::HangsUp),
    (PeerFault::Unauthorized, Door::KnowsNobody),
];

#[async_trait]
impl ScraperFixture for Whole {
    fn scraper(&self) -> &dyn ClusterScraper {
        &self.scraper
    }

    fn target(&self) -> Target {
        self.fixture.fake.target(&[0])
    }

    fn faults(&self) -> Vec<PeerFault> {
        DOORS.map(|(fault, _)| fault).to_vec()
    }

    fn set_fault(&self, fault: Option<PeerFault>) {
        let door = DOORS.into_iter().find(|(known, _)| Some(*known) == fault);
        self.fixture.fake.door(0, door.map_or(Door::Open, |(_, door)| door));
    }

    fn break_part(&self) -> String {
        self.fixture.fake.change(|cluster| {
            cluster.refused.insert("Memory".to_owned(), (7, "not authorized".to_owned()));
        });
        "memory".to_owned()
    }

    fn connections(&self) -> usize {
        self.fixture.fake.connections()
    }

    async fn no_connection(&self) {
        self.fixture.fake.no_connection().await;
    }
}

rezus_testkit::cluster_scraper_contract!(Whole::new().await);
