//! Texts that must not be seen.

use std::fmt;

use zeroize::Zeroizing;

/// How many characters a value has at least that is a key by itself: what `OpenTofu` asks of a passphrase.
const SHORTEST_KEY: usize = 16;

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

    /// The keys in an encryption configuration of `OpenTofu`: the texts that its attributes have, as HCL or JSON writes
    /// them, but for short ones, which are names.
    pub fn keys(&self) -> Vec<Self> {
        let mut keys = Vec::new();
        let mut before = ' ';
        let mut rest = self.0.chars();
        while let Some(char) = rest.next() {
            if char == '"' {
                let text = quoted(&mut rest);
                if matches!(before, '=' | ':') && text.chars().nth(SHORTEST_KEY - 1).is_some() {
                    keys.push(Self(text));
                }
            }
            if !char.is_whitespace() {
                before = char;
            }
        }
        keys
    }
}

/// Reads a text up to the quote at its end.
fn quoted(rest: &mut impl Iterator<Item = char>) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    while let Some(char) = rest.next() {
        match char {
            '"' => break,
            '\\' => text.extend(rest.next()),
            char => text.push(char),
        }
    }
    text
}

/// That there is one.
impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_attributes_have() {
        let keys = |text: &str| -> Vec<String> {
            let keys = SecretText::new(text.to_owned()).keys();
            keys.iter().map(|key| key.reveal().to_owned()).collect()
        };
        let hcl = "key_provider \"pbkdf2\" \"a-name-that-is-rather-long\" {\n  passphrase = \"a = \\\"b\\\" and so on\"\n}\n\
            state {\n  method = method.aes_gcm.a\n  note=\"short\"\n}\n";
        assert_eq!(keys(hcl), ["a = \"b\" and so on"]);
        let json = r#"{"key_provider":{"static":{"k":{"key":"6f6f706830616c6f"}}}}"#;
        assert_eq!(keys(json), ["6f6f706830616c6f"]);
        assert!(keys("passphrase = \"").is_empty());
    }
}
