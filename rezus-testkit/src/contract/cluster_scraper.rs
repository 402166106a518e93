//! The laws of `ClusterScraper` and its sessions.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::time::Duration;

use async_trait::async_trait;
use rezus_core::observed::{ClusterScraper, Failure, Reading, Session, Target};
use tokio::time::timeout;

use super::poll::drop_after;
use crate::fake::cluster::PeerFault;

/// A scraper and a peer of its own for one law, of which everything can be read.
#[async_trait]
pub trait ScraperFixture: Send + Sync {
    /// Returns the scraper.
    fn scraper(&self) -> &dyn ClusterScraper;

    /// Returns what it is to read, with a credential that the peer knows.
    fn target(&self) -> Target;

    /// Returns the faults that the peer can have.
    fn faults(&self) -> Vec<PeerFault>;

    /// Gives the peer a fault, or takes it away.
    fn set_fault(&self, fault: Option<PeerFault>);

    /// Breaks one part of what the peer tells; returns the name of that part.
    fn break_part(&self) -> String;

    /// Returns how many connections to the peer are open.
    fn connections(&self) -> usize;

    /// Returns when no connection to the peer is open.
    async fn no_connection(&self);
}

/// Makes a test of each law of `ClusterScraper`, in a module `cluster_scraper_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! cluster_scraper_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            cluster_scraper_laws,
            $crate::contract::cluster_scraper,
            $fixture,
            a_failed_part_leaves_the_other_parts,
            a_peer_that_cannot_be_read_is_one_failure_and_can_be_read_again_later,
            a_turn_keeps_to_its_budget,
            a_turn_that_is_dropped_leaves_the_session_usable,
            dropping_a_session_closes_its_connections,
            nothing_secret_is_told,
            who_is_not_allowed_is_not_dialled,
        );
    };
}

/// More than any peer that is well needs.
const AMPLE: Duration = Duration::from_secs(30);

/// As short as a turn that fails may be.
const SHORT: Duration = Duration::from_secs(2);

fn open(fixture: &dyn ScraperFixture) -> Box<dyn Session> {
    fixture.scraper().open(fixture.target()).unwrap()
}

#[track_caller]
fn assert_whole(reading: &Reading) {
    assert!(reading.facts.is_some() && reading.failures.is_empty(), "{reading:?}");
}

/// No turn takes longer than its budget plus a second, whatever the peer does.
pub async fn a_turn_keeps_to_its_budget(fixture: &dyn ScraperFixture) {
    let mut session = open(fixture);
    assert_whole(&session.read(AMPLE).await);
    for fault in fixture.faults() {
        fixture.set_fault(Some(fault));
        // The second of the contract, and four for a machine that is busy with other tests.
        let reading = timeout(SHORT + Duration::from_secs(5), session.read(SHORT)).await;
        assert!(reading.is_ok(), "{fault:?}");
    }
}

/// Of a peer that cannot be read nothing is told but why, and once it can be again, all is told by the same session.
pub async fn a_peer_that_cannot_be_read_is_one_failure_and_can_be_read_again_later(
    fixture: &dyn ScraperFixture,
) {
    let mut session = open(fixture);
    for fault in fixture.faults() {
        fixture.set_fault(Some(fault));
        let reading = session.read(SHORT).await;
        let parts: Vec<_> = reading.failures.iter().map(|(part, _)| part.as_str()).collect();
        assert_eq!(parts, ["all"], "{fault:?}: {reading:?}");
        assert_eq!(reading.facts, None, "{fault:?}");
    }
    fixture.set_fault(None);
    assert_whole(&session.read(AMPLE).await);
}

/// What can be read is told although another part cannot.
pub async fn a_failed_part_leaves_the_other_parts(fixture: &dyn ScraperFixture) {
    let mut session = open(fixture);
    assert_whole(&session.read(AMPLE).await);
    let broken = fixture.break_part();
    for mut session in [session, open(fixture)] {
        let reading = session.read(AMPLE).await;
        let parts: Vec<_> = reading.failures.iter().map(|(part, _)| part.clone()).collect();
        assert_eq!(parts, [broken.clone()], "{reading:?}");
        assert!(reading.facts.is_some(), "{reading:?}");
    }
}

/// A turn can be dropped at any moment, and the next one is as good as if it had not been.
pub async fn a_turn_that_is_dropped_leaves_the_session_usable(fixture: &dyn ScraperFixture) {
    let mut session = open(fixture);
    for polls in [1, 2, 3, 5, 8, 13, 21, 34, 144_u64] {
        drop_after(usize::try_from(polls).unwrap(), session.read(AMPLE)).await;
        drop(timeout(Duration::from_millis(polls), session.read(AMPLE)).await);
    }
    assert_whole(&session.read(AMPLE).await);
}

/// A session that is gone has no connection, not even one that its peer says nothing on.
pub async fn dropping_a_session_closes_its_connections(fixture: &dyn ScraperFixture) {
    let mut session = open(fixture);
    assert_whole(&session.read(AMPLE).await);
    drop(session);
    assert!(timeout(AMPLE, fixture.no_connection()).await.is_ok(), "{} are left", fixture.connections());
    for fault in [PeerFault::SilentTls, PeerFault::SilentHttp, PeerFault::HalfOpen] {
        if !fixture.faults().contains(&fault) {
            continue;
        }
        fixture.set_fault(Some(fault));
        let mut session = open(fixture);
        drop(timeout(Duration::from_millis(500), session.read(AMPLE)).await);
        drop(session);
        let closed = timeout(AMPLE, fixture.no_connection()).await;
        assert!(closed.is_ok(), "{fault:?}: {} are left", fixture.connections());
    }
}

/// What is shown of scrapers, sessions and failures has nothing of the key or the certificates.
pub async fn nothing_secret_is_told(fixture: &dyn ScraperFixture) {
    let target = fixture.target();
    let credential = target.credential.clone().unwrap();
    let mut shown = format!("{:?} {target:?} {credential:?}", fixture.scraper());
    let mut session = open(fixture);
    shown += &format!("{session:?} {:?}", session.read(AMPLE).await);
    for fault in fixture.faults() {
        fixture.set_fault(Some(fault));
        let reading = session.read(SHORT).await;
        let failures = reading.failures.iter().map(|(_, failure)| failure.to_string());
        shown += &format!("{session:?} {reading:?} {}", failures.collect::<Vec<_>>().join(" "));
    }
    for pem in [&credential.key, &credential.certificate, &credential.ca] {
        let text = std::str::from_utf8(pem).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.len() >= 16 && !line.starts_with('-')).collect();
        assert!(!lines.is_empty());
        for line in lines {
            assert!(!shown.contains(line), "a line of PEM is shown");
        }
    }
    // As bytes, too: `Debug` of a list of them.
    let bytes = format!("{:?}", &credential.key[40..56]);
    assert!(!shown.contains(bytes.trim_matches(['[', ']'])));
}

/// An address that connections may not go to gets none.
pub async fn who_is_not_allowed_is_not_dialled(fixture: &dyn ScraperFixture) {
    let mut target = fixture.target();
    target.destinations.allowed.clear();
    let failure = match fixture.scraper().open(target) {
        Err(failure) => failure,
        Ok(mut session) => {
            let reading = session.read(SHORT).await;
            assert_eq!(reading.facts, None);
            reading.failures.into_iter().next().unwrap().1
        }
    };
    assert!(matches!(failure, Failure::CredentialRejected { .. }), "{failure:?}");
    assert_eq!(fixture.connections(), 0);
}
