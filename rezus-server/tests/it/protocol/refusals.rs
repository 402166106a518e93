//! Refusals are kept where an operator finds them: no client shows the answer to a POST.

use std::time::Duration;

use rezus_server::config::{ByteSize, StateConfig};

use crate::in_process::{InProcess, elsewhere, local};
use crate::lock::{self, APPLY, state};

#[tokio::test]
async fn each_kind_of_refusal_is_kept_with_who_when_and_why() {
    let server = InProcess::with(StateConfig { max_body: ByteSize(10_000), ..StateConfig::default() });
    server.post("web", state("l", 5)).await.expect(200, "the state before");
    server.lock("web", &lock::id(1), APPLY).await.expect(200, "LOCK");
    let under = format!("/state/web?ID={}", lock::id(1));
    let rows = [
        ("LOCK", "/state/web".to_owned(), lock::info(&lock::id(2), APPLY), 423, "root@vm"),
        ("LOCK", "/state/web".to_owned(), "no lock info".to_owned(), 400, "LockInfo"),
        ("UNLOCK", "/state/web".to_owned(), lock::info(&lock::id(2), APPLY), 409, ""),
        ("UNLOCK", "/state/web".to_owned(), String::new(), 409, ""),
        ("POST", "/state/web".to_owned(), state("l", 6), 423, ""),
        ("POST", under.clone(), state("l", 4), 409, "serial 4"),
        ("POST", under.clone(), state("m", 6), 409, "lineage"),
        ("POST", under.clone(), "{".to_owned(), 400, ""),
        ("POST", under.clone(), "{}".to_owned(), 422, ""),
        ("POST", under, " ".repeat(10_001), 413, "10000"),
        ("DELETE", "/state/web".to_owned(), String::new(), 423, ""),
    ];
    let mut kept = 0;
    for (method, target, body, code, _) in rows {
        server.clock.advance(Duration::from_secs(1));
        // Deleting is not for guests.
        let peer = if method == "DELETE" { local() } else { elsewhere() };
        server.send_as(peer, method, &target, &[], body).await.expect(code, &format!("{method} {target}"));
        kept += 1;
        let refusals = server.refusals("web").await;
        assert_eq!(refusals.len(), kept, "{method} {code}");
        assert_eq!((&refusals[0]["operation"], &refusals[0]["code"]), (&method.into(), &code.into()));
        let who = refusals[0]["who"].as_str().unwrap();
        let name = if method == "DELETE" { "127.0.0.1" } else { "backend:web:guest" };
        assert!(who.contains(name), "{who}");
        assert_eq!(who.contains("root@vm"), method == "LOCK" && code == 423, "{who}");
        assert!(!refusals[0]["reason"].as_str().unwrap().is_empty());
        assert_eq!(server.tenant("web").await["refusal"], refusals[0], "{method} {code}");
    }
    let times: Vec<String> = server
        .refusals("web")
        .await
        .iter()
        .map(|refusal| refusal["at"].as_str().unwrap().to_owned())
        .collect();
    assert!(times.is_sorted_by(|newer, older| newer > older), "newest first: {times:?}");
    let reasons: Vec<String> = server
        .refusals("web")
        .await
        .iter()
        .map(|refusal| refusal["reason"].as_str().unwrap().to_owned())
        .collect();
    for piece in ["serial 4 is lower than the current version's serial 5", "lineage m", "10000 bytes"] {
        assert!(reasons.iter().any(|reason| reason.contains(piece)), "{piece}: {reasons:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_shown_until_the_next_accepted_write_and_kept_after_it() {
    let server = InProcess::new();
    server.post("web", state("l", 5)).await.expect(200, "POST");
    assert!(server.tenant("web").await["refusal"].is_null());
    server.post("web", state("l", 4)).await.expect(409, "POST");
    server.lock("web", &lock::id(1), APPLY).await.expect(200, "LOCK");
    assert_eq!(server.tenant("web").await["refusal"]["code"], 409, "a lock is no write");
    assert_eq!(server.get("/rezus/v1/tenants").await.items()[0]["refusal"]["code"], 409);
    server.post_under("web", &lock::id(1), state("l", 6)).await.expect(200, "POST");
    assert!(server.tenant("web").await["refusal"].is_null());
    assert_eq!(server.refusals("web").await.len(), 1);
}

#[tokio::test]
async fn the_newest_hundred_refusals_are_kept() {
    let server = InProcess::new();
    server.post("web", state("l", 1_000)).await.expect(200, "POST");
    for serial in 0..105 {
        server.post("web", state("l", serial)).await.expect(409, "POST");
    }
    let refusals = server.refusals("web").await;
    assert_eq!(refusals.len(), 100);
    for (refusal, serial) in refusals.iter().zip((5..105).rev()) {
        let reason = refusal["reason"].as_str().unwrap();
        assert!(reason.starts_with(&format!("serial {serial} ")), "{reason}");
    }
}

#[tokio::test]
async fn what_was_refused_before_there_was_a_tenant_can_be_read_too() {
    let server = InProcess::new();
    server.post("web", "{}").await.expect(422, "POST");
    server.send_as(elsewhere(), "POST", "/state/web", &[], state("l", 1)).await.expect(404, "POST");
    let codes: Vec<u64> =
        server.refusals("web").await.iter().map(|refusal| refusal["code"].as_u64().unwrap()).collect();
    assert_eq!(codes, [404, 422]);
}
