//! Each way to fail, by its name.

use std::time::Duration;

use rezus_core::observed::{Failure, Phase, Reading, TlsFault};
use rezus_testkit::fake::cluster::talos::Door;
use rezus_testkit::fake::cluster::{Authority, Validity};

use super::fixture::{Fixture, LONG, facts, failure, machine};

/// Reads a cluster of one machine whose server treats connections so.
async fn behind(door: Door) -> Failure {
    let fixture = Fixture::new(1, 0).await;
    fixture.fake.door(0, door);
    let reading = fixture.read(&[0]).await;
    all(reading)
}

/// The failure of a source that could not be read at all.
fn all(reading: Reading) -> Failure {
    assert_eq!(reading.facts, None);
    let [(part, failure)] = reading.failures.try_into().unwrap();
    assert_eq!(part, "all");
    failure
}

fn is_rejected(failure: &Failure, expected: TlsFault) -> bool {
    matches!(failure, Failure::TlsRejected { fault, .. } if *fault == expected)
}

#[tokio::test]
async fn nobody_who_accepts_is_unreachable() {
    let failure = behind(Door::Closed).await;
    assert!(matches!(failure, Failure::Unreachable { phase: Phase::Tcp, .. }), "{failure:?}");
}

#[tokio::test]
async fn a_server_that_accepts_and_keeps_silent_costs_its_own_time_alone() {
    let failure = behind(Door::Silent).await;
    assert!(matches!(failure, Failure::Unreachable { phase: Phase::Tls, .. }), "{failure:?}");
    // And no more than the budget.
    let fixture = Fixture::new(1, 0).await;
    fixture.fake.door(0, Door::Silent);
    let budget = Duration::from_secs(1);
    let began = std::time::Instant::now();
    let failure = all(fixture.session(&[0]).read(budget).await);
    assert!(began.elapsed() < budget + Duration::from_secs(5));
    assert_eq!(failure.reason(), "Timeout");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_told_as_that() {
    let fixture = Fixture::new(1, 0).await;
    let mut target = fixture.fake.target(&[0]);
    target.endpoints = vec!["no-such-host.invalid".to_owned()];
    let failure = all(fixture.open(target).unwrap().read(LONG).await);
    assert!(matches!(failure, Failure::Unreachable { phase: Phase::Dns, .. }), "{failure:?}");
}

#[tokio::test]
async fn a_server_that_hangs_up_or_speaks_no_tls_is_told() {
    let failure = behind(Door::HangsUp).await;
    assert!(matches!(failure, Failure::Unreachable { phase: Phase::Tls, .. }), "{failure:?}");
    let failure = behind(Door::Html).await;
    assert!(is_rejected(&failure, TlsFault::Other), "{failure:?}");
}

#[tokio::test]
async fn each_wrong_certificate_has_its_name() {
    assert_eq!(behind(Door::OtherAuthority).await, Failure::IdentityMismatch);
    assert_eq!(behind(Door::Maintenance).await, Failure::Maintenance);
    for (door, fault) in [
        (Door::UnknownIssuer, TlsFault::UnknownIssuer),
        (Door::Expired, TlsFault::Expired),
        (Door::NotYetValid, TlsFault::NotYetValid),
        (Door::WrongName, TlsFault::NameMismatch),
    ] {
        let failure = behind(door).await;
        assert!(is_rejected(&failure, fault), "{door:?}: {failure:?}");
        assert_eq!(failure.to_string().contains("certSANs"), fault == TlsFault::NameMismatch, "{failure:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_know_the_client_is_told() {
    let failure = behind(Door::KnowsNobody).await;
    assert_eq!(failure, Failure::Unauthorized);
}

#[tokio::test]
async fn a_refused_endpoint_says_more_than_one_that_is_down() {
    let fixture = Fixture::new(2, 0).await;
    fixture.fake.door(0, Door::Closed);
    fixture.fake.door(1, Door::OtherAuthority);
    assert_eq!(all(fixture.read(&[0, 1]).await), Failure::IdentityMismatch);
}

#[tokio::test]
async fn clients_certificates_are_looked_at_before_they_are_shown() {
    let fixture = Fixture::new(1, 0).await;
    let open = |change: &dyn Fn(&mut rezus_core::observed::Target)| {
        let mut target = fixture.fake.target(&[0]);
        change(&mut target);
        fixture.open(target).map(|_| ()).unwrap_err()
    };
    for validity in [Validity::PAST, Validity::FUTURE] {
        let failure = open(&|target| target.credential = Some(fixture.fake.credential("os:admin", validity)));
        assert!(matches!(failure, Failure::CredentialExpired { .. }), "{failure:?}");
    }
    assert_eq!(open(&|target| target.credential = None), Failure::CredentialMissing);
    let other = Authority::of_ed25519("talos").credential("os:admin", "", Validity::ALWAYS);
    for field in ["ca", "certificate", "key"] {
        for garbage in [true, false] {
            let failure = open(&|target| {
                let credential = target.credential.as_mut().unwrap();
                let (place, of_other) = match field {
                    "ca" => (&mut credential.ca, &other.ca),
                    "certificate" => (&mut credential.certificate, &other.certificate),
                    _ => (&mut credential.key, &other.key),
                };
                *place = if garbage { b"garbage".to_vec().into() } else { of_other.clone() };
            });
            let Failure::CredentialRejected { field: found, .. } = &failure else { panic!("{failure:?}") };
            // An authority that did not sign the certificate is told by the certificate.
            let expected = if field == "ca" && !garbage { "certificate" } else { field };
            assert_eq!(found, expected);
        }
    }
    let failure = open(&|target| target.endpoints = vec!["https://a/b".to_owned()]);
    assert_eq!(failure.reason(), "CredentialRejected");
    let failure = open(&|target| target.endpoints.clear());
    assert_eq!(failure.reason(), "CredentialRejected");
    assert_eq!(fixture.fake.take_calls(), []);
}

#[tokio::test]
async fn a_certificate_that_ends_between_two_turns_is_not_shown_again() {
    let fixture = Fixture::new(1, 0).await;
    let mut target = fixture.fake.target(&[0]);
    let until = rezus_core::base::Timestamp::from_millis(
        rezus_core::base::Clock::now(&fixture.clock).as_millis() + 60_000,
    );
    let validity = Validity { from: Validity::ALWAYS.from, until };
    target.credential = Some(fixture.fake.credential("os:reader", validity));
    let mut session = fixture.open(target).unwrap();
    assert_eq!(session.read(LONG).await.failures, []);
    fixture.fake.take_calls();
    fixture.clock.advance(Duration::from_secs(61));
    assert_eq!(all(session.read(LONG).await).reason(), "CredentialExpired");
    assert_eq!(fixture.fake.take_calls(), []);
}

#[tokio::test]
async fn what_must_not_be_dialled_is_not() {
    let fixture = Fixture::new(1, 0).await;
    let mut target = fixture.fake.target(&[0]);
    target.endpoints.extend(["169.254.169.254".to_owned(), "localhost:1".to_owned()]);
    target.destinations.allowed.clear();
    let failure = all(fixture.open(target).unwrap().read(LONG).await);
    assert!(matches!(failure, Failure::CredentialRejected { .. }), "{failure:?}");
    assert_eq!(fixture.fake.take_calls(), []);
}

#[tokio::test]
async fn refusals_of_one_call_are_that_parts_failure_alone() {
    // The code, the text, and what it is called.
    for (code, text, reason) in [
        (7, "not authorized", "Forbidden"),
        (7, "namespace is not supported", "Unsupported"),
        (12, "unknown method", "Unsupported"),
        (16, "who are you", "Unauthorized"),
        (8, "too many requests", "RateLimited"),
        (2, "a\u{7}b", "Malformed"),
        (13, "internal", "Malformed"),
    ] {
        let fixture = Fixture::new(2, 0).await;
        fixture.fake.change(|cluster| {
            cluster.refused.insert("Memory".to_owned(), (code, text.to_owned()));
        });
        let reading = fixture.read(&[0]).await;
        let of_all = matches!(reason, "Forbidden" | "Unsupported");
        let part = if of_all { "memory" } else { "127.0.0.2 memory" };
        assert_eq!(failure(&reading, part).reason(), reason, "{text}");
        assert_eq!(reading.failures.len(), if of_all { 1 } else { 2 });
        assert!(!reading.failures.iter().any(|(_, failure)| failure.to_string().contains('\u{7}')));
        let told = machine(&reading, "127.0.0.2");
        assert_eq!(told.memory, None);
        assert!(told.load.is_some() && told.filesystems.is_some());
    }
}

#[tokio::test]
async fn a_refused_list_of_members_leaves_the_endpoints() {
    let fixture = Fixture::new(1, 1).await;
    fixture.fake.change(|cluster| {
        let refusal = (7, "not authorized".to_owned());
        cluster.refused.insert("Members.cluster.talos.dev".to_owned(), refusal);
    });
    let reading = fixture.read(&[0]).await;
    assert_eq!(failure(&reading, "members").reason(), "Forbidden");
    assert_eq!(facts(&reading).members, None);
    assert!(machine(&reading, "127.0.0.2").load.is_some());
}

#[tokio::test]
async fn a_spec_that_is_not_understood_costs_its_own_field() {
    let fixture = Fixture::new(1, 0).await;
    fixture.fake.change(|cluster| {
        cluster.garbled.insert("SystemInformations.hardware.talos.dev".to_owned());
        cluster.garbled.insert("MachineStatuses.runtime.talos.dev".to_owned());
    });
    let reading = fixture.read(&[0]).await;
    assert_eq!(failure(&reading, "127.0.0.2 system").reason(), "Malformed");
    assert_eq!(failure(&reading, "127.0.0.2 status").reason(), "Malformed");
    let told = machine(&reading, "127.0.0.2");
    assert_eq!((told.system_uuid.as_ref(), told.stage), (None, None));
    assert!(told.node_id.is_some() && told.answered_at.is_some());
}

#[tokio::test]
async fn answers_that_are_too_large_are_not_taken_in() {
    let fixture = Fixture::new(1, 0).await;
    fixture.fake.change(|cluster| {
        cluster.bloated.insert("Version".to_owned());
    });
    let reading = fixture.read(&[0]).await;
    assert_eq!(failure(&reading, "127.0.0.2 version"), &Failure::TooLarge { limit: 4 << 20 });
    assert!(machine(&reading, "127.0.0.2").load.is_some());
    fixture.fake.change(|cluster| {
        cluster.bloated.insert("Members.cluster.talos.dev".to_owned());
    });
    let reading = fixture.read(&[0]).await;
    assert_eq!(failure(&reading, "members"), &Failure::TooLarge { limit: 4 << 20 });
}

#[tokio::test]
async fn a_machine_that_is_too_slow_is_its_own_failure() {
    let fixture = Fixture::new(1, 1).await;
    fixture.fake.change(|cluster| cluster.machines[1].delay = Duration::from_mins(1));
    let reading = fixture.read(&[0]).await;
    assert_eq!(failure(&reading, "127.0.0.3"), &Failure::Timeout { after: Duration::from_secs(10) });
    assert!(machine(&reading, "127.0.0.2").load.is_some());
}
