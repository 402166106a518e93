//! What a request asks for: parameters of its URL, and of its body where that is a form.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use rezus_core::access::Identity;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::series::Matcher;
use rezus_core::series::promql::{self, Query};

use super::answer::Refusal;

/// How many selectors a request for labels may have: all series are gone through for each.
const MOST_SELECTORS: usize = 64;

/// How many regular expressions they may have together.
const MOST_EXPRESSIONS: usize = 64;

/// Parameters, and who asks.
#[derive(Debug)]
pub(super) struct Params {
    /// Those of the body first: of several of a name the first counts.
    pairs: Vec<(String, String)>,
    /// Whose series the caller views; `None` for everybody's.
    pub(super) tenants: Option<BTreeSet<TenantName>>,
}

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = Refusal;

    async fn from_request(req: Request, state: &S) -> Result<Self, Refusal> {
        let identity = req.extensions().get::<Identity>();
        let identity = identity.ok_or_else(|| Refusal::internal("a route that nobody was let in to"))?;
        let tenants = identity.access.tenants().cloned();
        let of_url = pairs(req.uri().query().unwrap_or_default().as_bytes());
        let content_type = req.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let is_form = content_type.is_some_and(|it| it.starts_with("application/x-www-form-urlencoded"));
        let body = if is_form {
            let body = Bytes::from_request(req, state).await;
            body.map_err(|error| Refusal::bad_data(format!("error parsing form values: {error}")))?
        } else {
            Bytes::new()
        };
        Ok(Self { pairs: pairs(&body).chain(of_url).collect(), tenants })
    }
}

fn pairs(text: &[u8]) -> impl Iterator<Item = (String, String)> + use<> {
    let pairs: Vec<_> = form_urlencoded::parse(text).into_owned().collect();
    pairs.into_iter()
}

impl Params {
    /// Returns a parameter; one that is empty is none.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let first = self.pairs.iter().find(|(own, _)| own == name)?;
        Some(first.1.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns a time, or this one where none is asked for.
    pub(super) fn time_or(&self, name: &str, default: Timestamp) -> Result<Timestamp, Refusal> {
        self.get(name).map_or(Ok(default), |text| time(name, text))
    }

    /// Returns a time that must be asked for.
    pub(super) fn time(&self, name: &str) -> Result<Timestamp, Refusal> {
        time(name, self.get(name).unwrap_or_default())
    }

    /// Returns a length of time: seconds, or a number with a unit.
    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = || Refusal::parameter(name, format!("cannot parse {text:?} to a valid duration"));
        match text.parse::<f64>() {
            // What is below zero is no width of a step, which is said where it is used.
            Ok(seconds) if seconds < 0.0 => Ok(Some(Duration::ZERO)),
            Ok(seconds) => Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| wrong()),
            Err(_) => promql::duration(text).map(Some).ok_or_else(wrong),
        }
    }

    /// Returns how many elements of a list are wanted; `None` for all of them.
    pub(super) fn limit(&self) -> Result<Option<usize>, Refusal> {
        let Some(text) = self.get("limit") else { return Ok(None) };
        let limit: usize = text.parse().map_err(|_| Refusal::bad_data("limit must be a number"))?;
        Ok(Some(limit).filter(|limit| *limit > 0))
    }

    /// Tells whether selectors of series are asked for.
    pub(super) fn has_selectors(&self) -> bool {
        self.pairs.iter().any(|(name, _)| name == "match[]")
    }

    /// Returns the selectors of series that are asked for, each as its matchers. It can take a while.
    pub(super) fn selectors(&self) -> Result<Vec<Vec<Matcher>>, Refusal> {
        let texts = self.pairs.iter().filter(|(name, _)| name == "match[]");
        if texts.clone().count() > MOST_SELECTORS {
            return Err(Refusal::bad_data(format!(
                "at most {MOST_SELECTORS} match[] can be asked for at a time"
            )));
        }
        let (mut selectors, mut expressions) = (Vec::new(), 0);
        for (_, text) in texts {
            let selector = Query::selector(text)
                .map_err(|error| Refusal::parameter("match[]", crate::error::Chain(&error)))?;
            expressions += selector.iter().filter(|matcher| matcher.is_expression()).count();
            if expressions > MOST_EXPRESSIONS {
                return Err(Refusal::bad_data(format!(
                    "all match[] together can have at most {MOST_EXPRESSIONS} regular expressions"
                )));
            }
            selectors.push(selector);
        }
        Ok(selectors)
    }
}

/// Reads a time: seconds since the epoch, to the millisecond, or a date of RFC 3339.
fn time(name: &str, text: &str) -> Result<Timestamp, Refusal> {
    let wrong = || Refusal::parameter(name, format!("cannot parse {text:?} to a valid timestamp"));
    let Ok(seconds) = text.parse::<f64>() else { return Timestamp::parse(text).map_err(|_| wrong()) };
    let size = Duration::try_from_secs_f64(seconds.abs()).map_err(|_| wrong())?;
    let millis = i64::try_from((size.as_nanos() + 500_000) / 1_000_000).map_err(|_| wrong())?;
    Ok(Timestamp::from_millis(if seconds < 0.0 { -millis } else { millis }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        Params { pairs: pairs(text.as_bytes()).collect(), tenants: None }
    }

    #[test]
    fn times_are_seconds_or_dates() {
        let millis = |text: &str| params(&format!("t={text}")).time("t").map(Timestamp::as_millis).ok();
        assert_eq!(millis("1435781451.781"), Some(1_435_781_451_781));
        assert_eq!(millis("4"), Some(4_000));
        assert_eq!(millis("-1.5"), Some(-1_500));
        assert_eq!(millis("2015-07-01T20:10:51.781Z"), Some(1_435_781_451_781));
        assert_eq!((millis(""), millis("NaN"), millis("soon"), millis("1e300")), (None, None, None, None));
    }

    #[test]
    fn lengths_are_seconds_or_have_units() {
        let of = |text: &str| params(&format!("step={text}")).duration("step").ok().flatten();
        assert_eq!(of("15"), Some(Duration::from_secs(15)));
        assert_eq!(of("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(of("1h30m"), Some(Duration::from_mins(90)));
        assert_eq!((of("5x"), of("inf"), of("-1")), (None, None, Some(Duration::ZERO)));
    }

    #[test]
    fn of_several_the_first_counts_and_what_is_empty_is_not_there() {
        let params = params("a=1&a=2&b=&match[]=up&match[]=down");
        assert_eq!((params.get("a"), params.get("b"), params.get("c")), (Some("1"), None, None));
        assert_eq!(params.selectors().unwrap().len(), 2);
        assert!(self::params(&"match[]=up&".repeat(64)).selectors().is_ok());
        assert!(self::params(&"match[]=up&".repeat(65)).selectors().is_err());
        let expressions = r#"match[]={a=~"b",c=~"d"}&"#;
        assert!(self::params(&expressions.repeat(32)).selectors().is_ok());
        assert!(self::params(&expressions.repeat(33)).selectors().is_err());
    }
}
