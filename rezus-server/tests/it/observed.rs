//! What is observed of clusters, and how it is shown beside what is declared.

mod ages;
mod clusters;
mod credentials;
mod etcd;
mod facts;
mod lab;
mod live;
mod machines;
mod others;
mod peers;
mod rebuilt;
mod sampled;
mod sampled_live;
mod story;
mod watches;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_core::observed::Credential;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::projection::condition;

/// Where the API is.
const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// The parts of an object that are declared, as bytes: without the resource version, which moves with the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    kind: String,
    metadata: String,
    spec: String,
}

#[derive(Deserialize)]
struct Object {
    kind: String,
    metadata: Box<RawValue>,
    spec: Box<RawValue>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Object>,
}

/// What is declared by the objects of a list.
fn declared(list: &[u8]) -> Vec<Declared> {
    let list: List = serde_json::from_slice(list).unwrap();
    let declared = |Object { kind, metadata, spec }: Object| {
        let metadata = metadata.get();
        let (before, rest) = metadata.split_once(r#""resourceVersion":""#).expect("a resource version");
        let (_, after) = rest.split_once('"').unwrap();
        Declared { kind, metadata: format!("{before}{after}"), spec: spec.get().to_owned() }
    };
    list.items.into_iter().map(declared).collect()
}

/// Status and reason of an object's condition.
fn says<'o>(object: &'o Value, kind: &str) -> (&'o str, &'o str) {
    let condition = condition(object, kind);
    let text = |member: &str| condition.and_then(|it| it[member].as_str()).unwrap_or("none");
    (text("status"), text("reason"))
}

/// A credential as states hold it: PEM in base64.
fn parts(credential: &Credential) -> Value {
    json!({
        "ca_certificate": STANDARD.encode(&*credential.ca),
        "client_certificate": STANDARD.encode(&*credential.certificate),
        "client_key": STANDARD.encode(&*credential.key),
    })
}
