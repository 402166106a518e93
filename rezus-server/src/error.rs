//! What goes wrong, and the answer to it: the one place where errors become HTTP.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rezus_core::access::AccountStoreError;
use rezus_core::declared::backend::{BackendError, Refusal};
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::store::StoreError;
use rezus_core::runs::store::RunStoreError;
use serde::Serialize;

use crate::runs::RunsError;

/// An answer that is no success: what the client reads, and what the log does.
#[derive(Debug)]
pub struct ApiError {
    code: StatusCode,
    reason: &'static str,
    message: String,
    /// After how many seconds to come back.
    retry_after: Option<u64>,
    /// How to prove who one is.
    challenge: Option<&'static str>,
    /// The body instead of a `Status`, where a client of the HTTP backend wants to read the holder's lock.
    lock_info: Option<Box<str>>,
    /// What of a `Status` only its kind of error has: names, causes.
    details: Option<Box<serde_json::Value>>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What an answer said that is no success, beside it: for clients that read another form.
#[derive(Clone, Debug)]
pub struct Said(pub String);

/// The Kubernetes form of an error (API conventions, "Response Status Kind").
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: serde_json::Map<String, serde_json::Value>,
    #[serde(rename = "status")]
    outcome: &'static str,
    message: &'a str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a serde_json::Value>,
    code: u16,
}

impl ApiError {
    /// The request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// The method is not one of this path's.
    pub fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// What is asked for means nothing.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    /// What is asked for is kept no longer.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The URL is longer than it may be.
    pub fn uri_too_long(message: impl Into<String>) -> Self {
        Self::new(StatusCode::URI_TOO_LONG, "RequestURITooLong", message)
    }

    /// The head is longer than it may be.
    pub fn head_too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "RequestHeaderFieldsTooLarge", message)
    }

    /// The body is longer than it may be.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// It took longer than it may.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    /// None of the forms that the client takes can be given.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// The body is of a form that is not read here.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// The server is too busy for it now.
    pub fn busy(message: impl Into<String>) -> Self {
        let busy = Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
        Self { retry_after: Some(5), ..busy }
    }

    /// Nobody was recognised: this is how to prove who one is (RFC 9110, section 11.6.1).
    pub fn unauthorized(challenge: &'static str) -> Self {
        let error = Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
        Self { challenge: Some(challenge), ..error }
    }

    /// The caller may not do it.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// What is there already is in the way.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// There is one of that name.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message)
    }

    /// There are fewer bytes than that.
    pub fn range_not_satisfiable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "RequestedRangeNotSatisfiable", message)
    }

    /// The caller asks too often.
    pub fn too_many(message: impl Into<String>, wait: std::time::Duration) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        Self { retry_after: Some(wait.as_secs().max(1)), ..error }
    }

    /// A fault of ours: the client is told that, the log is told what.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let message = "an internal error: the server's log has the cause, under this answer's x-request-id";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        Self { cause: Some(cause.into()), ..error }
    }

    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            retry_after: None,
            challenge: None,
            lock_info: None,
            details: None,
            cause: None,
        }
    }

    /// Adds what only its kind of error has: the `details` of a `Status`.
    #[must_use]
    pub fn with_details(self, details: serde_json::Value) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// Returns what the client is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the error as the JSON of a Kubernetes `Status`.
    pub fn to_status(&self) -> String {
        // Texts and numbers: they can always be written.
        serde_json::to_string(&self.status()).unwrap_or_default()
    }

    fn status(&self) -> Status<'_> {
        Status {
            kind: "Status",
            api_version: "v1",
            metadata: serde_json::Map::new(),
            outcome: "Failure",
            message: &self.message,
            reason: self.reason,
            details: self.details.as_deref(),
            code: self.code.as_u16(),
        }
    }

    /// Returns the answer's code.
    pub fn code(&self) -> StatusCode {
        self.code
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::CONFLICT);
        let reason = match code {
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
            StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
            StatusCode::LOCKED => "Locked",
            _ => "Conflict",
        };
        let lock_info = refusal.lock_info().map(|info| info.to_json().into());
        Self { lock_info, ..Self::new(code, reason, refusal.to_string()) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => Self::internal(error),
            StoreError::Unavailable { .. } => {
                let message = "the store cannot be used now: nothing is known to have been written";
                Self { cause: Some(Box::new(error)), ..Self::busy(message) }
            }
        }
    }
}

