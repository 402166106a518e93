//! Answers that are the same for everyone as long as the server runs: discovery and schemas. They are made once, and told
//! by a tag, so that clients who have them already are not sent them again.

use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use rezus_core::declared::Fingerprint;
use serde_json::Value;

use super::accept::Form;
use crate::error::ApiError;

/// May be kept, but not used again without asking.
pub(super) const REVALIDATE: &str = "no-cache";

/// Never changes under its URL (RFC 8246).
pub(super) const IMMUTABLE: &str = "public, immutable, max-age=31536000";

/// An answer's body, and what its content is told by.
#[derive(Debug)]
pub(super) struct Document {
    body: Bytes,
    /// SHA-256 of the body, in hexadecimal.
    pub(super) hash: String,
}

impl Document {
    /// Writes a value out.
    pub(super) fn of(value: &Value) -> Self {
        let body = value.to_string();
        let hash = Fingerprint::of(body.as_bytes()).sha256_hex();
        Self { body: body.into(), hash }
    }

    /// Sends it, or says that the client has it. `keep` is the answer's `Cache-Control`.
    pub(super) fn answer(&self, headers: &HeaderMap, form: Form, keep: &'static str) -> Response {
        let tag = format!("\"{}\"", self.hash);
        let is_known = has_tag(headers, &tag);
        let about = [(ETAG, tag), (CACHE_CONTROL, keep.to_owned()), (VARY, "accept".to_owned())];
        if is_known {
            return (StatusCode::NOT_MODIFIED, about).into_response();
        }
        (about, [(CONTENT_TYPE, form.content_type())], self.body.clone()).into_response()
    }
}

/// Whether the client has what it would be sent (RFC 9110, section 13.1.2).
fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

/// The answer to every method but GET, of what nobody can change.
pub(super) async fn refuse(method: Method) -> Response {
    let error = ApiError::method_not_allowed(format!("{method} is no method of this path: use GET"));
    ([(ALLOW, "GET, HEAD")], error).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_has_is_told_by_its_tag() {
        for (sent, is_same) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, sent.parse().unwrap());
            assert_eq!(has_tag(&headers, "\"a\""), is_same, "{sent}");
        }
        assert!(!has_tag(&HeaderMap::new(), "\"a\""));
    }
}
