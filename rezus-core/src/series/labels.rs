//! What a series is told apart by.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::base::TenantName;

/// The label that holds a metric's name.
pub const NAME: &str = "__name__";

/// The label that holds whose series it is.
pub const TENANT: &str = "tenant";

/// Stands between names and values: no byte of UTF-8.
const SEPARATOR: u8 = 0xff;

/// A set of labels, sorted by name (in bytes), no name twice, no value empty: Prometheus' data model. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Arc<[u8]>);

/// Why there is no such set of labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// A name is none.
    #[error("{0:?} is no name of a label: letters, digits and underscores, no digit first")]
    Name(String),
    /// A metric's name is none.
    #[error("{0:?} is no name of a metric: letters, digits, underscores and colons, no digit first")]
    Metric(String),
    /// A name is there twice.
    #[error("the label {0:?} is there twice")]
    Twice(String),
}

impl Labels {
    /// Returns the set that has none.
    pub fn none() -> Self {
        Self(Arc::default())
    }

    /// Makes a set of pairs in any order; those with an empty value are left out.
    ///
    /// # Errors
    ///
    /// [`LabelsError`] for a name that is none, or is there twice.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, LabelsError> {
        let mut pairs: Vec<(N, V)> =
            pairs.into_iter().filter(|(_, value)| !value.as_ref().is_empty()).collect();
        pairs.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        let mut bytes = Vec::with_capacity(
            pairs.iter().map(|(name, value)| name.as_ref().len() + value.as_ref().len() + 2).sum(),
        );
        let mut last: Option<&str> = None;
        for (name, value) in &pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            if !is_name(name, false) {
                return Err(LabelsError::Name(name.to_owned()));
            }
            if name == NAME && !is_name(value, true) {
                return Err(LabelsError::Metric(value.to_owned()));
            }
            if last == Some(name) {
                return Err(LabelsError::Twice(name.to_owned()));
            }
            last = Some(name);
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(SEPARATOR);
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(SEPARATOR);
        }
        Ok(Self(bytes.into()))
    }

    /// Makes the labels of a tenant's series.
    ///
    /// # Errors
    ///
    /// [`LabelsError`] as for [`Labels::new`]; `others` must hold neither [`NAME`] nor [`TENANT`].
    pub fn of_series<'a>(
        tenant: &'a TenantName,
        metric: &'a str,
        others: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, LabelsError> {
        let own = [(NAME, metric), (TENANT, tenant.as_str())];
        Self::new(own.into_iter().chain(others))
    }

    /// Reads what [`Labels::as_bytes`] gave; nothing for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let parts: Vec<&str> = bytes
            .strip_suffix(&[SEPARATOR])?
            .split(|byte| *byte == SEPARATOR)
            .map(str::from_utf8)
            .collect::<Result<_, _>>()
            .ok()?;
        let (pairs, rest) = parts.as_chunks::<2>();
        let labels = Self::new(pairs.iter().map(|[name, value]| (name, value))).ok()?;
        (rest.is_empty() && *labels.0 == *bytes).then_some(labels)
    }

    /// Returns the bytes that stand for the set: the same for the same set, in the same order as sets are.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the pairs, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split(|byte| *byte == SEPARATOR).map(|part| {
            // Only `new` makes them, of whole strings.
            str::from_utf8(part).unwrap_or_default()
        });
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Returns the value of a label; an empty one where it is not there, which is the same thing to Prometheus.
    pub fn get(&self, name: &str) -> &str {
        self.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }
}

fn is_name(text: &str, is_metric: bool) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (is_metric && byte == b':');
    text.bytes().all(is_part) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// As Prometheus writes it: `up{tenant="prod"}`.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.get(NAME);
        f.write_str(name)?;
        let mut opening = "{";
        for (label, value) in self.iter().filter(|(label, _)| *label != NAME) {
            write!(f, "{opening}{label}={value:?}")?;
            opening = ", ";
        }
        match (opening, name) {
            ("{", "") => f.write_str("{}"),
            ("{", _) => Ok(()),
            _ => f.write_str("}"),
        }
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_in_any_order_are_one_set() {
        let one = Labels::new([("b", "2"), ("__name__", "up"), ("a", "1"), ("none", "")]).unwrap();
        let other = Labels::new([("a", "1"), ("b", "2"), ("__name__", "up")]).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.to_string(), r#"up{a="1", b="2"}"#);
        assert_eq!((one.get("a"), one.get("none")), ("1", ""));
        assert_eq!(Labels::from_bytes(one.as_bytes()), Some(one.clone()));
        assert_eq!(one.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["__name__", "a", "b"]);
    }

    #[test]
    fn the_empty_set_is_one() {
        let none = Labels::new::<&str, &str>([]).unwrap();
        assert_eq!((none.iter().count(), none.to_string().as_str()), (0, "{}"));
    }

    #[test]
    fn what_is_no_set_is_told() {
        let error = |pairs: &[(&str, &str)]| Labels::new(pairs.iter().copied()).unwrap_err();
        assert_eq!(error(&[("1a", "x")]), LabelsError::Name("1a".to_owned()));
        assert_eq!(error(&[("", "x")]), LabelsError::Name(String::new()));
        assert_eq!(error(&[("a", "x"), ("a", "y")]), LabelsError::Twice("a".to_owned()));
        assert_eq!(error(&[("__name__", "a b")]), LabelsError::Metric("a b".to_owned()));
    }

    #[test]
    fn other_bytes_are_no_set() {
        for bytes in [b"a".as_slice(), b"a\xff", b"b\xff1\xffa\xff1\xff", b"a\xff\xff", b"\xff\xff", b""] {
            assert_eq!(Labels::from_bytes(bytes), None, "{bytes:?}");
        }
    }
}
