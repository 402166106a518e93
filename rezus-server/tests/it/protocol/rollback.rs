//! Going back to an earlier version.

use bytes::Bytes;
use rezus_testkit::fixture;
use serde_json::Value;

use crate::answer::Answer;
use crate::in_process::InProcess;
use crate::lock::{self, APPLY, state};

async fn roll_back(server: &InProcess, version: u64) -> Answer {
    server.send("POST", "/rezus/v1/tenants/web/rollback", format!(r#"{{"version":{version}}}"#)).await
}

#[tokio::test]
async fn an_earlier_state_comes_back_under_a_serial_that_was_never_accepted() {
    let server = InProcess::new();
    for serial in [1, 2, 40] {
        server.post("web", state("l", serial)).await.expect(200, "POST");
    }
    // The highest serial is not the current one.
    server.push("web", &lock::id(1), state("l", 7)).await.expect(200, "a push back");
    let written = roll_back(&server, 2).await.expect(200, "rollback").json();
    assert_eq!(
        (&written["version"], &written["serial"], &written["rollbackOf"]),
        (&5.into(), &41.into(), &2.into())
    );
    let expected = state("l", 2).replacen("\"serial\":2", "\"serial\":41", 1);
    assert_eq!(server.current("web").await.unwrap(), Bytes::from(expected));

    server.post("web", state("l", 8)).await.expect(409, "who applies a plan made before the rollback");
    server.post("web", state("l", 41)).await.expect(409, "the serial of the rollback, for other content");
    server.post("web", state("l", 42)).await.expect(200, "who read the rollback");
}

#[tokio::test]
async fn of_a_state_that_comes_back_only_the_serials_digits_change() {
    for fixture in fixture::states() {
        let Some(serial) =
            fixture.expect.serial().filter(|_| fixture.expect.accept() == fixture::Accept::Project)
        else {
            continue;
        };
        if serial == u64::MAX.to_string() {
            continue;
        }
        let server = InProcess::new();
        server.post("web", fixture.body.clone()).await.expect(200, &fixture.name);
        server.push("web", &lock::id(1), lock::empty_state("other", 0)).await.expect(200, "another state");
        let written = roll_back(&server, 1).await.expect(200, &fixture.name).json();
        let next = serial.parse::<u64>().unwrap() + 1;
        assert_eq!(written["serial"], next, "{}", fixture.name);
        let back = server.current("web").await.unwrap();
        let (old, new) = (serial.as_bytes(), next.to_string());
        let places: Vec<usize> =
            (0..fixture.body.len()).filter(|at| fixture.body[*at..].starts_with(old)).collect();
        let is_back = places.iter().any(|at| {
            let (before, behind) = (&fixture.body[..*at], &fixture.body[at + old.len()..]);
            back == [before, new.as_bytes(), behind].concat()
        });
        assert!(is_back, "{}: more than the serial changed", fixture.name);
    }
}

#[tokio::test]
async fn a_rollback_is_refused_while_the_lock_is_held() {
    let server = InProcess::new();
    for serial in [1, 2] {
        server.post("web", state("l", serial)).await.expect(200, "POST");
    }
    server.lock("web", &lock::id(1), APPLY).await.expect(200, "LOCK");
    let refused = roll_back(&server, 1).await.expect(423, "rollback");
    let holder: Value = serde_json::from_str(&lock::info(&lock::id(1), APPLY)).unwrap();
    assert_eq!(refused.json(), holder);
    server.unlock("web", &lock::id(1)).await.expect(200, "UNLOCK");
    roll_back(&server, 1).await.expect(200, "rollback");
}

#[tokio::test]
async fn versions_that_cannot_come_back_say_why() {
    let server = InProcess::new();
    let sealed = fixture::state("tofu-encrypted");
    server.post("web", sealed.body.clone()).await.expect(200, "an envelope");
    server.push("web", &lock::id(1), state("l", 50)).await.expect(200, "a plain state");
    let refused = roll_back(&server, 1).await.expect(409, "rollback to an envelope").message();
    let above = sealed.expect.serial().map_or(0, |serial| serial.parse().unwrap()).max(50) + 1;
    assert!(refused.contains("encrypted") && refused.contains(&above.to_string()), "{refused}");
    roll_back(&server, 2).await.expect(409, "rollback to the current version");
    roll_back(&server, 3).await.expect(404, "rollback to a version that never was");
    roll_back(&server, 0).await.expect(400, "rollback to version 0");
    server.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    server.post("web", state("l", u64::MAX)).await.expect(200, "the greatest serial");
    roll_back(&server, 3).await.expect(409, "rollback to a deletion");
    roll_back(&server, 2).await.expect(409, "rollback beyond the greatest serial");
    assert_eq!(server.versions("web").await.len(), 4);
    let missing = server.send("POST", "/rezus/v1/tenants/nobody/rollback", r#"{"version":1}"#).await;
    missing.expect(404, "rollback of nobody");
}
