//! The name of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a run, unique among the runs of its tenant: a DNS label (RFC 1123), as every name of the API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunName(String);

/// The text is no run's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a run's name is 1 to 63 lower-case letters, digits and hyphens, with a letter or digit first and last"
)]
pub struct RunNameError;

impl RunName {
    /// Takes a text as a run's name.
    ///
    /// # Errors
    ///
    /// [`RunNameError`] for what is no DNS label.
    pub fn parse(text: &str) -> Result<Self, RunNameError> {
        let bytes = text.as_bytes();
        let is_label = (1..=63).contains(&bytes.len())
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
            && bytes.first() != Some(&b'-')
            && bytes.last() != Some(&b'-');
        if is_label { Ok(Self(text.to_owned())) } else { Err(RunNameError) }
    }

    /// Makes a name as Kubernetes makes them: a prefix and five characters that cannot be mistaken for each other,
    /// chosen by `random`. A prefix that is too long is cut.
    ///
    /// # Errors
    ///
    /// [`RunNameError`] for a prefix that no name begins with.
    pub fn generate(prefix: &str, random: [u8; 5]) -> Result<Self, RunNameError> {
        // Of k8s.io/apimachinery, `rand.String`: no vowels, so that no words come about.
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut name: String = prefix.chars().take(58).collect();
        for byte in random {
            name.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
        }
        Self::parse(&name)
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RunName {
    type Error = RunNameError;

    fn try_from(text: String) -> Result<Self, RunNameError> {
        Self::parse(&text)
    }
}

impl From<RunName> for String {
    fn from(name: RunName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_dns_label() {
        for good in ["a", "apply-7k2fx", "9", &"x".repeat(63)] {
            assert_eq!(RunName::parse(good).map(String::from).as_deref(), Ok(good));
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "../x", &"x".repeat(64)] {
            assert_eq!(RunName::parse(bad), Err(RunNameError), "{bad}");
        }
    }

    #[test]
    fn generated_names_have_the_prefix_and_five_characters() {
        let name = RunName::generate("apply-", [0, 1, 26, 27, 255]).unwrap();
        assert_eq!(name.as_str(), "apply-bc9bq");
        assert_eq!(RunName::generate(&"x".repeat(80), [0; 5]).unwrap().as_str().len(), 63);
        assert_eq!(RunName::generate("Apply-", [0; 5]), Err(RunNameError));
    }
}
