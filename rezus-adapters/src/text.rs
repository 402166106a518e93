//! Texts of peers, made harmless.

/// How long a text of facts is at most, in bytes.
#[cfg(any(feature = "node-metrics", feature = "talos"))]
const LONGEST: usize = 512;
/// How much of a peer's text a failure holds, in characters.
const IN_FAILURES: usize = 64;

/// A text for facts: without control characters, and not longer than 512 bytes.
#[cfg(any(feature = "node-metrics", feature = "talos"))]
pub(crate) fn clean(text: &str) -> String {
    let mut kept = String::with_capacity(text.len().min(LONGEST));
    for character in text.chars().map(harmless) {
        if kept.len() + character.len_utf8() > LONGEST {
            break;
        }
        kept.push(character);
    }
    kept
}

/// The same where there is something to tell.
#[cfg(any(feature = "node-metrics", feature = "talos"))]
pub(crate) fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| clean(text))
}

/// A text for a failure: 64 characters.
pub(crate) fn brief(text: &str) -> String {
    text.chars().map(harmless).take(IN_FAILURES).collect()
}

/// Control characters, and those that turn or hide the text after them, are shown as what they are: none.
fn harmless(character: char) -> char {
    let hides = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if character.is_control() || hides { '\u{fffd}' } else { character }
}

#[cfg(all(test, any(feature = "node-metrics", feature = "talos")))]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_peer_steers_a_terminal_or_grows() {
        assert_eq!(clean("a\u{1b}[31mb\nc\u{202e}d"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d");
        assert_eq!(clean(&"\u{e9}".repeat(300)).len(), 512);
        assert!(clean(&"\r".repeat(300)).len() <= 512);
        assert_eq!(brief(&"x".repeat(100)).chars().count(), 64);
        assert_eq!(some(""), None);
    }
}