impl From<RunStoreError> for ApiError {
    fn from(error: RunStoreError) -> Self {
        match error {
            RunStoreError::Corrupt { .. } => Self::internal(error),
            RunStoreError::Unavailable { .. } => {
                let message = "the store of runs cannot be used now: nothing is known to have been written";
                Self { cause: Some(Box::new(error)), ..Self::busy(message) }
            }
        }
    }
}

impl From<AccountStoreError> for ApiError {
    fn from(error: AccountStoreError) -> Self {
        match error {
            AccountStoreError::Corrupt { .. } => Self::internal(error),
            AccountStoreError::Unavailable { .. } => {
                let message = "the accounts cannot be used now: nothing is known to have been written";
                Self { cause: Some(Box::new(error)), ..Self::busy(message) }
            }
        }
    }
}

impl From<BackendError> for ApiError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Refused(refusal) => refusal.into(),
            BackendError::Store(error) => error.into(),
            BackendError::Busy(_) | BackendError::Contended => Self::busy(error.to_string()),
        }
    }
}

impl From<RunsError> for ApiError {
    fn from(error: RunsError) -> Self {
        let message = error.to_string();
        match error {
            RunsError::Closed => Self::busy(message),
            RunsError::Disabled | RunsError::NoAuthentication | RunsError::Protected(_) => {
                Self::forbidden(message)
            }
            RunsError::NoTenant(_) | RunsError::NoRun { .. } => Self::not_found(message),
            RunsError::Exists(_) => Self::already_exists(message),
            RunsError::NoWorkspace(_)
            | RunsError::NotWaiting { .. }
            | RunsError::NotEnded { .. }
            | RunsError::HoldsLock { .. }
            | RunsError::UnderWay(_) => Self::conflict(message),
            RunsError::Request(_) | RunsError::Name(_) => Self::invalid(message),
            RunsError::States(error) => error.into(),
            RunsError::Backend(error) => error.into(),
            RunsError::Store(RunStoreError::Unavailable { .. }) => Self {
                cause: Some(Box::new(error)),
                ..Self::busy("runs cannot be kept or read now: try again")
            },
            RunsError::Store(_) | RunsError::Random(_) | RunsError::Token(_) | RunsError::Executor(_) => {
                Self::internal(error)
            }
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            ReadError::Busy(busy) => Self::busy(busy.to_string()),
            ReadError::Encrypted { .. } => Self::new(StatusCode::CONFLICT, "Encrypted", error.to_string()),
            ReadError::NoTenant(_)
            | ReadError::NoState(_)
            | ReadError::NoVersion { .. }
            | ReadError::NoObject { .. } => Self::not_found(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.code.is_server_error() {
            let cause = self.cause.as_deref().map(|cause| Chain(cause).to_string());
            tracing::error!(code = self.code.as_u16(), cause, "{}", self.message);
        }
        let (retry_after, challenge) = (self.retry_after, self.challenge);
        let said = Said(self.message.clone());
        let mut response = if let Some(lock) = self.lock_info {
            (self.code, [(header::CONTENT_TYPE, "application/json")], String::from(lock)).into_response()
        } else {
            (self.code, Json(self.status())).into_response()
        };
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response.extensions_mut().insert(said);
        response
    }
}

/// Writes an error and its causes, each once.
#[derive(Debug)]
pub struct Chain<'a>(
    /// The outermost error.
    pub &'a (dyn std::error::Error + 'a),
);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut next = Some(self.0);
        let mut last = String::new();
        while let Some(error) = next {
            let text = error.to_string();
            // Transparent errors repeat their source's text.
            if text != last {
                let separator = if last.is_empty() { "" } else { ": " };
                write!(f, "{separator}{text}")?;
            }
            last = text;
            next = error.source();
        }
        Ok(())
    }
}
