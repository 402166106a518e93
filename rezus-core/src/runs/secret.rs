//! Texts that must not be seen.

use std::fmt;

use zeroize::Zeroizing;

/// A text that is overwritten in memory when it is dropped, and that nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes a text as a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text, for whoever has to hand it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// That there is one.
impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}
