//! Whose certificate is shown to machines.

use std::time::Duration;

use rezus_testkit::fake::cluster::Validity;

use super::fixture::{Fixture, LONG, failure, machine};

const MAKE: &str = "GenerateClientConfiguration";

#[tokio::test]
async fn an_administrator_has_a_readers_certificate_made_once_and_goes_on_with_it() {
    let fixture = Fixture::new(2, 1).await;
    let mut session = fixture.session(&[0]);
    assert_eq!(session.read(LONG).await.failures, []);
    let calls = fixture.fake.take_calls();
    // The administrator asks who is there and for the certificate, and nothing else.
    let of_admin = calls.iter().filter(|call| call.roles == ["os:admin"]).map(|call| call.method.as_str());
    assert_eq!(of_admin.collect::<Vec<_>>(), ["Members.cluster.talos.dev", MAKE]);
    assert!(calls.iter().skip(2).all(|call| call.roles == ["os:reader"]));
    session.read(LONG).await;
    let calls = fixture.fake.take_calls();
    assert!(calls.iter().all(|call| call.roles == ["os:reader"] && call.method != MAKE));
    // Renewed before its end, by the administrator.
    fixture.clock.advance(Duration::from_hours(19));
    assert_eq!(session.read(LONG).await.failures, []);
    let calls = fixture.fake.take_calls();
    let of_admin: Vec<_> = calls.iter().filter(|call| call.roles == ["os:admin"]).collect();
    assert_eq!(of_admin.iter().map(|call| call.method.as_str()).collect::<Vec<_>>(), [MAKE]);
}

#[tokio::test]
async fn where_none_is_made_the_one_given_is_shown_and_it_is_told() {
    let fixture = Fixture::new(1, 0).await;
    fixture.fake.change(|cluster| {
        cluster.refused.insert(MAKE.to_owned(), (7, "not authorized".to_owned()));
    });
    let mut session = fixture.session(&[0]);
    for turn in 0..2 {
        let reading = session.read(LONG).await;
        assert_eq!(failure(&reading, "reader").reason(), "Forbidden");
        assert!(machine(&reading, "127.0.0.2").load.is_some());
        // Whoever refused is not asked again at once.
        assert_eq!(fixture.asked(MAKE).len(), usize::from(turn == 0));
    }
    fixture.clock.advance(Duration::from_secs(3_601));
    session.read(LONG).await;
    assert_eq!(fixture.asked(MAKE).len(), 1);
}

#[tokio::test]
async fn who_may_only_read_asks_for_no_certificate() {
    let fixture = Fixture::new(1, 0).await;
    let mut target = fixture.fake.target(&[0]);
    target.credential = Some(fixture.fake.credential("os:reader", Validity::ALWAYS));
    let reading = fixture.open(target).unwrap().read(LONG).await;
    assert_eq!(reading.failures, []);
    assert_eq!(fixture.asked(MAKE), Vec::<String>::new());
}

#[tokio::test]
async fn a_control_plane_makes_it_where_the_first_endpoint_is_a_worker() {
    let fixture = Fixture::new(1, 1).await;
    let reading = fixture.read(&[1, 0]).await;
    assert_eq!(reading.failures, []);
    let makers: Vec<_> = fixture.fake.take_calls().into_iter().filter(|call| call.method == MAKE).collect();
    assert_eq!(makers.iter().map(|call| call.index).collect::<Vec<_>>(), [1, 0]);
}

#[tokio::test]
async fn keys_that_talos_calls_ed25519_are_used_and_told_nowhere() {
    let fixture = Fixture::new(1, 0).await;
    let target = fixture.fake.target(&[0]);
    let credential = target.credential.clone().unwrap();
    let key = String::from_utf8(credential.key.to_vec()).unwrap();
    assert!(key.starts_with("-----BEGIN ED25519 PRIVATE KEY-----"));
    let mut session = fixture.open(target).unwrap();
    fixture.fake.change(|cluster| {
        cluster.refused.insert("Memory".to_owned(), (2, "something".to_owned()));
    });
    let reading = session.read(LONG).await;
    assert_eq!(failure(&reading, "127.0.0.2 memory").reason(), "Malformed");
    let certificate = String::from_utf8(credential.certificate.to_vec()).unwrap();
    let shown = format!("{session:?} {reading:?}");
    for line in certificate.lines().chain(key.lines()).filter(|line| !line.starts_with("---")) {
        assert!(!shown.contains(line), "{shown}");
    }
}
