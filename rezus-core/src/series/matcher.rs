//! Which series are meant.

use regex::{Regex, RegexBuilder};

use super::Labels;

/// How large a compiled expression may be, in bytes.
const MOST: usize = 1 << 20;

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`: the whole value.
    Matches,
    /// `!~`
    DoesNotMatch,
}

/// A condition on one label. A label that is not there has an empty value.
#[derive(Clone, Debug)]
pub struct Matcher {
    name: String,
    operator: Operator,
    value: String,
    regex: Option<Regex>,
}

/// Why there is no such matcher.
#[derive(Debug, thiserror::Error)]
#[error("the regular expression {expression:?} for the label {label:?} cannot be read")]
pub struct MatcherError {
    label: String,
    expression: String,
    source: regex::Error,
}

impl Matcher {
    /// Makes a matcher.
    ///
    /// # Errors
    ///
    /// [`MatcherError`] for an expression that is none, or is too large.
    pub fn new(name: &str, operator: Operator, value: &str) -> Result<Self, MatcherError> {
        let regex = match operator {
            Operator::Equal | Operator::NotEqual => None,
            Operator::Matches | Operator::DoesNotMatch => {
                let fail =
                    |source| MatcherError { label: name.to_owned(), expression: value.to_owned(), source };
                // Alone it must be one too: what closes the group that it is put in would be no part of it.
                compile(value).map_err(fail)?;
                Some(compile(&format!("^(?s:{value})$")).map_err(fail)?)
            }
        };
        Ok(Self { name: name.to_owned(), operator, value: value.to_owned(), regex })
    }

    /// Returns the label it is about.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the one value that matches, where it is one.
    pub fn only(&self) -> Option<&str> {
        (self.operator == Operator::Equal).then_some(&*self.value)
    }

    /// Tells whether it compares by a regular expression.
    pub const fn is_expression(&self) -> bool {
        self.regex.is_some()
    }

    /// Tells whether labels fulfil it.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_value(labels.get(&self.name))
    }

    /// Tells whether a value of its label does.
    pub fn matches_value(&self, value: &str) -> bool {
        let fits = self.regex.as_ref().map_or_else(|| value == self.value, |regex| regex.is_match(value));
        match self.operator {
            Operator::Equal | Operator::Matches => fits,
            Operator::NotEqual | Operator::DoesNotMatch => !fits,
        }
    }
}

fn compile(expression: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(expression).size_limit(MOST).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_compares_whole_values() {
        let labels = Labels::new([("role", "worker")]).unwrap();
        let is = |name, operator, value| Matcher::new(name, operator, value).unwrap().matches(&labels);
        assert!(is("role", Operator::Equal, "worker") && !is("role", Operator::Equal, "work"));
        assert!(is("role", Operator::NotEqual, "work") && !is("role", Operator::NotEqual, "worker"));
        assert!(is("role", Operator::Matches, "w.*|x") && !is("role", Operator::Matches, "work"));
        assert!(is("role", Operator::DoesNotMatch, "work") && !is("role", Operator::DoesNotMatch, ".+"));
        assert!(is("zone", Operator::Equal, "") && is("zone", Operator::Matches, ".*"));
        assert!(!is("zone", Operator::Matches, ".+") && is("zone", Operator::NotEqual, "a"));
        assert!(Matcher::new("role", Operator::Matches, "(").is_err());
        assert!(Matcher::new("role", Operator::Matches, "a)|(b").is_err());
        // A few bytes can be much.
        assert!(Matcher::new("role", Operator::Matches, r"\w{200}").is_err());
    }
}
