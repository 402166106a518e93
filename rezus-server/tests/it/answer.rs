//! What a server answered, however it was asked.

use axum::http::HeaderMap;
use bytes::Bytes;
use serde_json::Value;

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Fails unless the answer has this status.
    #[track_caller]
    pub(crate) fn expect(self, code: u16, what: &str) -> Self {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(2_000)]);
        assert_eq!(self.code, code, "{what}: {body}");
        self
    }

    /// Returns the body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// Returns what a `Status` says.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        let status = self.json();
        assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Failure".into()));
        assert_eq!(status["code"], self.code);
        status["message"].as_str().unwrap().to_owned()
    }

    /// Returns the items of a list.
    #[track_caller]
    pub(crate) fn items(&self) -> Vec<Value> {
        let list = self.json();
        list["items"].as_array().unwrap_or_else(|| panic!("no list: {list}")).clone()
    }

    /// Returns a header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Returns the `Content-MD5` of a body.
pub(crate) fn content_md5(body: &[u8]) -> String {
    use base64::Engine as _;
    let digest = rezus_core::declared::Fingerprint::of(body).md5;
    base64::engine::general_purpose::STANDARD.encode(digest)
}
