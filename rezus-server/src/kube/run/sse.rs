//! Events by which a log is followed (HTML, "Server-sent events"): each carries a piece of the log, as its id the offset
//! behind that piece.
//!
//! A log is bytes, and an event's data is text in which line ends have no exact form. So the data is a JSON string of one
//! line: its characters are the log's, and each byte that is no part of a character of UTF-8 is the lone surrogate U+DC00
//! and that byte (PEP 383, `surrogateescape`). Who maps those back has the log byte by byte.

/// What is sent where nothing happens, so that nobody between takes the connection for dead.
pub(super) const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// Returns the event of a piece that ends at `offset`.
pub(super) fn event(piece: &[u8], offset: u64) -> String {
    let mut event = format!("id: {offset}\ndata: \"");
    for chunk in piece.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => event.push_str("\\\""),
                '\\' => event.push_str("\\\\"),
                '\n' => event.push_str("\\n"),
                '\r' => event.push_str("\\r"),
                '\t' => event.push_str("\\t"),
                char if char.is_control() => escape(&mut event, u32::from(char)),
                char => event.push(char),
            }
        }
        for byte in chunk.invalid() {
            escape(&mut event, 0xdc00 | u32::from(*byte));
        }
    }
    event.push_str("\"\n\n");
    event
}

/// Adds a character, or a surrogate, as its number.
fn escape(event: &mut String, number: u32) {
    let escaped = format!("\\u{number:04x}");
    event.push_str(&escaped);
}

/// Returns the last event: the run has ended, in this phase, and there is no more to come.
pub(super) fn end(phase: &str) -> String {
    format!("event: end\ndata: \"{phase}\"\n\n")
}

/// Returns how much of a piece can be sent now: what its last character wants is still to come. All of it where nothing
/// comes any more.
pub(super) fn whole(piece: &[u8], is_last: bool) -> usize {
    if is_last {
        return piece.len();
    }
    let torn = piece.utf8_chunks().last().map_or(0, |chunk| {
        let rest = chunk.invalid();
        // The beginning of a character, and not just a wrong byte.
        match std::str::from_utf8(rest) {
            Err(error) if error.error_len().is_none() => rest.len(),
            _ => 0,
        }
    });
    piece.len() - torn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_json() {
        assert_eq!(
            event(b"a\r\nb \"\\\x1b[0m\xff\xc3", 7),
            "id: 7\ndata: \"a\\r\\nb \\\"\\\\\\u001b[0m\\udcff\\udcc3\"\n\n"
        );
        assert_eq!(event("ü€\u{85}\u{2028}".as_bytes(), 1), "id: 1\ndata: \"ü€\\u0085\u{2028}\"\n\n");
        assert_eq!(end("Applied"), "event: end\ndata: \"Applied\"\n\n");
    }

    #[test]
    fn a_character_is_not_torn_while_more_may_come() {
        let euro = "a€".as_bytes();
        for (length, expected) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4)] {
            assert_eq!(whole(&euro[..length], false), expected);
            assert_eq!(whole(&euro[..length], true), length);
        }
        assert_eq!(whole(b"a\xff", false), 2);
        assert_eq!(whole(b"a\xff\xe2\x82", false), 2);
    }
}
