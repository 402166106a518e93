//! Each failure by its own name, of a server that cannot be read at all.

use std::collections::BTreeSet;
use std::time::Duration;

use rezus_core::observed::{ClusterScraper as _, Failure, Phase, Target, TlsFault};
use rezus_testkit::fake::cluster::{PeerFault, Validity};
use zeroize::Zeroizing;

use super::{AMPLE, Lab, only, whole};

async fn failure_of(fault: PeerFault) -> Failure {
    let lab = Lab::start().await;
    lab.fake.set_fault(Some(fault));
    lab.fake.settled().await;
    only(lab.open().read(Duration::from_secs(3)).await)
}

async fn unreachable(fault: PeerFault) -> Phase {
    match failure_of(fault).await {
        Failure::Unreachable { phase, .. } => phase,
        other => panic!("{fault:?}: {other:?}"),
    }
}

#[tokio::test]
async fn who_does_not_answer_is_told_by_how_far_it_came() {
    assert_eq!(unreachable(PeerFault::NotAccepting).await, Phase::Tcp);
    assert_eq!(unreachable(PeerFault::SilentTls).await, Phase::Tls);
    assert_eq!(unreachable(PeerFault::SilentHttp).await, Phase::Http);
    assert_eq!(unreachable(PeerFault::Cut).await, Phase::Http);
}

#[tokio::test]
async fn a_name_that_nobody_has_is_a_failure_of_dns() {
    let lab = Lab::start().await;
    let mut target = lab.fake.target("web");
    target.endpoints = vec!["https://nobody.invalid:6443".to_owned()];
    let failure = only(lab.scraper.open(target).unwrap().read(AMPLE).await);
    assert!(matches!(failure, Failure::Unreachable { phase: Phase::Dns, .. }), "{failure:?}");
}

#[tokio::test]
async fn certificates_are_refused_by_cause() {
    assert_eq!(failure_of(PeerFault::SameNamedAuthority).await, Failure::IdentityMismatch);
    let faults = [
        (PeerFault::UnknownAuthority, TlsFault::UnknownIssuer),
        (PeerFault::Expired, TlsFault::Expired),
        (PeerFault::NotYetValid, TlsFault::NotYetValid),
        (PeerFault::WrongName, TlsFault::NameMismatch),
    ];
    for (fault, expected) in faults {
        let failure = failure_of(fault).await;
        let Failure::TlsRejected { fault: told, detail } = &failure else { panic!("{fault:?}: {failure:?}") };
        assert_eq!(*told, expected, "{failure:?}");
        assert_eq!(detail.contains("certSANs"), expected == TlsFault::NameMismatch, "{failure:?}");
    }
}

#[tokio::test]
async fn answers_that_never_end_are_cut_off() {
    for fault in [PeerFault::Drip, PeerFault::HalfOpen] {
        let failure = failure_of(fault).await;
        assert!(matches!(failure, Failure::Timeout { .. }), "{fault:?}: {failure:?}");
    }
}

#[tokio::test]
async fn a_page_for_people_is_none_of_kubernetes_and_its_start_is_shown_safely() {
    let Failure::Malformed { start } = failure_of(PeerFault::Html).await else { panic!("not malformed") };
    assert!(start.starts_with("<html> [31m<head><title>Sign in"), "{start:?}");
    assert!(start.chars().count() <= 64 && !start.contains(char::is_control), "{start:?}");
}

#[tokio::test]
async fn refusals_of_all_requests_are_told_as_what_they_are() {
    assert_eq!(failure_of(PeerFault::Unauthorized).await, Failure::Unauthorized);
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(failure_of(PeerFault::TooManyRequests).await, Failure::RateLimited { retry_after });
    assert_eq!(failure_of(PeerFault::Unavailable).await, Failure::RateLimited { retry_after: None });
}

#[tokio::test]
async fn a_client_of_another_authority_is_not_known() {
    let lab = Lab::start().await;
    let mut target = lab.fake.target("web");
    let other = rezus_testkit::fake::cluster::Authority::new("kubernetes");
    let stranger = other.credential("system:masters", "admin", Validity::ALWAYS);
    let own = target.credential.as_mut().unwrap();
    own.certificate = stranger.certificate;
    own.key = stranger.key;
    let failure = only(lab.scraper.open(target).unwrap().read(AMPLE).await);
    assert_eq!(failure, Failure::Unauthorized);
}

/// The refusal of a target that is none.
fn refused(lab: &Lab, change: impl FnOnce(&mut Target)) -> Failure {
    let mut target = lab.fake.target("web");
    change(&mut target);
    lab.scraper.open(target).map(drop).unwrap_err()
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_now_is_not_shown_to_anybody() {
    let lab = Lab::start().await;
    for validity in [Validity::PAST, Validity::FUTURE] {
        let credential = lab.fake.authority().credential("system:masters", "admin", validity);
        let failure = refused(&lab, |target| target.credential = Some(credential));
        assert!(matches!(failure, Failure::CredentialExpired { .. }), "{failure:?}");
    }
    assert_eq!(lab.fake.connections(), 0);
}

#[tokio::test]
async fn a_certificate_that_ends_while_a_session_is_open_ends_it() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.clock.set(Validity::ALWAYS.until);
    lab.clock.advance(Duration::from_secs(1));
    let failure = only(session.read(AMPLE).await);
    assert!(matches!(failure, Failure::CredentialExpired { .. }), "{failure:?}");
}

#[tokio::test]
async fn targets_that_are_none_are_refused_before_anybody_is_dialled() {
    let lab = Lab::start().await;
    assert_eq!(refused(&lab, |target| target.credential = None), Failure::CredentialMissing);
    let field = |change: &dyn Fn(&mut Target)| match refused(&lab, change) {
        Failure::CredentialRejected { field, .. } => field,
        other => panic!("{other:?}"),
    };
    for url in ["http://10.0.0.1:6443", "https://169.254.169.254/", "https://127.0.0.2:1", "unix:/run/x", ""]
    {
        assert_eq!(field(&|target| target.endpoints = vec![url.to_owned()]), "server", "{url}");
    }
    assert_eq!(field(&|target| target.destinations.allowed = BTreeSet::new()), "server");
    let none = || Zeroizing::new(b"exec: [sh, -c, id]".to_vec());
    assert_eq!(field(&|target| target.credential.as_mut().unwrap().ca = none()), "ca");
    assert_eq!(field(&|target| target.credential.as_mut().unwrap().certificate = none()), "certificate");
    assert_eq!(field(&|target| target.credential.as_mut().unwrap().key = none()), "key");
    let other = lab.fake.credential().key;
    assert_eq!(field(&|target| target.credential.as_mut().unwrap().key = other.clone()), "key");
    assert_eq!(lab.fake.connections(), 0);
}

#[tokio::test]
async fn of_an_endless_answer_no_more_is_taken_than_is_read() {
    let lab = Lab::start().await;
    lab.fake.set_fault(Some(PeerFault::Endless));
    lab.fake.settled().await;
    let reading = lab.open().read(Duration::from_mins(1)).await;
    // It is sent as spaces, so it may be the beginning of JSON for as long as there is room.
    assert_eq!(reading.facts, None);
    let failure = &reading.failures[0].1;
    assert_eq!(*failure, Failure::TooLarge { limit: 8 * 1024 * 1024 });
    // Three answers about one thing and two lists, and what was under way when each was cut off.
    let read = (3 * 8 + 2 * 64) * 1024 * 1024;
    assert!(lab.fake.taken() < read + 5 * 16 * 1024 * 1024, "{}", lab.fake.taken());
}
