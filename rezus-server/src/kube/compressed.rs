//! Answers that are ready, packed where that is worth it.

use std::convert::Infallible;
use std::io::Write as _;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::form::Pieces;

/// Above how many bytes an answer is packed (kube-apiserver, `responsewriters`).
const WORTH_IT: usize = 128 << 10;

/// Returns a list as an answer: packed as a whole, or else as it is read.
pub(super) async fn list(pieces: Pieces, headers: &HeaderMap) -> Response {
    if pieces.size() <= WORTH_IT || takes_gzip(headers) {
        return json(pieces.whole(), headers).await;
    }
    let pieces = futures_util::stream::iter(pieces.map(Ok::<_, Infallible>));
    let kind = [(CONTENT_TYPE, "application/json"), (VARY, "Accept, Accept-Encoding")];
    (kind, Body::from_stream(pieces)).into_response()
}

/// Returns an answer of JSON.
pub(super) async fn json(body: Vec<u8>, headers: &HeaderMap) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    if body.len() <= WORTH_IT || !takes_gzip(headers) {
        return (kind, [(VARY, "Accept, Accept-Encoding")], body).into_response();
    }
    // Level 1: a third of the time of the default for a tenth more bytes.
    let pack = move || {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 6), Compression::fast());
        encoder.write_all(&body).and_then(|()| encoder.finish()).map_err(|error| (error, body))
    };
    match tokio::task::spawn_blocking(pack).await {
        Ok(Ok(packed)) => {
            let encoding = [(CONTENT_ENCODING, "gzip"), (VARY, "Accept, Accept-Encoding")];
            (kind, encoding, packed).into_response()
        }
        // Nothing can fail that writes to memory.
        Ok(Err((_, body))) => (kind, body).into_response(),
        Err(error) => crate::error::ApiError::internal(error).into_response(),
    }
}

/// Tells whether `Accept-Encoding` names gzip with a weight above 0 (RFC 9110, section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_those_who_take_it() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("", false),
            ("xgzip", false),
        ] {
            let headers = [(ACCEPT_ENCODING, value.parse().unwrap())].into_iter().collect();
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
