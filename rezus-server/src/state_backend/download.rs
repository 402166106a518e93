//! A version's bytes as an answer.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use rezus_core::base::TenantName;
use rezus_core::declared::store::VersionMeta;

use crate::compose::Plane;
use crate::error::ApiError;

/// How many bytes of a version are in memory for one answer.
const WINDOW: u64 = 1 << 20;

/// Returns a version's bytes as they were posted, window by window.
///
/// # Errors
///
/// [`ApiError`] if the first window cannot be read. A later one that cannot ends the connection early, which the
/// client sees by the length.
pub async fn download(
    plane: &Plane,
    tenant: &TenantName,
    version: &VersionMeta,
) -> Result<Response, ApiError> {
    let headers = headers(version)?;
    let store = Arc::clone(plane.backend.store());
    let number = version.version;
    let gone = || ApiError::not_found(format!("version {number} of {tenant} is gone"));
    let first = store.read(tenant, number, 0..WINDOW).await?.ok_or_else(gone)?;
    if version.size_bytes <= WINDOW {
        return Ok((headers, first).into_response());
    }
    let (tenant, size) = (tenant.clone(), version.size_bytes);
    let rest = stream::try_unfold((first, 0), move |(window, start)| {
        let (store, tenant) = (Arc::clone(&store), tenant.clone());
        async move {
            if start >= size {
                return Ok::<_, std::io::Error>(None);
            }
            let next_start = start + WINDOW;
            let next = if next_start >= size {
                bytes::Bytes::new()
            } else {
                let read = store.read(&tenant, number, next_start..next_start + WINDOW).await;
                match read.map_err(std::io::Error::other)? {
                    Some(next) => next,
                    None => return Err(std::io::Error::other("the version was removed")),
                }
            };
            Ok(Some((window, (next, next_start))))
        }
    });
    Ok((headers, Body::from_stream(rest)).into_response())
}

fn headers(version: &VersionMeta) -> Result<HeaderMap, ApiError> {
    let values = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, version.size_bytes.to_string()),
        (HeaderName::from_static("content-md5"), STANDARD.encode(version.fingerprint.md5)),
        (header::ETAG, format!("\"{}\"", version.fingerprint.sha256_hex())),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        headers.insert(name, HeaderValue::try_from(value).map_err(ApiError::internal)?);
    }
    Ok(headers)
}
