//! Who holds the lock, who may write under it, and what becomes of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::{Answer, content_md5};
use crate::in_process::{InProcess, elsewhere, local};
use crate::lock::{self, APPLY, PUSH};

/// The answer shows the lock `id` of `operation`, as clients read it: all seven members, in their spelling.
#[track_caller]
fn shows_lock(answer: &Answer, id: &str, operation: &str) {
    let shown = answer.json();
    let expected: Value = serde_json::from_str(&lock::info(id, operation)).unwrap();
    assert_eq!(shown, expected);
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn while_a_lock_is_held_everybody_else_is_refused_with_the_holder() {
    let server = InProcess::new();
    let (mine, other) = (lock::id(1), lock::id(2));
    let state_one = lock::state("l", 1);
    server.post("web", state_one.clone()).await.expect(200, "the first state");
    server.lock("web", &mine, APPLY).await.expect(200, "LOCK");
    let next = lock::state("l", 2);
    for (method, target, body) in [
        ("LOCK", "/state/web".to_owned(), lock::info(&other, "OperationTypePlan")),
        ("LOCK", "/state?ID=web".to_owned(), lock::info(&other, "OperationTypePlan")),
        ("POST", "/state/web/lock".to_owned(), lock::info(&other, "OperationTypePlan")),
        ("POST", "/state/web".to_owned(), next.clone()),
        ("PUT", "/state/web".to_owned(), next.clone()),
        ("POST", format!("/state/web?ID={other}"), next.clone()),
        ("POST", "/state?ID=web".to_owned(), next.clone()),
        // Also of a lock that is no UUID, and of the holder's in other letters: IDs are opaque.
        ("POST", "/state/web?ID=nobody".to_owned(), next.clone()),
        ("POST", format!("/state/web?ID={}", mine.to_uppercase()), next.clone()),
        ("DELETE", "/state/web".to_owned(), String::new()),
        ("DELETE", "/state?ID=web".to_owned(), String::new()),
        // No client sends an ID with it, not even the holder.
        ("DELETE", format!("/state/web?ID={mine}"), String::new()),
    ] {
        let answer = server.send(method, &target, body).await.expect(423, &format!("{method} {target}"));
        shows_lock(&answer, &mine, APPLY);
    }
    assert_eq!(server.versions("web").await.len(), 1);
    assert_eq!(server.current("web").await.unwrap(), state_one, "everybody may read");
    server.post_under("web", &mine, next).await.expect(200, "POST under the lock");
    server.unlock("web", &mine).await.expect(200, "UNLOCK");
    server.post("web", lock::state("l", 3)).await.expect(200, "POST of whoever comes next");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_come_at_once_one_gets_the_lock_and_one_writes() {
    let server = InProcess::new();
    server.post("web", lock::state("l", 1)).await.expect(200, "the first state");
    let ids: Vec<String> = (1..=16).map(lock::id).collect();
    let locks = ids.iter().map(|id| server.lock("web", id, APPLY));
    let answers = futures_util::future::join_all(locks).await;
    let winner = answers.iter().position(|answer| answer.code == 200).expect("one gets it");
    for (number, answer) in answers.iter().enumerate().filter(|(number, _)| *number != winner) {
        assert_eq!(answer.code, 423, "{number}");
        shows_lock(answer, &ids[winner], APPLY);
    }
    server.unlock("web", &ids[winner]).await.expect(200, "UNLOCK");

    // Without a lock, the serial decides.
    let bodies: Vec<String> =
        (0..16).map(|number| lock::state_with("l", 2, &format!("writer {number}"))).collect();
    let writes = bodies.iter().map(|body| server.post("web", body.clone()));
    let codes: Vec<u16> =
        futures_util::future::join_all(writes).await.iter().map(|answer| answer.code).collect();
    let winner = codes.iter().position(|code| *code == 200).expect("one writes");
    assert_eq!(codes.iter().filter(|code| **code == 409).count(), 15, "{codes:?}");
    assert_eq!(server.current("web").await.unwrap(), bodies[winner]);
    assert_eq!(server.versions("web").await.len(), 2);
}

#[tokio::test]
async fn a_lock_id_is_of_one_tenant() {
    let server = InProcess::new();
    let id = lock::id(1);
    server.lock("one", &id, APPLY).await.expect(200, "LOCK");
    let refused = server.lock("two", &id, APPLY).await.expect(409, "the same ID in another tenant");
    assert!(refused.message().contains(&id));
    server.get("/rezus/v1/tenants/two").await.expect(404, "a tenant that was never locked");
    server.unlock("one", &id).await.expect(200, "UNLOCK");
    server.lock("two", &id, APPLY).await.expect(200, "the same ID after its release");
}

#[tokio::test]
async fn unlock_is_for_the_holder() {
    let server = InProcess::new();
    let (mine, other) = (lock::id(1), lock::id(2));
    server.lock("web", &mine, APPLY).await.expect(200, "LOCK");
    shows_lock(&server.unlock("web", &other).await.expect(409, "UNLOCK with another ID"), &mine, APPLY);
    // `tofu force-unlock` sends an ID alone, made in the year 1.
    let forced = json!({ "ID": mine, "Operation": "", "Info": "", "Who": "", "Version": "", "Created": "0001-01-01T00:00:00Z", "Path": "" });
    server.send("UNLOCK", "/state/web", forced.to_string()).await.expect(200, "UNLOCK by force");
    server.lock("web", &other, APPLY).await.expect(200, "LOCK of the next");
    let alone = json!({ "ID": other }).to_string();
    server.send("UNLOCK", "/state/web", alone).await.expect(200, "UNLOCK with an ID alone");
}

#[tokio::test]
async fn unlock_of_a_free_tenant_is_refused_unless_it_was_the_last_holder() {
    let server = InProcess::new();
    server.post("web", lock::state("l", 1)).await.expect(200, "a state");
    server.unlock("web", &lock::id(9)).await.expect(409, "UNLOCK of a lock that never was");
    server.lock("web", &lock::id(1), APPLY).await.expect(200, "LOCK");
    server.unlock("web", &lock::id(1)).await.expect(200, "UNLOCK");
    server.unlock("web", &lock::id(1)).await.expect(200, "UNLOCK again: its answer was lost");
    server.send("UNLOCK", "/state/web", "").await.expect(200, "UNLOCK of whatever is held: nothing");
}

#[tokio::test]
async fn requests_whose_answer_was_lost_may_be_sent_again() {
    let server = InProcess::new();
    let id = lock::id(1);
    server.lock("web", &id, APPLY).await.expect(200, "LOCK");
    let acquired = server.tenant("web").await["lock"]["acquiredAt"].clone();
    server.clock.advance(Duration::from_secs(30));
    server.lock("web", &id, APPLY).await.expect(200, "LOCK again");
    assert_eq!(server.tenant("web").await["lock"]["acquiredAt"], acquired);

    for attempt in 0..3 {
        server.post_under("web", &id, lock::state("l", 1)).await.expect(200, &format!("POST {attempt}"));
    }
    assert_eq!(server.versions("web").await.len(), 1);

    server.unlock("web", &id).await.expect(200, "UNLOCK");
    server.lock("web", &lock::id(2), APPLY).await.expect(200, "LOCK of the next");
    server.unlock("web", &id).await.expect(200, "UNLOCK again, while the next holds it");
    assert_eq!(server.tenant("web").await["lock"]["id"], lock::id(2));
}

#[tokio::test]
async fn a_post_under_a_lock_that_was_let_go_is_told_so_for_seven_days() {
    let server = InProcess::new();
    let (released, broken) = (lock::id(1), lock::id(2));
    server.post("web", lock::state("l", 1)).await.expect(200, "a state");
    server.lock("web", &released, APPLY).await.expect(200, "LOCK");
    server.unlock("web", &released).await.expect(200, "UNLOCK");
    server.lock("web", &broken, PUSH).await.expect(200, "LOCK");
    server.send("UNLOCK", "/state/web", "").await.expect(200, "the lock is broken");

    for age in [Duration::ZERO, Duration::from_millis(7 * 24 * 3_600_000 - 1)] {
        server.clock.advance(age);
        for (id, operation) in [(&released, APPLY), (&broken, PUSH)] {
            for target in [format!("/state/web?ID={id}"), format!("/state?ID={id}")] {
                let answer = server.send("POST", &target, lock::state("l", 2)).await.expect(423, &target);
                shows_lock(&answer, id, operation);
                let reason = server.refusals("web").await[0]["reason"].clone();
                assert!(reason.as_str().unwrap().starts_with("lock no longer held"), "{reason}");
            }
        }
    }
    server.clock.advance(Duration::from_secs(1));
    for target in [format!("/state/web?ID={released}"), format!("/state?ID={released}")] {
        let answer = server.send("POST", &target, lock::state("l", 2)).await.expect(423, &target);
        assert!(answer.message().contains("lock not held"), "forgotten after seven days");
    }
    server.unlock("web", &released).await.expect(409, "UNLOCK of a lock that is forgotten");
    assert_eq!(server.versions("web").await.len(), 1);
}

#[tokio::test]
async fn a_tenant_that_vanished_with_its_unlock_does_not_hide_that_the_lock_is_gone() {
    let server = InProcess::new();
    let id = lock::id(1);
    server.lock("web", &id, APPLY).await.expect(200, "LOCK");
    server.send("UNLOCK", "/state/web", "").await.expect(200, "the lock is broken");
    server.get("/rezus/v1/tenants/web").await.expect(404, "nothing was ever written to it");
    for target in [format!("/state/web?ID={id}"), format!("/state?ID={id}")] {
        for peer in [local(), elsewhere()] {
            let answer = server.send_as(peer, "POST", &target, &[], lock::state("l", 1)).await;
            shows_lock(&answer.expect(423, &target), &id, APPLY);
        }
    }
    server.unlock("web", &id).await.expect(200, "UNLOCK again, of the tenant that is gone");
    server.get("/rezus/v1/tenants/web").await.expect(404, "it did not come back");
}

#[tokio::test]
async fn frameworks_without_lock_methods_lock_by_post_and_delete() {
    let server = InProcess::new();
    for (number, take, release) in
        [(1, "POST", "DELETE"), (2, "PUT", "DELETE"), (3, "LOCK", "UNLOCK"), (4, "POST", "UNLOCK")]
    {
        let (id, other) = (lock::id(number), lock::id(99));
        let path = "/state/web/lock";
        server.send(take, path, lock::info(&id, APPLY)).await.expect(200, take);
        shows_lock(&server.send(take, path, lock::info(&other, APPLY)).await.expect(423, take), &id, APPLY);
        server.post_under("web", &id, lock::state("l", u64::from(number))).await.expect(200, "POST");
        shows_lock(
            &server.send(release, path, lock::info(&other, "")).await.expect(409, release),
            &id,
            APPLY,
        );
        server.send(release, path, lock::info(&id, "")).await.expect(200, release);
    }
    server.lock("web", &lock::id(5), APPLY).await.expect(200, "LOCK");
    server.send("DELETE", "/state/web/lock", "").await.expect(200, "the lock is broken");
    assert!(server.tenant("web").await["lock"].is_null());
}

#[tokio::test]
async fn what_is_no_lock_info_takes_no_lock() {
    let server = InProcess::new();
    let long = json!({ "ID": "x".repeat(257) }).to_string();
    let huge = json!({ "ID": "x", "Info": "x".repeat(100 << 10) }).to_string();
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "apply",
        "{\"ID\":7}",
        "{\"ID\":\"\"}",
        "{\"ID\":\"a\\u0000b\"}",
        "{\"ID\":\"x\"",
        &long,
        &huge,
        "{\"ID\":\"x\",\"Who\":{}}",
    ] {
        server.send("LOCK", "/state/web", body.to_owned()).await.expect(400, &body[..body.len().min(40)]);
    }
    let info = lock::info(&lock::id(1), APPLY);
    for digest in [content_md5(b"other"), "bm9uc2Vuc2U=".to_owned(), "***".to_owned()] {
        let headers = [("content-md5", digest.as_str())];
        server.send_as(local(), "LOCK", "/state/web", &headers, info.clone()).await.expect(400, &digest);
    }
    server.get("/rezus/v1/tenants/web").await.expect(404, "nothing was locked");
    let digest = content_md5(info.as_bytes());
    let answer = server.send_as(local(), "LOCK", "/state/web", &[("content-md5", &digest)], info).await;
    answer.expect(200, "LOCK with its digest");
    // An UNLOCK that cannot be read breaks nothing: only an empty one does.
    for body in ["{}", "[]", " ", "nonsense"] {
        server.send("UNLOCK", "/state/web", body).await.expect(400, body);
    }
    assert_eq!(server.tenant("web").await["lock"]["id"], lock::id(1));
}

#[tokio::test]
async fn a_lock_id_that_is_used_again_makes_no_snapshots_of_finished_versions() {
    let server = InProcess::new();
    for serial in 1..=3 {
        server.lock("web", "CI", APPLY).await.expect(200, "LOCK");
        server.post_under("web", "CI", lock::state("l", serial)).await.expect(200, "POST");
        server.unlock("web", "CI").await.expect(200, "UNLOCK");
    }
    let versions = server.versions("web").await;
    assert!(versions.iter().all(|version| version["intermediate"] == false), "{versions:?}");
}

#[tokio::test]
async fn only_the_lock_last_released_is_released_again() {
    let server = InProcess::new();
    let (first, second, third) = (lock::id(1), lock::id(2), lock::id(3));
    server.post("web", lock::state("l", 1)).await.expect(200, "POST");
    for id in [&first, &second] {
        server.lock("web", id, APPLY).await.expect(200, "LOCK");
        server.unlock("web", id).await.expect(200, "UNLOCK");
    }
    // Its answer was lost, whether or not somebody else came in between.
    server.unlock("web", &second).await.expect(200, "UNLOCK again");
    server.unlock("web", &first).await.expect(409, "UNLOCK of an earlier one");
    server.lock("web", &third, APPLY).await.expect(200, "LOCK");
    server.unlock("web", &second).await.expect(200, "UNLOCK again, while another holds it");
    let refused = server.unlock("web", &first).await.expect(409, "UNLOCK of an earlier one");
    shows_lock(&refused, &third, APPLY);
    // Who was broken is told so.
    server.send("DELETE", &format!("/rezus/v1/tenants/web/locks?id={third}"), "").await.expect(200, "break");
    server.unlock("web", &third).await.expect(409, "UNLOCK of a broken lock");
    let late =
        server.post_under("web", &third, lock::state("l", 2)).await.expect(423, "POST under a broken lock");
    shows_lock(&late, &third, APPLY);
    let reasons = server.refusals("web").await;
    assert!(reasons[0]["reason"].as_str().unwrap().contains("broken by somebody else"), "{reasons:?}");
}

#[tokio::test]
async fn a_lock_of_another_tenant_is_not_told_about() {
    let server = InProcess::new();
    let id = lock::id(1);
    for tenant in ["left", "right"] {
        server.post(tenant, lock::state("l", 1)).await.expect(200, "POST");
    }
    server.lock("left", &id, APPLY).await.expect(200, "LOCK");
    server.unlock("left", &id).await.expect(200, "UNLOCK");
    let refused = server.post_under("right", &id, lock::state("l", 2)).await.expect(423, "POST");
    assert!(refused.message().contains("no lock of this tenant"), "{refused:?}");
}

#[tokio::test]
async fn a_tenants_name_and_a_locks_id_are_never_the_same() {
    let server = InProcess::new();
    server.lock("one", "abc", APPLY).await.expect(200, "LOCK");
    server.post("abc", lock::state("l", 1)).await.expect(409, "a tenant named as the lock");
    server.lock("abc", &lock::id(1), APPLY).await.expect(409, "a tenant named as the lock");
    server.lock("two", "two", APPLY).await.expect(409, "a lock named as its tenant");
    server.unlock("one", "abc").await.expect(200, "UNLOCK");
    server.post("abc", lock::state("l", 1)).await.expect(200, "POST");
    server.lock("one", "abc", APPLY).await.expect(409, "a lock named as a tenant");
}

#[tokio::test]
async fn what_a_client_says_of_itself_forges_nothing() {
    let server = InProcess::new();
    let odd = |id: &str| {
        json!({ "ID": id, "Operation": "apply\u{1b}[2J", "Who": format!("root@vm\n{}", "x".repeat(5_000)) })
            .to_string()
    };
    server.send("LOCK", "/state/web", odd("One")).await.expect(200, "LOCK");
    server.send("LOCK", "/state/web", odd("Two")).await.expect(423, "LOCK");
    let refusal = &server.refusals("web").await[0];
    let text = refusal.to_string();
    assert!(text.len() < 600 && !text.contains("\\n") && !text.contains("\\u001b"), "{text}");
}
