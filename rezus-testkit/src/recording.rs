//! The requests that real OpenTofu and Terraform sent to an HTTP backend, under `recordings/`: replayed, they tell
//! whether a server answers as those programs need it.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// 44 commands in both address forms, with faults, and a migration from a local state.
    Backend,
    /// init, plan, apply, drift, failure, and cancelling by each signal.
    Run,
    /// State encryption: to it, under another key, tampered, and back. OpenTofu only.
    Encryption,
}

/// Which program was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// OpenTofu 1.12.6.
    OpenTofu,
    /// Terraform 1.11.4.
    Terraform,
}

/// All recordings there are.
pub const ALL: [(Tool, Session); 5] = [
    (Tool::OpenTofu, Session::Backend),
    (Tool::OpenTofu, Session::Run),
    (Tool::OpenTofu, Session::Encryption),
    (Tool::Terraform, Session::Backend),
    (Tool::Terraform, Session::Run),
];

/// One entry of a recording, in the order in which they happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The command it belongs to, and how its address was given.
    pub step: String,
    /// Seconds since the command began.
    pub at: f64,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The recorded program sent a request.
    Request(Request),
    /// Something happened to a tenant that the recorded program did not do.
    BehindTheBack(BehindTheBack),
}

/// One request and its answer.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method: GET, POST, DELETE, LOCK or UNLOCK.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Name and value of each header.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// The answer's status; `None` where the connection was dropped before it.
    pub status: Option<u16>,
    /// The answer's body.
    pub answer: Vec<u8>,
    /// The fault that was injected on purpose: then status and answer are not the server's own.
    pub injected: Option<Injected>,
}

/// A fault that was injected on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// The status was made up, and nothing done.
    Status,
    /// The answer was lost, and nothing done.
    LostUndone,
    /// The answer was lost after the body was stored.
    LostStored,
}

/// Something that happened to a tenant behind the client's back.
#[derive(Clone, Debug)]
pub struct BehindTheBack {
    /// Whose state or lock it was.
    pub tenant: String,
    /// What was done.
    pub act: Act,
    /// The lock's JSON, or the state.
    pub body: Vec<u8>,
}

/// What somebody else did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Took the lock.
    Lock,
    /// Broke the lock that was held.
    BreakLock,
    /// Stored these bytes by hand.
    Store,
}

impl Request {
    /// Returns a header's value; names are compared without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns where a recording is kept.
pub fn path(tool: Tool, session: Session) -> PathBuf {
    let directory = match tool {
        Tool::OpenTofu => "opentofu-1.12.6",
        Tool::Terraform => "terraform-1.11.4",
    };
    let file = match session {
        Session::Backend => "backend-requests.json",
        Session::Run => "run-requests.json",
        Session::Encryption => "encryption-requests.json",
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(directory).join(file)
}

/// Returns a recording.
///
/// # Panics
///
/// If there is none ([`ALL`] lists those there are), or it is not as its README says.
pub fn entries(tool: Tool, session: Session) -> Vec<Entry> {
    let text = std::fs::read(path(tool, session)).expect("the recording exists and can be read");
    let entries: Vec<Value> = serde_json::from_slice(&text).expect("a recording is a JSON array");
    entries.iter().map(entry).collect()
}

fn entry(entry: &Value) -> Entry {
    let act = &entry["behind the client's back"];
    let event = if act.is_null() {
        Event::Request(request(entry))
    } else {
        Event::BehindTheBack(BehindTheBack {
            tenant: text(entry, "tenant"),
            act: match act.as_str() {
                Some("another client locks") => Act::Lock,
                Some("the lock is broken") => Act::BreakLock,
                Some("these bytes are stored") => Act::Store,
                other => unreachable!("the recording knows no act {other:?}"),
            },
            body: text(entry, "body").into_bytes(),
        })
    };
    Entry { step: text(entry, "step"), at: entry["at"].as_f64().expect("at is a number"), event }
}

fn request(entry: &Value) -> Request {
    let headers = entry["headers"].as_object().expect("headers are an object");
    let value = |value: &Value| value.as_str().expect("a header is text").to_owned();
    Request {
        method: text(entry, "method"),
        target: text(entry, "target"),
        headers: headers.iter().map(|(name, found)| (name.clone(), value(found))).collect(),
        body: text(entry, "body").into_bytes(),
        status: entry["status"].as_u64().and_then(|status| u16::try_from(status).ok()),
        answer: text(entry, "answer").into_bytes(),
        injected: match entry["injected"].as_str() {
            None => None,
            Some("this status was injected") => Some(Injected::Status),
            Some("the answer was lost, nothing was done") => Some(Injected::LostUndone),
            Some("the answer was lost, the body was stored") => Some(Injected::LostStored),
            Some(other) => unreachable!("the recording knows no fault {other:?}"),
        },
    }
}

fn text(entry: &Value, member: &str) -> String {
    entry[member].as_str().expect("the member is text").to_owned()
}
