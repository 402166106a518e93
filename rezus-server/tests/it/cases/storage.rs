//! Storage that fails while the last state of an apply is written.

use bytes::Bytes;
use rezus_testkit::fake::{FakeStateStore, Fault};

use crate::in_process::InProcess;
use crate::lock::{self, APPLY, PUSH, state, state_with};
use crate::server::{Server, Settings};

/// The final upload failed and the work was lost, or the lock was let go although nothing had been saved.
#[tokio::test]
async fn a_write_that_the_storage_refuses_keeps_lock_and_state() {
    let store = FakeStateStore::new();
    let server = InProcess::over_fake(&store);
    let id = lock::id(1);
    server.post("web", state("l", 1)).await.expect(200, "the state before");
    server.lock("web", &id, APPLY).await.expect(200, "LOCK");
    for attempt in 0..3 {
        store.fail_next(Fault::BeforeWrite);
        let answer = server.post_under("web", &id, state("l", 2)).await;
        let answer = answer.expect(503, &format!("attempt {attempt}"));
        assert!(answer.header("retry-after").is_some(), "clients wait as long as they are told");
        assert_eq!(server.current("web").await.unwrap(), state("l", 1));
        assert_eq!(server.tenant("web").await["lock"]["id"], id);
        assert_eq!(server.versions("web").await.len(), 1);
    }
    // The client gives up, lets go and leaves errored.tfstate.
    server.unlock("web", &id).await.expect(200, "UNLOCK");
    server.push("web", &lock::id(2), state("l", 2)).await.expect(200, "state push errored.tfstate");
    assert_eq!(server.current("web").await.unwrap(), state("l", 2));
}

/// Whether a write that failed was done is not known to the one who asked: asking again must be safe.
#[tokio::test]
async fn a_write_that_was_done_and_reported_as_failed_can_be_sent_again() {
    let store = FakeStateStore::new();
    let server = InProcess::over_fake(&store);
    let id = lock::id(1);
    for (what, method, target, body) in [
        ("LOCK", "LOCK", "/state/web".to_owned(), lock::info(&id, APPLY)),
        ("POST", "POST", format!("/state/web?ID={id}"), state("l", 1)),
        ("POST in the other form", "POST", format!("/state?ID={id}"), state("l", 2)),
        ("UNLOCK", "UNLOCK", "/state/web".to_owned(), lock::info(&id, APPLY)),
        ("DELETE", "DELETE", "/state/web".to_owned(), String::new()),
    ] {
        store.fail_next(Fault::AfterWrite);
        server.send(method, &target, body.clone()).await.expect(503, what);
        server.send(method, &target, body).await.expect(200, &format!("{what} again"));
    }
    assert_eq!(server.versions("web").await.len(), 3, "two states and a deletion, each once");
    assert!(server.tenant("web").await["lock"].is_null());
}

/// What cannot be read is no "there is no state", which a client would take for a new one.
#[tokio::test]
async fn a_state_that_cannot_be_read_is_not_an_absent_one() {
    let store = FakeStateStore::new();
    let server = InProcess::over_fake(&store);
    server.post("web", state("l", 1)).await.expect(200, "the state before");
    for (method, target, body) in [
        ("GET", "/state/web", String::new()),
        ("GET", "/state?ID=web", String::new()),
        ("POST", "/state/web", state("l", 2)),
        ("LOCK", "/state/web", lock::info(&lock::id(1), APPLY)),
        ("UNLOCK", "/state/web", String::new()),
        ("DELETE", "/state/web", String::new()),
        ("GET", "/rezus/v1/locks", String::new()),
        ("GET", "/readyz", String::new()),
    ] {
        store.fail_next(Fault::Read);
        server.send(method, target, body).await.expect(503, &format!("{method} {target}"));
        assert_eq!(server.current("web").await.unwrap(), state("l", 1), "{method} {target}");
    }
    assert_eq!(server.versions("web").await.len(), 1);
}

/// Text that no compression makes much smaller.
fn noise(length: usize) -> String {
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    let digit = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        char::from(digits[usize::try_from(seed >> 58).unwrap()])
    };
    std::iter::repeat_with(digit).take(length).collect()
}

/// A real file that cannot grow: as on a full disk, the write itself fails.
#[tokio::test]
async fn on_a_full_disk_lock_and_state_stay_and_the_push_after_the_repair_succeeds() {
    let full = Settings { file_blocks: Some(8_192), ..Settings::default() };
    let mut server = Server::start_with(full).await;
    let id = lock::id(1);
    let under = format!("/state/web?ID={id}");
    let before = state("l", 1);
    server.send("POST", "/state/web", before.clone()).await.expect(200, "the state before");
    server.send("LOCK", "/state/web", lock::info(&id, APPLY)).await.expect(200, "LOCK");
    let large = Bytes::from(state_with("l", 2, &noise(16 << 20)));
    for attempt in 0..3 {
        let answer = server.send("POST", &under, large.clone()).await;
        assert!((500..600).contains(&answer.code), "attempt {attempt} was answered {}", answer.code);
        assert_eq!(server.get("/state/web").await.expect(200, "the state before").body, before);
        assert_eq!(server.locks().await, [("web".to_owned(), id.clone())]);
        assert_eq!(server.versions("web").await.len(), 1);
    }
    // What does fit is still taken.
    server.send("UNLOCK", "/state/web", lock::info(&id, APPLY)).await.expect(200, "UNLOCK");
    server.send("POST", "/state/small", state("m", 1)).await.expect(200, "a small state");

    assert!(server.terminate().await.success());
    server.start_again_with(Settings::default()).await;
    assert_eq!(server.get("/state/web").await.expect(200, "the state before").body, before);
    let push = lock::id(2);
    let info = lock::info(&push, PUSH);
    server.send("LOCK", "/state/web", info.clone()).await.expect(200, "LOCK");
    server.send("POST", &format!("/state/web?ID={push}"), large.clone()).await.expect(200, "the push");
    server.send("UNLOCK", "/state/web", info).await.expect(200, "UNLOCK");
    assert!(server.get("/state/web").await.expect(200, "what was pushed").body == large);
    assert_eq!(server.get("/state/small").await.expect(200, "the small state").body, state("m", 1));
}
