//! Label and field selectors, in the grammar of Kubernetes (`labels.Parse`, `fields.ParseSelector`).

mod fields;
mod tokens;

pub use fields::FieldSelector;

use tokens::{Token, Tokens};

/// Which labels an object must have. The empty one selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// Met by objects without the label, too.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

/// Why a selector cannot be read: which part, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl LabelSelector {
    /// Reads a selector: requirements with commas between, all to be met. `k=v`, `k==v`, `k!=v`, `k in (a,b)`,
    /// `k notin (a,b)`, `k`, `!k`, `k>5`, `k<5`.
    ///
    /// # Errors
    ///
    /// [`SelectorError`] with the part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut tokens = Tokens::new(text);
        let mut requirements = Vec::new();
        if tokens.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            requirements.push(requirement(&mut tokens).map_err(|why| refused(text, &why))?);
            match tokens.next() {
                Token::Comma => {}
                Token::End => return Ok(Self(requirements)),
                other => return Err(refused(text, &format!("found {other}, expected ',' or the end"))),
            }
        }
    }

    /// Tells whether it selects whatever there is.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether it selects an object whose labels `label` gives by key.
    pub fn matches<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|requirement| requirement.test.is_met(label(&requirement.key)))
    }
}

impl Test {
    fn is_met(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.iter().any(|one| one == value)),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn refused(text: &str, why: &str) -> SelectorError {
    let text: String = text.chars().take(200).collect();
    SelectorError(format!("unable to parse requirement: {why}, in the label selector {text:?}"))
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    if tokens.peek() == Token::Not {
        tokens.next();
        let key = key(tokens)?;
        return Ok(Requirement { key, test: Test::Absent });
    }
    let key = key(tokens)?;
    let test = match tokens.peek() {
        Token::Comma | Token::End => Test::Exists,
        _ => match tokens.next() {
            Token::Equal => Test::In(vec![one_value(tokens)?]),
            Token::NotEqual => Test::NotIn(vec![one_value(tokens)?]),
            Token::Word("in") => Test::In(values(tokens)?),
            Token::Word("notin") => Test::NotIn(values(tokens)?),
            Token::Above => Test::Above(bound(tokens)?),
            Token::Below => Test::Below(bound(tokens)?),
            other => return Err(format!("found {other}, expected one of =, ==, !=, in, notin, >, <")),
        },
    };
    Ok(Requirement { key, test })
}

fn key(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.next() {
        Token::Word(key) if is_key(key) => Ok(key.to_owned()),
        Token::Word(key) => Err(format!("{key:?} is no key of a label")),
        other => Err(format!("found {other}, expected a key")),
    }
}

fn one_value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.peek() {
        Token::Comma | Token::End => Ok(String::new()),
        _ => value(tokens),
    }
}

fn value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.next() {
        Token::Word(value) if is_value(value) => Ok(value.to_owned()),
        Token::Word(value) => Err(format!("{value:?} is no value of a label")),
        other => Err(format!("found {other}, expected a value")),
    }
}

/// `(a, b)`; between commas there may be nothing, which is the empty value.
fn values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    let opening = tokens.next();
    if opening != Token::Open {
        return Err(format!("found {opening}, expected '('"));
    }
    let mut values = Vec::new();
    loop {
        values.push(match tokens.peek() {
            Token::Comma | Token::Close => String::new(),
            _ => value(tokens)?,
        });
        match tokens.next() {
            Token::Comma => {}
            Token::Close => return Ok(values),
            other => return Err(format!("found {other}, expected ',' or ')'")),
        }
    }
}

fn bound(tokens: &mut Tokens<'_>) -> Result<i64, String> {
    match tokens.next() {
        Token::Word(number) => number.parse().map_err(|_| format!("{number:?} is no whole number")),
        other => Err(format!("found {other}, expected a whole number")),
    }
}

/// A name of up to 63 characters, with a DNS subdomain and a slash before it or none.
pub(super) fn is_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let is_end = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        is_end(bytes.first())
            && is_end(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    };
    !name.is_empty()
        && is_value(name)
        && prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_label))
}

/// Nothing, or what [`is_label_value`](super::is_label_value) takes.
fn is_value(value: &str) -> bool {
    value.is_empty() || super::is_label_value(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let label = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        LabelSelector::parse(selector).unwrap().matches(label)
    }

    #[test]
    fn each_requirement_means_what_kubernetes_means_by_it() {
        let labels = [("role", "worker"), ("size", "7"), ("rezuscloud.io/tenant", "prod")];
        for (selector, expected) in [
            ("", true),
            ("role=worker", true),
            ("role==worker", true),
            ("role = worker , size", true),
            ("role=controlplane", false),
            ("role!=worker", false),
            ("role!=controlplane", true),
            ("zone!=a", true),
            ("zone=a", false),
            ("zone=", false),
            ("role in (worker,controlplane)", true),
            ("role in ( controlplane )", false),
            ("role notin (worker)", false),
            ("zone notin (a, b)", true),
            ("zone in (a)", false),
            ("role", true),
            ("zone", false),
            ("!zone", true),
            ("! role", false),
            ("size>6", true),
            ("size > 7", false),
            ("size<8", true),
            ("role<8", false),
            ("zone>1", false),
            ("rezuscloud.io/tenant=prod,role in (worker),!zone", true),
            ("rezuscloud.io/tenant=prod,role in (worker),zone", false),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
        assert!(selects("in in (in)", &[("in", "in")]));
        assert!(selects("a in (,)", &[("a", "")]));
        assert!(selects("a=", &[("a", "")]));
    }

    #[test]
    fn what_is_no_selector_is_refused_with_its_part() {
        for (selector, part) in [
            ("a,", "a key"),
            (",a", "a key"),
            ("a=b=c", "','"),
            ("=b", "a key"),
            ("a in b", "'('"),
            ("a in (b", "')'"),
            ("a in (b c)", "')'"),
            ("a b", "expected one of"),
            ("a>b", "\"b\" is no whole number"),
            ("a!", "expected"),
            ("!", "a key"),
            ("a=-b", "\"-b\" is no value"),
            ("-a", "\"-a\" is no key"),
            ("A.b/c", "\"A.b/c\" is no key"),
            ("ä", "is no key"),
            ("a/b/c", "is no key"),
            ("a=(b)", "expected a value"),
        ] {
            let error = LabelSelector::parse(selector).unwrap_err().to_string();
            assert!(error.starts_with("unable to parse requirement: "), "{error}");
            assert!(error.contains(part), "{selector}: {error}");
        }
    }
}
