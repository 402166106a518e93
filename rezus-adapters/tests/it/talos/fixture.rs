//! A fake cluster and a session that reads it.

use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::clock::SystemClock;
use rezus_adapters::talos::TalosScraper;
use rezus_core::base::Clock as _;
use rezus_core::observed::facts::{Facts, Talos, TalosMachine};
use rezus_core::observed::{ClusterScraper as _, Failure, Reading, Session, Target};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::cluster::talos::{Cluster, FakeTalos};

/// Longer than any turn that nothing holds up.
pub(crate) const LONG: Duration = Duration::from_secs(45);

pub(crate) struct Fixture {
    pub(crate) clock: ManualClock,
    pub(crate) fake: FakeTalos,
}

impl Fixture {
    pub(crate) async fn new(control_planes: usize, workers: usize) -> Self {
        // The certificates of servers are verified by the machine's clock, whatever ours says.
        let clock = ManualClock::at(SystemClock.now());
        let fake = FakeTalos::start(Cluster::new(control_planes, workers), clock.clone()).await;
        Self { clock, fake }
    }

    pub(crate) fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure> {
        TalosScraper::new(Arc::new(self.clock.clone())).open(target)
    }

    /// A session with machines for endpoints.
    pub(crate) fn session(&self, endpoints: &[usize]) -> Box<dyn Session> {
        self.open(self.fake.target(endpoints)).unwrap()
    }

    /// Reads once through endpoints.
    pub(crate) async fn read(&self, endpoints: &[usize]) -> Reading {
        self.session(endpoints).read(LONG).await
    }

    /// How often a machine was asked for something since the last time, through whichever other one.
    pub(crate) fn asked(&self, method: &str) -> Vec<String> {
        let calls = self.fake.take_calls().into_iter().filter(|call| call.method == method);
        calls.map(|call| call.node.unwrap_or_else(|| self.fake.address(call.index))).collect()
    }
}

pub(crate) fn facts(reading: &Reading) -> &Talos {
    match &reading.facts {
        Some(Facts::Talos(facts)) => facts,
        _ => panic!("no facts: {:?}", reading.failures),
    }
}

pub(crate) fn machine<'a>(reading: &'a Reading, asked: &str) -> &'a TalosMachine {
    facts(reading).machines.iter().find(|machine| machine.asked == asked).unwrap()
}

pub(crate) fn failure<'a>(reading: &'a Reading, part: &str) -> &'a Failure {
    let found = reading.failures.iter().find(|(name, _)| name == part);
    &found.unwrap_or_else(|| panic!("no {part} among {:?}", reading.failures)).1
}
