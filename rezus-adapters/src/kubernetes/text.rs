//! Text that a peer sent, made fit to be shown.

/// As much of a text as is kept of any of them, in bytes.
const LONGEST: usize = 512;

/// How much of an answer that is none is shown, in characters.
const START: usize = 64;

/// The text without control characters (each is a space), and no longer than 512 bytes.
pub(super) fn clean(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    text[..end].chars().map(|char| if char.is_control() || is_bidi(char) { ' ' } else { char }).collect()
}

/// The first 64 characters of bytes that are perhaps no text.
pub(super) fn start(bytes: &[u8]) -> String {
    let few = &bytes[..bytes.len().min(START * 4)];
    clean(&String::from_utf8_lossy(few)).chars().take(START).collect()
}

/// Characters that show what follows in another order than it is in.
fn is_bidi(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_is_left_and_the_end_is_whole() {
        assert_eq!(clean("a\u{1b}[31mb\r\nc\u{202e}d"), "a [31mb  c d");
        let long = clean(&"ä".repeat(600));
        assert_eq!(long.len(), LONGEST);
        assert_eq!(start(b"<html>\n\xff"), "<html> \u{fffd}");
        assert_eq!(start(&[b'x'; 1000]).len(), START);
    }
}
