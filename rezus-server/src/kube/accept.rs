//! In which form an answer is wanted: the `Accept` header (RFC 9110, section 12.5.1), with the parameters `as`, `g` and
//! `v` that Kubernetes gives `application/json`.

use axum::http::{HeaderMap, header};

use crate::error::ApiError;

/// A form that an answer can have; JSON all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The objects as they are.
    Json,
    /// `Table` of `meta.k8s.io/v1`: columns and rows, as `kubectl get` prints them.
    Table,
    /// `PartialObjectMetadata` of `meta.k8s.io/v1`: an object's metadata alone.
    PartialObjectMetadata,
    /// `PartialObjectMetadataList` of `meta.k8s.io/v1`: a list of those.
    PartialObjectMetadataList,
    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`: all groups with their resources in one answer.
    AggregatedDiscovery,
}

impl Form {
    const ALL: [Self; 5] = [
        Self::Json,
        Self::Table,
        Self::PartialObjectMetadata,
        Self::PartialObjectMetadataList,
        Self::AggregatedDiscovery,
    ];

    /// The kind, group and version that ask for it; JSON as it is has none.
    const fn asked_by(self) -> Option<[&'static str; 3]> {
        match self {
            Self::Json => None,
            Self::Table => Some(["Table", "meta.k8s.io", "v1"]),
            Self::PartialObjectMetadata => Some(["PartialObjectMetadata", "meta.k8s.io", "v1"]),
            Self::PartialObjectMetadataList => Some(["PartialObjectMetadataList", "meta.k8s.io", "v1"]),
            Self::AggregatedDiscovery => Some(["APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"]),
        }
    }

    /// Returns the answer's `Content-Type`. Clients take aggregated discovery for what it is only if its parameters are
    /// said again; the other forms say in `kind` what they are.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::AggregatedDiscovery => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            Self::Json | Self::Table | Self::PartialObjectMetadata | Self::PartialObjectMetadataList => {
                "application/json"
            }
        }
    }
}

/// Chooses the form of an answer: that of the first part of `Accept` that is offered, parts of a higher `q` before
/// others. Without `Accept`, [`Form::Json`]. Parts that name other media types (protobuf, YAML), other versions or kinds
/// are passed over; so are parameters of other names.
///
/// # Errors
///
/// 406 `NotAcceptable` if no part can be met.
pub fn negotiate(headers: &HeaderMap, offered: &[Form]) -> Result<Form, ApiError> {
    let values = headers.get_all(header::ACCEPT).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let mut parts: Vec<(u16, Form)> = Vec::new();
    let mut is_absent = true;
    for part in values.iter().flat_map(|value| value.split(',')) {
        is_absent = is_absent && part.trim().is_empty();
        parts.extend(wanted(part).filter(|(quality, form)| *quality > 0 && offered.contains(form)));
    }
    if is_absent && offered.contains(&Form::Json) {
        return Ok(Form::Json);
    }
    // Of equals the last would be taken: they are walked backwards.
    let best = parts.into_iter().rev().max_by_key(|(quality, _)| *quality);
    best.map(|(_, form)| form).ok_or_else(|| {
        let asked_by = offered.iter().map(|form| {
            form.asked_by().map_or_else(
                || "application/json".to_owned(),
                |[kind, group, version]| format!("application/json;as={kind};g={group};v={version}"),
            )
        });
        let offered: Vec<String> = asked_by.collect();
        ApiError::not_acceptable(format!("only the following can be accepted: {}", offered.join(", ")))
    })
}

/// Reads one part: its `q` in thousandths, and the form it asks for; `None` if it is one that is never served.
fn wanted(part: &str) -> Option<(u16, Form)> {
    let mut pieces = part.split(';');
    let media = pieces.next()?.trim().to_ascii_lowercase();
    if !matches!(media.as_str(), "application/json" | "application/*" | "*/*") {
        return None;
    }
    let (mut quality, mut asked) = (1_000, [None; 3]);
    for piece in pieces {
        let Some((name, value)) = piece.split_once('=') else { continue };
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => quality = thousandths(value).unwrap_or(quality),
            "as" => asked[0] = Some(value),
            "g" => asked[1] = Some(value),
            "v" => asked[2] = Some(value),
            _ => {}
        }
    }
    // Group and version alone ask for no other kind than there is.
    if asked[0].is_none() {
        return Some((quality, Form::Json));
    }
    let form = Form::ALL.into_iter().find(|form| form.asked_by().is_some_and(|by| by.map(Some) == asked))?;
    Some((quality, form))
}

/// A `q`-value: from `0` to `1`, of three decimals at most.
fn thousandths(value: &str) -> Option<u16> {
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    let is_digits = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let decimals: u16 = if is_digits { format!("{decimals:0<3}").parse().ok()? } else { return None };
    match (whole, decimals) {
        ("0", decimals) => Some(decimals),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, StatusCode};

    use super::*;

    const LISTS: [Form; 3] = [Form::Json, Form::Table, Form::PartialObjectMetadataList];

    fn chosen(offered: &[Form], accept: &[&str]) -> Option<Form> {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        match negotiate(&headers, offered) {
            Ok(form) => Some(form),
            Err(error) => {
                assert_eq!(error.code(), StatusCode::NOT_ACCEPTABLE, "{accept:?}");
                None
            }
        }
    }

    #[test]
    fn clients_get_what_they_ask_for_first() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let spaced = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json";
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        for (accept, form) in [
            (kubectl, Form::Table),
            (spaced, Form::Table),
            (metadata, Form::PartialObjectMetadataList),
            ("application/vnd.kubernetes.protobuf,application/json", Form::Json),
            ("application/json", Form::Json),
            ("*/*", Form::Json),
            ("application/*", Form::Json),
            ("", Form::Json),
            (" , ", Form::Json),
            // JSON first is JSON, whatever stands behind it.
            ("application/json,application/json;as=Table;v=v1;g=meta.k8s.io", Form::Json),
            ("application/json; g=meta.k8s.io ; as=\"Table\" ; v=v1 ;x=y;flag", Form::Table),
            ("Application/JSON;AS=Table;G=meta.k8s.io;V=v1", Form::Table),
            // A version or kind that is not served is passed over.
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form::Json),
            ("application/json;as=table;v=v1;g=meta.k8s.io,application/json", Form::Json),
            ("application/json;as=Table,application/json", Form::Json),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,*/*", Form::Json),
            // A higher q goes before order.
            ("application/json;q=0.2,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.201", Form::Table),
            ("application/json;q=0.2,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.2", Form::Json),
            ("application/json;as=Table;v=v1;g=meta.k8s.io;q=0,application/json;q=0.001", Form::Json),
            ("application/json;as=Table;v=v1;g=meta.k8s.io;q=nonsense,application/json;q=0.9", Form::Table),
        ] {
            assert_eq!(chosen(&LISTS, &[accept]), Some(form), "{accept}");
        }
        assert_eq!(chosen(&LISTS, &[]), Some(Form::Json));
        assert_eq!(chosen(&LISTS, &["text/html", spaced]), Some(Form::Table));
    }

    #[test]
    fn aggregated_discovery_is_of_one_version() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        let nopeer = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json";
        let old =
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        let offered = [Form::Json, Form::AggregatedDiscovery];
        for (accept, form) in
            [(kubectl, Form::AggregatedDiscovery), (nopeer, Form::AggregatedDiscovery), (old, Form::Json)]
        {
            assert_eq!(chosen(&offered, &[accept]), Some(form), "{accept}");
            assert_eq!(chosen(&LISTS, &[accept]), Some(Form::Json), "{accept}");
        }
        // What is said of the answer is what is asked for.
        let said = Form::AggregatedDiscovery.content_type();
        assert_eq!(chosen(&offered, &[said]), Some(Form::AggregatedDiscovery));
    }

    #[test]
    fn what_cannot_be_met_is_refused() {
        for accept in [
            "application/vnd.kubernetes.protobuf",
            "application/yaml",
            "text/html",
            "json",
            "application/json;q=0",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "application/json;as=Table;g=meta.k8s.io;v=v2",
            ";;;=,=;q",
            "\u{ff}",
        ] {
            assert_eq!(chosen(&LISTS, &[accept]), None, "{accept}");
        }
    }
}
