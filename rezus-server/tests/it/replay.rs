//! Recorded sessions of real OpenTofu and Terraform, sent again request by request.
//!
//! Every recorded status is ours too: the recording backend checked locks only, but its clients never sent a serial or
//! lineage that breaks the rules outside of `state push`. Not sent is what was never done when it was recorded; sent is
//! what was done and only its answer lost.

use std::collections::{BTreeMap, BTreeSet};

use rezus_testkit::recording::{self, Act, BehindTheBack, Event, Injected, Request, Session, Tool};
use serde_json::Value;

use crate::lock;
use crate::server::Server;

/// What a correct server holds at this point of a session.
#[derive(Debug, Default)]
struct Expected {
    /// The ID of the lock that is held, by tenant.
    held: BTreeMap<String, String>,
    /// The IDs of all locks that the recorded program itself was given.
    own: BTreeSet<String>,
    /// All versions, oldest first, by tenant.
    versions: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Expected {
    /// Finds whose state a target means: of `/state?ID=` the lock's holder, else the tenant of that name.
    fn tenant(&self, target: &str) -> String {
        if let Some(path) = target.strip_prefix("/state/") {
            return path.split('?').next().unwrap().to_owned();
        }
        let id = target.strip_prefix("/state?ID=").expect("a target of the state backend");
        let holder = self.held.iter().find(|(_, held)| *held == id).map(|(tenant, _)| tenant.clone());
        holder.unwrap_or_else(|| id.to_owned())
    }

    fn current(&self, tenant: &str) -> Option<&Vec<u8>> {
        self.versions.get(tenant).and_then(|versions| versions.last())
    }

    /// An accepted write: the same bytes again are no new version.
    fn accept(&mut self, tenant: &str, body: &[u8]) {
        if self.current(tenant).is_none_or(|current| current != body) {
            self.versions.entry(tenant.to_owned()).or_default().push(body.to_vec());
        }
    }
}

/// The steps that end with their own lock held: those that no client survived.
const LEFT_LOCKED: [&str; 4] = [
    "signal kill: apply -json",
    "signal kill-group: apply -json",
    "signal pipe: apply -json",
    "signal hup: apply -json",
];

async fn replay(tool: Tool, session: Session) {
    let server = Server::start().await;
    let mut expected = Expected::default();
    let entries = recording::entries(tool, session);
    for (number, entry) in entries.iter().enumerate() {
        let step = format!("{tool:?}, entry {number}, {}", entry.step);
        match &entry.event {
            Event::Request(request) => send(&server, &mut expected, request, &step).await,
            Event::BehindTheBack(act) => happen(&server, &mut expected, act, &step).await,
        }
        let is_last = entries.get(number + 1).is_none_or(|next| next.step != entry.step);
        if is_last {
            let held: Vec<(String, String)> = expected.held.clone().into_iter().collect();
            assert_eq!(server.locks().await, held, "locks after {step}");
            let is_left = expected.held.values().any(|id| expected.own.contains(id));
            assert_eq!(
                is_left,
                LEFT_LOCKED.contains(&entry.step.as_str()),
                "{step} leaves its own lock held"
            );
        }
    }
    assert!(expected.versions.len() > usize::from(session != Session::Encryption));
    for (tenant, bodies) in &expected.versions {
        let versions = server.versions(tenant).await;
        let sizes: Vec<u64> = versions.iter().map(|version| version["sizeBytes"].as_u64().unwrap()).collect();
        let lengths: Vec<u64> = bodies.iter().map(|body| u64::try_from(body.len()).unwrap()).collect();
        assert_eq!(sizes, lengths, "versions of {tenant}");
        for (version, body) in versions.iter().zip(bodies) {
            let path = format!("/rezus/v1/tenants/{tenant}/versions/{}/body", version["version"]);
            let kept = server.get(&path).await.expect(200, &path);
            assert!(kept.body == *body, "{path} is not what was posted");
        }
    }
}

async fn send(server: &Server, expected: &mut Expected, request: &Request, step: &str) {
    let status = match request.injected {
        Some(Injected::Status | Injected::LostUndone) => return,
        Some(Injected::LostStored) => 200,
        None => request.status.expect("an answer that was not lost"),
    };
    // The transport makes its own of these.
    let skipped = ["content-length", "host", "connection", "transfer-encoding", "accept-encoding"];
    let headers: Vec<(&str, &str)> = request
        .headers
        .iter()
        .filter(|(name, _)| !skipped.contains(&name.to_ascii_lowercase().as_str()))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let tenant = expected.tenant(&request.target);
    let answer = server.send_with(&request.method, &request.target, &headers, request.body.clone()).await;
    let answer = answer.expect(status, &format!("{step}: {} {}", request.method, request.target));
    match (request.method.as_str(), status) {
        ("GET", 200) => {
            let current = expected.current(&tenant).expect("a state that was posted");
            assert!(answer.body == *current, "{step}: GET is not what was posted last");
        }
        ("GET", _) => assert_eq!(expected.current(&tenant), None, "{step}"),
        ("POST", 200) => expected.accept(&tenant, &request.body),
        ("LOCK", 200) => {
            let id = id_of(&request.body);
            expected.own.insert(id.clone());
            expected.held.insert(tenant, id);
        }
        ("UNLOCK", 200) => {
            expected.held.remove(&tenant);
        }
        ("LOCK" | "UNLOCK", 409 | 423) => {
            let recorded: Value = serde_json::from_slice(&request.answer).unwrap();
            assert_eq!(answer.json(), recorded, "{step}: the holder's lock");
        }
        (method, status) => panic!("{step}: {method} was answered {status}"),
    }
}

fn id_of(lock_info: &[u8]) -> String {
    let info: Value = serde_json::from_slice(lock_info).unwrap();
    info["ID"].as_str().unwrap().to_owned()
}

/// Does what somebody else did while the client was recorded.
async fn happen(server: &Server, expected: &mut Expected, act: &BehindTheBack, step: &str) {
    let path = format!("/state/{}", act.tenant);
    match act.act {
        Act::Lock => {
            server.send("LOCK", &path, act.body.clone()).await.expect(200, step);
            expected.held.insert(act.tenant.clone(), id_of(&act.body));
        }
        Act::BreakLock => {
            server.send("UNLOCK", &path, "").await.expect(200, step);
            expected.held.remove(&act.tenant);
        }
        Act::Store => {
            // By hand and against the rules: as `state push -force` does it.
            let id = lock::id(1);
            let info = lock::info(&id, lock::PUSH);
            server.send("LOCK", &path, info.clone()).await.expect(200, step);
            server.send("POST", &format!("{path}?ID={id}"), act.body.clone()).await.expect(200, step);
            server.send("UNLOCK", &path, info).await.expect(200, step);
            expected.accept(&act.tenant, &act.body);
        }
    }
}

#[tokio::test]
async fn opentofu_gets_every_answer_it_was_recorded_with() {
    replay(Tool::OpenTofu, Session::Backend).await;
}

#[tokio::test]
async fn opentofu_cancelled_and_failing_gets_every_answer_it_was_recorded_with() {
    replay(Tool::OpenTofu, Session::Run).await;
}

#[tokio::test]
async fn opentofu_with_encryption_gets_every_answer_it_was_recorded_with() {
    replay(Tool::OpenTofu, Session::Encryption).await;
}

#[tokio::test]
async fn terraform_gets_every_answer_it_was_recorded_with() {
    replay(Tool::Terraform, Session::Backend).await;
}

#[tokio::test]
async fn terraform_cancelled_and_failing_gets_every_answer_it_was_recorded_with() {
    replay(Tool::Terraform, Session::Run).await;
}
