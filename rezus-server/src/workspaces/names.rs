//! What may be named in a tenant's settings: variables of environments, files, lengths of time, labels.

use std::path::Path;

use rezus_core::runs::workspace::SecretSource;

use crate::config::Span;
use crate::kube;

/// Beginnings of the names of variables that runs set themselves.
const OURS: [&str; 7] =
    ["REZUS_", "TF_HTTP_", "TF_CLI_ARGS", "TF_DATA_DIR", "TF_WORKSPACE", "TF_INPUT", "TF_IN_AUTOMATION"];

/// Why something cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not the name of a variable of an environment.
    #[error(
        "the name of an environment variable is letters, digits and underscores, with no digit first, at most 256"
    )]
    Environment,
    /// A variable that runs set themselves.
    #[error("variables that begin with {} are set by runs themselves", OURS.join(", "))]
    Ours,
    /// A path that depends on where one is.
    #[error("a path of the server's machine is absolute, without .. in it, and is UTF-8")]
    Path,
    /// No time at all.
    #[error("a length of time here is longer than nothing")]
    NoTime,
    /// Not a label's key.
    #[error(
        "a label's key is up to 63 letters, digits, -, _ and . with a letter or digit at both ends, and may have a DNS name and a slash before it"
    )]
    LabelKey,
    /// A key of ours.
    #[error("labels under rezuscloud.io/ are set by rezus itself")]
    OurLabel,
    /// Not a label's value.
    #[error(
        "a label's value is nothing, or up to 63 letters, digits, -, _ and . with a letter or digit at both ends"
    )]
    LabelValue,
}

/// Checks the name of a variable of an environment.
///
/// # Errors
///
/// [`Fault::Environment`].
pub fn check_variable(name: &str) -> Result<(), Fault> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let fits = name.len() <= 256 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts && fits { Ok(()) } else { Err(Fault::Environment) }
}

/// Checks the name of a variable that a program is to see.
///
/// # Errors
///
/// [`Fault::Environment`], [`Fault::Ours`].
pub fn check_set(name: &str) -> Result<(), Fault> {
    check_variable(name)?;
    if OURS.iter().any(|ours| name.starts_with(ours)) { Err(Fault::Ours) } else { Ok(()) }
}

/// Checks where a secret is read.
///
/// # Errors
///
/// [`Fault::Path`], [`Fault::Environment`].
pub fn check_source(source: &SecretSource) -> Result<(), Fault> {
    match source {
        SecretSource::File(path) => check_path(path),
        SecretSource::Environment(name) => check_variable(name),
    }
}

/// Checks a path of the server's machine.
///
/// # Errors
///
/// [`Fault::Path`].
pub fn check_path(path: &Path) -> Result<(), Fault> {
    let is_plain = path.components().all(|component| component != std::path::Component::ParentDir);
    if path.is_absolute() && is_plain && path.to_str().is_some() { Ok(()) } else { Err(Fault::Path) }
}

/// The longest time that can be set: a year.
const LONGEST: std::time::Duration = std::time::Duration::from_hours(365 * 24);

/// Checks that a length of time is one.
///
/// # Errors
///
/// [`Fault::NoTime`].
pub fn check_span(span: Span) -> Result<(), Fault> {
    if span.0.is_zero() || span.0 > LONGEST { Err(Fault::NoTime) } else { Ok(()) }
}

/// Checks a label that an operator gives.
///
/// # Errors
///
/// [`Fault::LabelKey`], [`Fault::OurLabel`], [`Fault::LabelValue`].
pub fn check_label(key: &str, value: &str) -> Result<(), Fault> {
    if !kube::is_label_key(key) {
        return Err(Fault::LabelKey);
    }
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    if prefix == "rezuscloud.io" || prefix.ends_with(".rezuscloud.io") {
        return Err(Fault::OurLabel);
    }
    if value.is_empty() || kube::is_label_value(value) { Ok(()) } else { Err(Fault::LabelValue) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sees_no_variable_that_runs_set() {
        for good in ["PATH", "_x", "TF_ENCRYPTION", "TF_VAR_a", "TF_LOG", "AWS_PROFILE"] {
            assert_eq!(check_set(good), Ok(()), "{good}");
        }
        for bad in ["", "1A", "A=B", "A B", "A-B", "\u{e4}", &"x".repeat(257)] {
            assert_eq!(check_set(bad), Err(Fault::Environment), "{bad}");
        }
        for ours in ["REZUS_AUTH__ENABLED", "TF_HTTP_PASSWORD", "TF_CLI_ARGS_plan", "TF_DATA_DIR"] {
            assert_eq!(check_set(ours), Err(Fault::Ours), "{ours}");
            assert_eq!(check_variable(ours), Ok(()), "{ours}");
        }
    }

    #[test]
    fn a_path_is_absolute_and_leads_nowhere_else() {
        assert_eq!(check_path(Path::new("/srv/prod")), Ok(()));
        for bad in ["", "prod", "./prod", "/srv/../etc"] {
            assert_eq!(check_path(Path::new(bad)), Err(Fault::Path), "{bad}");
        }
    }

    #[test]
    fn labels_are_kubernetes_own_syntax_and_not_ours() {
        for (key, value) in [("env", "prod"), ("a.example/b_c", ""), ("x", "1.2-3")] {
            assert_eq!(check_label(key, value), Ok(()), "{key}={value}");
        }
        for (key, value, fault) in [
            ("", "a", Fault::LabelKey),
            ("a b", "a", Fault::LabelKey),
            ("A.example/b", "a", Fault::LabelKey),
            ("/b", "a", Fault::LabelKey),
            ("rezuscloud.io/tenant", "a", Fault::OurLabel),
            ("x.rezuscloud.io/tenant", "a", Fault::OurLabel),
            ("env", "a b", Fault::LabelValue),
            ("env", "-a", Fault::LabelValue),
        ] {
            assert_eq!(check_label(key, value), Err(fault), "{key}={value}");
        }
    }
}
