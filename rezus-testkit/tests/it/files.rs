//! Fixtures and recordings are there, and are what they are said to be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_core::declared::Fingerprint;
use rezus_testkit::fixture::{self, Accept};
use rezus_testkit::recording::{self, Event, Session, Tool};

#[test]
fn every_fixture_has_an_expectation() {
    let states = fixture::states();
    assert_eq!(states.len(), 24);
    let machines: usize = states.iter().map(|state| state.expect.machines().len()).sum();
    assert_eq!(machines, 119);
    let of = |accept| states.iter().filter(|state| state.expect.accept() == accept).count();
    assert_eq!(of(Accept::Project), 18);
    assert_eq!((of(Accept::StoreOnly), of(Accept::Refuse), of(Accept::NoState)), (1, 4, 1));
    for state in &states {
        assert_eq!(state.body.is_empty(), state.expect.accept() == Accept::NoState, "{}", state.name);
        assert_eq!(state.expect.machine_addresses().len(), state.expect.machines().len(), "{}", state.name);
    }
    let numbers = fixture::state("edge-numbers").expect;
    assert_eq!(numbers.serial(), Some("9007199254740993"));
}

#[test]
fn recorded_bodies_are_those_that_were_sent() {
    for (tool, session) in recording::ALL {
        let entries = recording::entries(tool, session);
        let mut digests = 0;
        for entry in &entries {
            let Event::Request(request) = &entry.event else {
                continue;
            };
            if let Some(md5) = request.header("content-md5") {
                digests += 1;
                assert_eq!(STANDARD.encode(Fingerprint::of(&request.body).md5), md5, "{}", entry.step);
            }
            assert!(request.status.is_some() || request.injected.is_some(), "{}", entry.step);
        }
        assert!(digests > 30, "{tool:?} {session:?}");
    }
    assert_eq!(recording::entries(Tool::OpenTofu, Session::Backend).len(), 283);
}
