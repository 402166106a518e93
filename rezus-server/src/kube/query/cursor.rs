//! Where a list that comes in pages goes on.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;

/// What a `continue` token says: which list, of when, and behind which object. Opaque to clients, and bound to the list
/// it was given for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The format of the token.
    #[serde(rename = "v")]
    pub format: u8,
    /// The resource version of the list.
    #[serde(rename = "rv")]
    pub version: u64,
    /// The plural of the kind.
    #[serde(rename = "k")]
    pub kind: String,
    /// The namespace that is listed; none for all.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The last object that was listed: its namespace (empty where it has none) and name.
    #[serde(rename = "start")]
    pub behind: (String, String),
}

const FORMAT: u8 = 1;

impl Cursor {
    /// Makes a cursor.
    pub fn new(version: u64, kind: &str, namespace: Option<&str>, behind: (&str, &str)) -> Self {
        let behind = (behind.0.to_owned(), behind.1.to_owned());
        let namespace = namespace.map(ToOwned::to_owned);
        Self { format: FORMAT, version, kind: kind.to_owned(), namespace, behind }
    }

    /// Reads a token.
    ///
    /// # Errors
    ///
    /// 400 for what this server did not make.
    pub fn parse(token: &str) -> Result<Self, ApiError> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok();
        let cursor = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        cursor.filter(|cursor| cursor.format == FORMAT).ok_or_else(|| {
            ApiError::bad_request(
                "continue: the token is none of this server's: begin the list anew without it",
            )
        })
    }

    /// Returns the token.
    pub fn token(&self) -> String {
        // Numbers and texts: they can always be written.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}
