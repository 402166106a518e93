//! What is asked of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Says what an apply would change, and changes nothing.
    Plan,
    /// Plans, and changes what was planned once that is approved.
    Apply,
    /// The same, for taking everything away.
    Destroy,
    /// Says what differs from the state, without a lock.
    Drift,
}

/// Whether what was planned waits for somebody's consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// It waits.
    Manual,
    /// It does not.
    Auto,
}

/// Why something cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Not one of the operations.
    #[error("an operation is plan, apply, destroy or drift")]
    Operation,
    /// Not one of the approvals.
    #[error("an approval is manual or auto")]
    Approval,
    /// Not a variable's name.
    #[error(
        "a variable's name is letters, digits, underscores and hyphens, with a letter or underscore first"
    )]
    Variable,
    /// Not an address.
    #[error("an address is text without spaces around it or control characters, and begins with no hyphen")]
    Target,
    /// A drift check or a plan was asked to replace or destroy.
    #[error("{what} goes with {with}, not with {operation}")]
    NotWith {
        /// What does not fit.
        what: &'static str,
        /// What it fits.
        with: &'static str,
        /// What was asked for.
        operation: Operation,
    },
}

impl Operation {
    /// In lower case, as the API has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Destroy => "destroy",
            Self::Drift => "drift",
        }
    }

    /// Tells whether it changes anything, and so makes a plan that waits for approval stale.
    pub const fn changes(self) -> bool {
        matches!(self, Self::Apply | Self::Destroy)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Operation {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let all = [Self::Plan, Self::Apply, Self::Destroy, Self::Drift];
        all.into_iter().find(|operation| operation.as_str() == text).ok_or(RequestError::Operation)
    }
}

impl Approval {
    /// In lower case, as the API has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

impl FromStr for Approval {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let all = [Self::Manual, Self::Auto];
        all.into_iter().find(|approval| approval.as_str() == text).ok_or(RequestError::Approval)
    }
}

/// The name of a variable of a configuration.
///
/// Source: identifiers of the configuration language (HCL), those of ASCII alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VariableName(String);

/// The address of a resource or module, as `-target` and `-replace` take it; the tool judges it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target(String);

impl VariableName {
    /// Takes a text as a variable's name.
    ///
    /// # Errors
    ///
    /// [`RequestError::Variable`].
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let fits = text.len() <= 256 && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if starts && fits { Ok(Self(text.to_owned())) } else { Err(RequestError::Variable) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Target {
    /// Takes a text as an address.
    ///
    /// # Errors
    ///
    /// [`RequestError::Target`] for what could be taken for something else on a command line.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let fits = !text.is_empty()
            && text.len() <= 4096
            && text.trim() == text
            && !text.starts_with('-')
            && !text.chars().any(char::is_control);
        if fits { Ok(Self(text.to_owned())) } else { Err(RequestError::Target) }
    }

    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! text {
    ($($kind:ident),*) => {$(
        impl TryFrom<String> for $kind {
            type Error = RequestError;

            fn try_from(text: String) -> Result<Self, RequestError> {
                Self::parse(&text)
            }
        }

        impl From<$kind> for String {
            fn from(text: $kind) -> Self {
                text.0
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

text!(VariableName, Target);

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// What to do.
    pub operation: Operation,
    /// Whether it waits for approval; as the tenant is configured where it is absent.
    pub approval: Option<Approval>,
    /// Values of variables beside those that the tenant is configured with: no secrets, they are shown.
    pub variables: BTreeMap<VariableName, String>,
    /// The only resources to look at.
    pub targets: Vec<Target>,
    /// Resources to replace.
    pub replace: Vec<Target>,
    /// Why, in words.
    pub reason: Option<String>,
    /// Who asks, as the server knows it.
    pub requested_by: String,
}

impl RunRequest {
    /// A request for an operation and nothing else.
    pub fn new(operation: Operation, requested_by: impl Into<String>) -> Self {
        Self {
            operation,
            approval: None,
            variables: BTreeMap::new(),
            targets: Vec::new(),
            replace: Vec::new(),
            reason: None,
            requested_by: requested_by.into(),
        }
    }

    /// Tells what in it does not go together.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotWith`].
    pub fn check(&self) -> Result<(), RequestError> {
        let operation = self.operation;
        let not = |what, with| Err(RequestError::NotWith { what, with, operation });
        if !self.replace.is_empty() && !matches!(operation, Operation::Plan | Operation::Apply) {
            return not("replace", "plan or apply");
        }
        if self.approval.is_some() && !operation.changes() {
            return not("approval", "apply or destroy");
        }
        Ok(())
    }

    /// Tells whether one run can do the work of both: they ask for the same.
    pub fn is_same_work(&self, other: &Self) -> bool {
        (self.operation, self.approval, &self.variables, &self.targets, &self.replace)
            == (other.operation, other.approval, &other.variables, &other.targets, &other.replace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_asked_for_can_be_taken_for_an_option() {
        assert!(Target::parse("module.pool[\"eu/a\"].aws_instance.node[0]").is_ok());
        for bad in ["", "-lock=false", " a", "a\n", "a\u{1b}[0m"] {
            assert_eq!(Target::parse(bad), Err(RequestError::Target), "{bad:?}");
        }
        assert!(VariableName::parse("node_count-2").is_ok());
        for bad in ["", "2a", "-a", "a=b", "a b", "ä"] {
            assert_eq!(VariableName::parse(bad), Err(RequestError::Variable), "{bad:?}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        let mut request = RunRequest::new(Operation::Drift, "alice");
        assert_eq!(request.check(), Ok(()));
        request.approval = Some(Approval::Auto);
        let error = request.check().unwrap_err().to_string();
        assert_eq!(error, "approval goes with apply or destroy, not with drift");
    }
}
