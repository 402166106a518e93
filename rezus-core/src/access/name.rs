//! The names of users and groups.

use std::fmt;
use std::str::FromStr;

/// The name of a user or of a group, of ours or of an identity provider's.
///
/// - 1 to 253 bytes, printable, no white space at an end
/// - no `/`: names stand in paths
/// - never `anonymous`, nor with the prefix `system:` (which Kubernetes keeps for itself), `backend:` (which names the
///   tokens of the state backend) or `rezus_` (which tokens begin with: one that is given in a name's place is repeated
///   nowhere)
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalName(String);

/// Why a text is no name of a user or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrincipalNameError {
    /// No character at all, or too many.
    #[error("a user's or group's name has 1 to 253 bytes")]
    Length,
    /// A character that a name cannot hold, or white space at an end.
    #[error("a user's or group's name holds no control character and no `/`, and no space at its ends")]
    Character,
    /// It would be taken for somebody else's.
    #[error(
        "names that begin with `system:`, `backend:` or `rezus_`, and `anonymous`, are kept for other use"
    )]
    Reserved,
}

impl PrincipalName {
    /// Takes a text as a name.
    ///
    /// # Errors
    ///
    /// [`PrincipalNameError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, PrincipalNameError> {
        if text.is_empty() || text.len() > 253 {
            return Err(PrincipalNameError::Length);
        }
        if text.chars().any(|c| c.is_control() || c == '/')
            || text.trim() != text
            || text == "."
            || text == ".."
        {
            return Err(PrincipalNameError::Character);
        }
        let is_kept = |prefix: &&str| text.starts_with(prefix);
        if text == super::ANONYMOUS || ["system:", "backend:", "rezus_"].iter().any(is_kept) {
            return Err(PrincipalNameError::Reserved);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PrincipalName {
    type Err = PrincipalNameError;

    fn from_str(text: &str) -> Result<Self, PrincipalNameError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_and_providers_are_called_is_a_name() {
        for good in ["ana", "ana@example.org", "Platform Team", "oidc:42", "\u{e9}va", &"x".repeat(253)] {
            assert_eq!(PrincipalName::parse(good).map(|n| n.to_string()).as_deref(), Ok(good));
        }
        for (bad, error) in [
            ("", PrincipalNameError::Length),
            (&"x".repeat(254), PrincipalNameError::Length),
            ("a/b", PrincipalNameError::Character),
            (" a", PrincipalNameError::Character),
            ("a\n", PrincipalNameError::Character),
            ("..", PrincipalNameError::Character),
            ("system:masters", PrincipalNameError::Reserved),
            ("backend:prod", PrincipalNameError::Reserved),
            ("rezus_0123", PrincipalNameError::Reserved),
            ("anonymous", PrincipalNameError::Reserved),
        ] {
            assert_eq!(PrincipalName::parse(bad), Err(error), "{bad}");
        }
    }
}
