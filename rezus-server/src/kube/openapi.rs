//! `/openapi/v3`: what the API is, for `kubectl explain` and for whoever makes clients of it (OpenAPI 3.0, in the form
//! that Kubernetes gives it). Made once from the [table of kinds](super::kinds) and the schemas of the
//! [client types](rezus_core::client).

mod core_v1;
mod dialect;
mod meta;
mod paths;
mod schemas;

use std::sync::OnceLock;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};

use super::accept::{Form, negotiate};
use super::document::{Document, IMMUTABLE, REVALIDATE, refuse};
use crate::error::ApiError;

/// The paths, for whoever must know all of them. Each takes GET alone.
pub const PATHS: [&str; 4] =
    ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/rezuscloud.io/v1alpha1"];

/// Returns the routes.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let [v2, index, core, group] = PATHS;
    let document = |which| {
        get(move |headers: HeaderMap, query: RawQuery| async move { show(which, &headers, query) })
            .fallback(refuse)
    };
    Router::new()
        .route(v2, get(show_v2).fallback(refuse))
        .route(index, get(show_index).fallback(refuse))
        .route(core, document(Which::Core))
        .route(group, document(Which::Group))
}

/// One of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// `api/v1`
    Core,
    /// `apis/rezuscloud.io/v1alpha1`
    Group,
}

impl Which {
    const ALL: [Self; 2] = [Self::Core, Self::Group];

    /// The name in the index.
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "api/v1",
            Self::Group => "apis/rezuscloud.io/v1alpha1",
        }
    }

    /// Returns the document; it is made when it is asked for first.
    fn document(self) -> &'static Document {
        static CORE: OnceLock<Document> = OnceLock::new();
        static GROUP: OnceLock<Document> = OnceLock::new();
        let place = match self {
            Self::Core => &CORE,
            Self::Group => &GROUP,
        };
        place.get_or_init(|| Document::of(&self.make()))
    }

    fn make(self) -> Value {
        let is_core = self == Self::Core;
        let mut schemas = meta::schemas();
        schemas.extend(if is_core { core_v1::schemas() } else { schemas::schemas() });
        let paths: Map<String, Value> = paths::paths(is_core);
        json!({
            "openapi": "3.0.0",
            "info": { "title": "rezus", "version": crate::telemetry::VERSION },
            "paths": paths,
            "components": { "schemas": schemas, "parameters": paths::parameters() },
        })
    }

    /// Where the document is, of its present content.
    fn url(self) -> String {
        format!("/openapi/v3/{}?hash={}", self.name(), self.document().hash)
    }
}

/// The documents there are. It is asked for each time; the hashes tell whether a document that is kept is still true.
async fn show_index(headers: HeaderMap) -> Result<Response, ApiError> {
    let form = negotiate(&headers, &[Form::Json])?;
    let paths: Map<String, Value> = Which::ALL
        .into_iter()
        .map(|which| (which.name().to_owned(), json!({ "serverRelativeURL": which.url() })))
        .collect();
    let index = Document::of(&json!({ "paths": paths }));
    Ok(index.answer(&headers, form, REVALIDATE))
}

/// A document. Under the hash of its content it never changes, and is kept by clients; under any other hash it is somewhere
/// else.
fn show(which: Which, headers: &HeaderMap, RawQuery(query): RawQuery) -> Result<Response, ApiError> {
    let form = negotiate(headers, &[Form::Json])?;
    let document = which.document();
    let query = query.unwrap_or_default();
    let hash = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "hash");
    Ok(match hash {
        Some((_, hash)) if hash == document.hash => document.answer(headers, form, IMMUTABLE),
        Some((_, hash)) if !hash.is_empty() => {
            (StatusCode::MOVED_PERMANENTLY, [(LOCATION, which.url()), (CACHE_CONTROL, REVALIDATE.to_owned())])
                .into_response()
        }
        _ => document.answer(headers, form, REVALIDATE),
    })
}

async fn show_v2() -> ApiError {
    ApiError::not_acceptable(
        "OpenAPI v2 is not served: /openapi/v3 is, and kubectl reads it from release 1.29 on",
    )
}

#[cfg(test)]
mod tests;
