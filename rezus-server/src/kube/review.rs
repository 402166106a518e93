//! What a caller asks about itself: what it may do, and who it is (`authorization.k8s.io/v1`, `authentication.k8s.io/v1`).
//! kubectl's `auth` asks, and k9s does before each view. Bodies are JSON or protobuf; answers are JSON.

mod protobuf;
mod rights;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{Extensions, HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use rezus_core::access::{Access, Identity};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;

/// The paths, for whoever must know all of them. Each takes POST alone.
pub const PATHS: [&str; 3] = [
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
];

/// What a body may have at most, in bytes. Reviews are small.
const LIMIT: usize = 64 * 1024;

/// Returns the routes.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    PATHS.into_iter().zip(Kind::ALL).fold(Router::new(), |router, (path, kind)| {
        let handler = move |request: Request<Body>| async move { review(kind, request).await };
        router.route(path, post(handler).fallback(refuse))
    })
}

async fn refuse(method: Method) -> Response {
    let message =
        format!("{method} is no method of this path: POST a review, which is answered and not kept");
    ([(ALLOW, "POST")], ApiError::method_not_allowed(message)).into_response()
}

async fn review(kind: Kind, request: Request<Body>) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LIMIT).await.map_err(|_| {
        ApiError::bad_request(format!("the body did not come whole, or has more than {LIMIT} bytes"))
    })?;
    let review = Review::read(kind, &head.headers, &body)?;
    let answer = review.answer(&identity(&head.extensions));
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Which review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Access,
    Rules,
    Identity,
}

impl Kind {
    /// In the order of [`PATHS`].
    const ALL: [Self; 3] = [Self::Access, Self::Rules, Self::Identity];

    const fn api_version(self) -> &'static str {
        match self {
            Self::Access | Self::Rules => "authorization.k8s.io/v1",
            Self::Identity => "authentication.k8s.io/v1",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Access => "SelfSubjectAccessReview",
            Self::Rules => "SelfSubjectRulesReview",
            Self::Identity => "SelfSubjectReview",
        }
    }
}

/// A question about the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Review {
    /// Whether it may do something.
    Access(Action),
    /// All that it may do in a namespace.
    Rules(String),
    /// Who it is.
    Identity,
}

/// Something that can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// With a resource.
    Resource(ResourceAction),
    /// With a path that is none.
    Path(PathAction),
}

/// `resourceAttributes`. Texts that are empty stand for all, or for none where there is but one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ResourceAction {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
}

/// `nonResourceAttributes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PathAction {
    path: String,
    verb: String,
}

/// A review as it is sent, of any kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Sent {
    api_version: String,
    kind: String,
    spec: SentSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SentSpec {
    resource_attributes: Option<ResourceAction>,
    non_resource_attributes: Option<PathAction>,
    namespace: String,
}

impl Review {
    /// Reads a body.
    fn read(kind: Kind, headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiError> {
        let media = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let media = media.as_deref().unwrap_or("application/json").split(';').next().unwrap_or_default();
        let sent = match media.trim().to_ascii_lowercase().as_str() {
            // The error's own words may quote the body.
            "application/json" => serde_json::from_slice(body).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                ApiError::bad_request(format!(
                    "the body is no {} (line {line}, column {column})",
                    kind.kind()
                ))
            })?,
            "application/vnd.kubernetes.protobuf" => protobuf::read(body)
                .map_err(|error| ApiError::bad_request(format!("the body is no {}: {error}", kind.kind())))?,
            _ => {
                return Err(ApiError::unsupported_media_type(
                    "the body's Content-Type is application/json or application/vnd.kubernetes.protobuf",
                ));
            }
        };
        Self::of(kind, sent)
    }

    fn of(kind: Kind, sent: Sent) -> Result<Self, ApiError> {
        let is = |said: &str, expected: &str| said.is_empty() || said == expected;
        if !is(&sent.kind, kind.kind()) || !is(&sent.api_version, kind.api_version()) {
            let (kind, version) = (kind.kind(), kind.api_version());
            return Err(ApiError::bad_request(format!("this path takes a {kind} of {version}")));
        }
        let SentSpec { resource_attributes, non_resource_attributes, namespace } = sent.spec;
        Ok(match kind {
            Kind::Rules => Self::Rules(namespace),
            Kind::Identity => Self::Identity,
            Kind::Access => Self::Access(match (resource_attributes, non_resource_attributes) {
                (Some(action), None) => Action::Resource(action),
                (None, Some(action)) => Action::Path(action),
                (None, None) | (Some(_), Some(_)) => {
                    return Err(ApiError::bad_request(
                        "spec has resourceAttributes or nonResourceAttributes, one of the two",
                    ));
                }
            }),
        })
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Access(_) => Kind::Access,
            Self::Rules(_) => Kind::Rules,
            Self::Identity => Kind::Identity,
        }
    }

    /// Answers it. What was asked is not repeated.
    fn answer(&self, asker: &Identity) -> Value {
        let status = match self {
            Self::Access(action) => match rights::decide(asker, action) {
                Ok(()) => json!({ "allowed": true }),
                Err(reason) => json!({ "allowed": false, "reason": reason }),
            },
            Self::Rules(namespace) => rights::rules(asker, namespace),
            Self::Identity => {
                json!({ "userInfo": { "username": asker.name, "groups": asker.groups } })
            }
        };
        let kind = self.kind();
        let mut answer = json!({
            "kind": kind.kind(),
            "apiVersion": kind.api_version(),
            "metadata": {},
            "status": status,
        });
        if kind != Kind::Identity {
            answer["spec"] = json!({});
        }
        answer
    }
}

/// Tells who sent a request; of one that nobody sent, nobody may do anything.
fn identity(extensions: &Extensions) -> Identity {
    extensions.get().cloned().unwrap_or_else(|| Identity {
        name: String::new(),
        groups: Vec::new(),
        access: Access::default(),
        token: None,
    })
}

#[cfg(test)]
mod tests;
