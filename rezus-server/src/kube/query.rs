//! What a request for objects asks for: the query parameters of lists and watches (Kubernetes, `ListOptions`).

mod cursor;

use std::time::Duration;

pub use cursor::Cursor;
use serde_json::json;

use super::kinds::KindInfo;
use super::selector::{FieldSelector, LabelSelector};
use crate::error::ApiError;

/// What is asked for. Parameters that are unknown or empty are passed over.
#[derive(Clone, Debug)]
pub struct Options {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
    /// What rows of a table carry.
    pub rows: RowObject,
    /// As of which state version of a tenant (rezus's own `version`); the newest if absent.
    pub version: Option<u64>,
    /// Whether to list or to watch.
    pub ask: Ask,
}

/// A list or a watch.
#[derive(Clone, Debug)]
pub enum Ask {
    /// What there is.
    List {
        /// How many objects a page has at most.
        limit: Option<usize>,
        /// Of when.
        at: At,
    },
    /// What changes.
    Watch {
        /// Since when.
        from: Since,
        /// Whether bookmarks are sent.
        bookmarks: bool,
        /// How long, at most.
        timeout: Option<Duration>,
    },
}

/// Of when a list is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Now.
    Newest,
    /// Now, which must be no earlier than this resource version.
    NotBefore(u64),
    /// At this resource version.
    Exact(u64),
    /// The rest of a list that was begun.
    Rest(Cursor),
}

/// Since when a watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Present objects are told first, as if they had come just now. With `is_marked`, a bookmark tells where they end.
    Present {
        /// Whether a bookmark is sent behind them.
        is_marked: bool,
        /// The resource version that must have been reached.
        not_before: u64,
    },
    /// What changed after this resource version.
    After(u64),
    /// What changes from now on.
    Now,
}

/// What a table's rows carry beside their cells (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowObject {
    /// The object's metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    Nothing,
}

/// The parameters of a query; of several of one name the first counts.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that says something.
    fn text(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                let text: String = text.chars().take(60).collect();
                ApiError::bad_request(format!("{name}: {text:?} is no number that can be used"))
            })
        };
        self.text(name).map(parse).transpose()
    }

    /// Only absence, `0` and `false` are false.
    fn flag(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }
}

impl Options {
    /// Reads the query of a request for objects of a kind.
    ///
    /// # Errors
    ///
    /// 400 with the parameter that cannot be read, 422 for combinations that mean nothing.
    pub fn parse(query: &str, kind: &KindInfo) -> Result<Self, ApiError> {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let parameters =
            Parameters(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect());
        let bad = |error: super::selector::SelectorError| ApiError::bad_request(error.to_string());
        let labels =
            LabelSelector::parse(parameters.text("labelSelector").unwrap_or_default()).map_err(bad)?;
        let fields =
            FieldSelector::parse(parameters.text("fieldSelector").unwrap_or_default(), kind).map_err(bad)?;
        let version = parameters.number("version")?;
        let ask = if parameters.flag("watch") { watch(&parameters)? } else { list(&parameters)? };
        if version.is_some() && !matches!(ask, Ask::List { at: At::Newest, limit: None }) {
            return Err(ApiError::bad_request(
                "version: what a state declared then is listed whole and cannot be watched: leave watch, limit, continue and resourceVersion out",
            ));
        }
        Ok(Self { labels, fields, rows: row_object(&parameters)?, version, ask })
    }

    /// Reads the query of a request for one object: only what such a request can say.
    ///
    /// # Errors
    ///
    /// 400 with the parameter that cannot be read.
    pub fn parse_for_one(query: &str, kind: &KindInfo) -> Result<Self, ApiError> {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let said = pairs.filter(|(key, _)| key == "includeObject" || key == "version");
        let said = form_urlencoded::Serializer::new(String::new()).extend_pairs(said).finish();
        Self::parse(&said, kind)
    }

    /// Tells whether all objects are asked for, whatever they are.
    pub const fn selects_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

fn row_object(parameters: &Parameters) -> Result<RowObject, ApiError> {
    match parameters.text("includeObject") {
        None | Some("Metadata") => Ok(RowObject::Metadata),
        Some("Object") => Ok(RowObject::Object),
        Some("None") => Ok(RowObject::Nothing),
        Some(_) => Err(ApiError::bad_request("includeObject: expected Metadata, Object or None")),
    }
}

fn list(parameters: &Parameters) -> Result<Ask, ApiError> {
    let limit = parameters.number::<i64>("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let version = parameters.number::<u64>("resourceVersion")?;
    let matching = parameters.text("resourceVersionMatch");
    let rest = parameters.text("continue");
    if parameters.raw("sendInitialEvents").is_some() {
        return Err(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    let is_exact = match matching {
        Some(_) if rest.is_some() => {
            return Err(forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        Some(_) if version.is_none() => {
            return Err(forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        Some("Exact") if version == Some(0) => {
            return Err(forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        Some("Exact") => true,
        None | Some("NotOlderThan") => false,
        Some(_) => return Err(unsupported_match()),
    };
    let at = match (rest, version) {
        (Some(_), Some(1..)) => {
            return Err(ApiError::bad_request(
                "resourceVersion: specifying resource version is not allowed when using continue",
            ));
        }
        (Some(token), _) => At::Rest(Cursor::parse(token)?),
        (None, Some(version)) if is_exact => At::Exact(version),
        (None, Some(version @ 1..)) => At::NotBefore(version),
        (None, Some(0) | None) => At::Newest,
    };
    Ok(Ask::List { limit: limit.filter(|limit| *limit > 0), at })
}

fn watch(parameters: &Parameters) -> Result<Ask, ApiError> {
    let seconds = parameters.number::<i64>("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
    parameters.number::<i64>("limit")?;
    let version = parameters.number::<u64>("resourceVersion")?.unwrap_or(0);
    let matching = parameters.text("resourceVersionMatch");
    let initial = parameters.raw("sendInitialEvents").map(|_| parameters.flag("sendInitialEvents"));
    match (matching, initial) {
        (None, None) | (Some("NotOlderThan"), Some(_)) => {}
        (Some("NotOlderThan" | "Exact"), None) => {
            return Err(forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        (None, Some(_)) => {
            return Err(forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        (Some(_), _) => return Err(unsupported_match()),
    }
    let bookmarks = parameters.flag("allowWatchBookmarks");
    let from = match (initial, version) {
        (Some(true), _) => Since::Present { is_marked: bookmarks, not_before: version },
        (None, 0) => Since::Present { is_marked: false, not_before: 0 },
        (Some(false), 0) => Since::Now,
        (_, version) => Since::After(version),
    };
    let timeout = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    Ok(Ask::Watch { from, bookmarks, timeout })
}

fn unsupported_match() -> ApiError {
    forbidden(
        "resourceVersionMatch",
        "resourceVersionMatch must be Exact or NotOlderThan; a watch takes NotOlderThan alone",
    )
}

/// A combination of parameters that means nothing, in the words of a Kubernetes API server.
fn forbidden(field: &str, why: &str) -> ApiError {
    ApiError::invalid(format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: Forbidden: {why}")).with_details(json!({
        "group": "meta.k8s.io",
        "kind": "ListOptions",
        "causes": [{ "reason": "FieldValueForbidden", "message": format!("Forbidden: {why}"), "field": field }],
    }))
}

#[cfg(test)]
mod tests;
