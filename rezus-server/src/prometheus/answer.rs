//! Answers and refusals in the form of Prometheus: an envelope that says which it is.

use std::fmt::Write as _;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rezus_core::series::promql::{EvaluateError, Line, ParseError, RangeError, Value};
use rezus_core::series::{Labels, Sample, SeriesError};

use super::NotDone;
use crate::error::Chain;

pub(super) const JSON: (HeaderName, HeaderValue) =
    (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));

/// What was asked for.
#[derive(Debug)]
pub(super) struct Answer {
    /// JSON.
    data: String,
    warning: Option<&'static str>,
}

impl Answer {
    /// Answers with a JSON text.
    pub(super) fn new(data: String) -> Self {
        Self { data, warning: None }
    }

    /// Answers with a list of texts, or with the first of them.
    pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>, limit: Option<usize>) -> Self {
        Self::list(texts, limit, write_text)
    }

    /// Answers with a list, or with its first elements.
    pub(super) fn list<T>(
        elements: impl IntoIterator<Item = T>,
        limit: Option<usize>,
        mut write: impl FnMut(&mut String, T),
    ) -> Self {
        let (mut data, mut warning) = ("[".to_owned(), None);
        for (place, element) in elements.into_iter().enumerate() {
            if limit.is_some_and(|limit| place >= limit) {
                warning = Some("results truncated due to limit");
                break;
            }
            if place > 0 {
                data.push(',');
            }
            write(&mut data, element);
        }
        data.push(']');
        Self { data, warning }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let Self { data, warning } = self;
        let mut body = data;
        body.insert_str(0, r#"{"status":"success","data":"#);
        if let Some(warning) = warning {
            body.push_str(r#","warnings":["#);
            write_text(&mut body, warning);
            body.push(']');
        }
        body.push('}');
        ([JSON], body).into_response()
    }
}

/// Writes a text as JSON.
pub(super) fn write_text(out: &mut String, text: &str) {
    // A text is always JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// Writes labels as a JSON object.
pub(super) fn write_labels(out: &mut String, labels: &Labels) {
    out.push('{');
    for (place, (name, value)) in labels.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_text(out, name);
        out.push(':');
        write_text(out, value);
    }
    out.push('}');
}

/// Writes what a query came to.
pub(super) fn write_value(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Scalar(sample) => {
            out.push_str(r#"{"resultType":"scalar","result":"#);
            write_sample(&mut out, *sample, &plain(sample.value));
        }
        Value::Vector(elements) => {
            out.push_str(r#"{"resultType":"vector","result":["#);
            for (place, (labels, sample)) in elements.iter().enumerate() {
                open(&mut out, place, labels);
                out.push_str(r#""value":"#);
                write_sample(&mut out, *sample, &short(sample.value));
                out.push('}');
            }
            out.push(']');
        }
        Value::Matrix(lines) => {
            out.push_str(r#"{"resultType":"matrix","result":["#);
            for (place, Line { labels, samples }) in lines.iter().enumerate() {
                open(&mut out, place, labels);
                out.push_str(r#""values":["#);
                for (place, sample) in samples.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    write_sample(&mut out, *sample, &short(sample.value));
                }
                out.push_str("]}");
            }
            out.push(']');
        }
    }
    out.push('}');
    out
}

fn open(out: &mut String, place: usize, labels: &Labels) {
    out.push_str(if place > 0 { r#",{"metric":"# } else { r#"{"metric":"# });
    write_labels(out, labels);
    out.push(',');
}

/// Writes seconds, with milliseconds where there are any, and the value as a text: JSON has no infinite numbers.
fn write_sample(out: &mut String, sample: Sample, value: &str) {
    let millis = sample.at.as_millis();
    let sign = if millis < 0 { "-" } else { "" };
    let (seconds, rest) = (millis.unsigned_abs() / 1_000, millis.unsigned_abs() % 1_000);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    // A text takes everything.
    let _ = write!(out, "[{sign}{seconds}{fraction},\"{value}\"]");
}

/// A number as Go writes it without an exponent: the fewest digits that tell it from others.
fn plain(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

/// A number as Prometheus writes values: with an exponent where it is very small or very large.
fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !size.is_finite() || (1e-6..1e21).contains(&size) {
        return plain(value);
    }
    let text = format!("{value:e}");
    // Go gives the exponent a sign and two digits.
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Refusal {
    code: StatusCode,
    kind: &'static str,
    message: String,
}

impl Refusal {
    fn new(code: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { code, kind, message: message.into() }
    }

    /// What is asked cannot be understood.
    pub(super) fn bad_data(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_data", message)
    }

    /// A parameter cannot be.
    pub(super) fn parameter(name: &str, why: impl std::fmt::Display) -> Self {
        Self::bad_data(format!("invalid parameter {name:?}: {why}"))
    }

    /// It comes to more than it may.
    pub(super) fn too_much(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", message)
    }

    /// It took longer than it may.
    pub(super) fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message)
    }

    /// Something of the server's own.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// What was said elsewhere.
    pub(super) fn of_status(code: StatusCode, message: String) -> Self {
        let kind = match code {
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::GATEWAY_TIMEOUT => "timeout",
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => "unavailable",
            code if code.is_server_error() => "internal",
            _ => "bad_data",
        };
        Self::new(code, kind, message)
    }

    /// Returns what is answered.
    pub(super) fn body(&self) -> String {
        let mut body = format!(r#"{{"status":"error","errorType":"{}","error":"#, self.kind);
        write_text(&mut body, &self.message);
        body.push('}');
        body
    }
}

impl From<NotDone> for Refusal {
    fn from(error: NotDone) -> Self {
        match error {
            NotDone::Late => Self::timeout(error.to_string()),
            NotDone::Broken(_) => {
                tracing::error!(cause = %Chain(&error), "a query broke off");
                Self::internal(error.to_string())
            }
        }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        match &error {
            ParseError::Unsupported { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", error.to_string())
            }
            ParseError::Syntax(_) | ParseError::TooLong { .. } | ParseError::TooManyExpressions { .. } => {
                Self::parameter("query", error)
            }
            ParseError::Matcher(_) => Self::parameter("query", Chain(&error)),
        }
    }
}

impl From<EvaluateError> for Refusal {
    fn from(error: EvaluateError) -> Self {
        match error {
            EvaluateError::Timeout => Self::timeout(error.to_string()),
            EvaluateError::TooMany { .. }
            | EvaluateError::SameLabels
            | EvaluateError::NoCount { .. }
            | EvaluateError::ManyAtOnce { .. }
            | EvaluateError::ManyOnTheLeft
            | EvaluateError::ManyAlike
            | EvaluateError::NeedsSamples { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", error.to_string())
            }
        }
    }
}

impl From<RangeError> for Refusal {
    fn from(error: RangeError) -> Self {
        match error {
            RangeError::Backwards => Self::parameter("end", error),
            RangeError::NoStep => Self::parameter("step", error),
            RangeError::TooMany => Self::bad_data(error.to_string()),
        }
    }
}

impl From<SeriesError> for Refusal {
    fn from(error: SeriesError) -> Self {
        match error {
            SeriesError::TooMany { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", error.to_string())
            }
            SeriesError::Unavailable { .. } => {
                tracing::error!(cause = %Chain(&error), "series cannot be read");
                Self::internal(error.to_string())
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.code, [JSON], self.body()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use rezus_core::base::Timestamp;

    use super::*;

    #[test]
    fn numbers_are_written_as_prometheus_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (1e-6, "0.000001"),
            (1.25e-7, "1.25e-07"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(plain(1e21), "1000000000000000000000");
    }

    #[test]
    fn times_are_seconds_and_milliseconds_where_there_are_any() {
        let of = |millis: i64| {
            let mut out = String::new();
            write_sample(&mut out, Sample { at: Timestamp::from_millis(millis), value: 1.0 }, "1");
            out
        };
        assert_eq!(of(1_796_065_837_000), r#"[1796065837,"1"]"#);
        assert_eq!((of(1_050).as_str(), of(-1).as_str()), (r#"[1.050,"1"]"#, r#"[-0.001,"1"]"#));
    }
}
