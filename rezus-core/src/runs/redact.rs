//! Takes known secrets out of a stream of bytes, wherever it is cut.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::SecretText;

/// What stands where a secret was.
pub const MASK: &str = "(sensitive value)";

/// How many characters a secret must have to be looked for: shorter ones are in half of all words.
const SHORTEST: usize = 6;

/// Longer forms of a secret are looked for piece by piece, so that no more than a piece is ever held back.
const PIECE: usize = 256;

/// Takes known secrets out of a stream: as they are, in base64, as JSON and URLs escape them, and each line of those
/// that have several.
///
/// What comes out does not depend on how what went in was cut. Secrets that are [added](Self::add) count from then on.
#[derive(Default)]
pub struct Redactor {
    patterns: BTreeSet<Vec<u8>>,
    search: Option<AhoCorasick>,
    longest: usize,
    held: Vec<u8>,
}

impl Redactor {
    /// A redactor of these secrets; those that are too short are passed over.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretText>) -> Self {
        let mut redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Adds secrets.
    pub fn add<'a>(&mut self, secrets: impl IntoIterator<Item = &'a SecretText>) {
        let before = self.patterns.len();
        for secret in secrets {
            let secret = secret.reveal();
            // Output comes line by line: a key of several lines may be shown with something before each.
            for part in std::iter::once(secret).chain(secret.lines().map(str::trim)) {
                if part.chars().nth(SHORTEST - 1).is_some() {
                    self.patterns.extend(forms(part).into_iter().flat_map(|form| pieces(&form)));
                }
            }
        }
        if self.patterns.len() == before {
            return;
        }
        self.longest = self.patterns.iter().map(Vec::len).max().unwrap_or(0);
        self.search =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.patterns).ok();
    }

    /// Takes bytes and appends to `out` what is sure not to be the beginning of a secret.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        let keep = self.longest.saturating_sub(1);
        // A match that begins before this point can no longer grow.
        let sure = self.held.len().saturating_sub(keep);
        let done = self.mask(sure, out);
        self.held.drain(..done);
    }

    /// Appends what is left: nothing follows.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.mask(self.held.len(), out);
        self.held.clear();
    }

    /// Returns a text without the secrets.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        match &self.search {
            None => text.to_owned(),
            Some(search) => {
                let mut out = String::with_capacity(text.len());
                search.replace_all_with(text, &mut out, |_, _, out| {
                    out.push_str(MASK);
                    true
                });
                out
            }
        }
    }

    /// Writes what is held up to `sure`, masks included, and tells how far that went: a match that begins before may
    /// end after it.
    fn mask(&self, sure: usize, out: &mut Vec<u8>) -> usize {
        let Some(search) = &self.search else {
            out.extend_from_slice(&self.held[..sure]);
            return sure;
        };
        let mut at = 0;
        for found in search.find_iter(&self.held) {
            if found.start() >= sure {
                break;
            }
            out.extend_from_slice(&self.held[at..found.start()]);
            out.extend_from_slice(MASK.as_bytes());
            at = found.end();
        }
        if at < sure {
            out.extend_from_slice(&self.held[at..sure]);
            at = sure;
        }
        at
    }
}

/// How many patterns there are: each is a secret.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.patterns.len())
    }
}

/// The ways in which a text may be written.
fn forms(text: &str) -> Vec<String> {
    let mut json = String::new();
    let mut go_json = String::new();
    for c in text.chars() {
        escape(c, &mut json, false);
        escape(c, &mut go_json, true);
    }
    let percent = |space: &str, upper: bool| -> String {
        let mut out = String::new();
        for byte in text.bytes() {
            // A text can always be written.
            let _ = match byte {
                b' ' => write!(out, "{space}"),
                b if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) => write!(out, "{}", char::from(b)),
                b if upper => write!(out, "%{b:02X}"),
                b => write!(out, "%{b:02x}"),
            };
        }
        out
    };
    vec![
        text.to_owned(),
        json,
        go_json,
        STANDARD_NO_PAD.encode(text),
        URL_SAFE_NO_PAD.encode(text),
        percent("%20", true),
        percent("%20", false),
        percent("+", true),
        percent("+", false),
    ]
}

/// As JSON is written; as Go writes it where that is asked for, which also escapes what HTML has a meaning for.
fn escape(c: char, out: &mut String, html: bool) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c if u32::from(c) < 0x20 => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Cuts a form into pieces that are looked for each by itself; the last one is no shorter than a secret may be.
fn pieces(form: &str) -> Vec<Vec<u8>> {
    let bytes = form.as_bytes();
    let mut pieces: Vec<Vec<u8>> = bytes.chunks(PIECE).map(<[u8]>::to_vec).collect();
    if pieces.len() > 1 && pieces.last().is_some_and(|last| last.len() < 4 * SHORTEST) {
        let last = pieces.pop().unwrap_or_default();
        if let Some(before) = pieces.last_mut() {
            before.extend(last);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretText {
        SecretText::new(text.to_owned())
    }

    fn all_at_once(secrets: &[&str], text: &[u8]) -> String {
        let secrets: Vec<_> = secrets.iter().map(|text| secret(text)).collect();
        let mut redactor = Redactor::new(&secrets);
        let mut out = Vec::new();
        redactor.push(text, &mut out);
        redactor.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_secret_is_taken_out_in_all_its_forms() {
        let secret = "pa<ss>\"word\" & /more?";
        let forms = [
            "pa<ss>\"word\" & /more?",
            "pa<ss>\\\"word\\\" & /more?",
            "pa\\u003css\\u003e\\\"word\\\" \\u0026 /more?",
            &base64::engine::general_purpose::STANDARD.encode(secret),
            "pa%3Css%3E%22word%22%20%26%20%2Fmore%3F",
            "pa%3css%3e%22word%22%20%26%20%2fmore%3f",
            "pa%3Css%3E%22word%22+%26+%2Fmore%3F",
        ];
        for form in forms {
            let shown = all_at_once(&[secret], format!("before {form} after").as_bytes());
            assert!(
                shown.starts_with(&format!("before {MASK}")) && shown.ends_with(" after"),
                "{form}: {shown}"
            );
            assert!(!shown.contains("word"), "{shown}");
        }
    }

    #[test]
    fn how_the_stream_is_cut_does_not_matter() {
        let text = b"abc hunter22 hunter2 hunter hunter2hunter22 xhunter2".repeat(3);
        let secrets = [secret("hunter2"), secret("hunter22")];
        let whole = all_at_once(&["hunter2", "hunter22"], &text);
        assert!(!whole.contains("hunter2"));
        for size in 1..20 {
            let mut redactor = Redactor::new(&secrets);
            let mut out = Vec::new();
            for chunk in text.chunks(size) {
                redactor.push(chunk, &mut out);
            }
            redactor.finish(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), whole, "chunks of {size}");
        }
    }

    #[test]
    fn keys_of_several_lines_are_found_line_by_line_and_long_ones_whole() {
        let key =
            format!("-----BEGIN KEY-----\n{}\n{}\n-----END KEY-----\n", "Ab3".repeat(21), "Xy9".repeat(21));
        let shown = all_at_once(&[&key], format!("(local-exec): {}\n", "Xy9".repeat(21)).as_bytes());
        assert_eq!(shown, format!("(local-exec): {MASK}\n"));
        let long: String =
            (0..3000).map(|i| char::from(b'a' + u8::try_from(i * 7 % 26).unwrap_or(0))).collect();
        let shown = all_at_once(&[&long], format!("<{long}>").as_bytes());
        assert!(shown.replace(MASK, "").len() <= 2, "{shown}");
    }

    #[test]
    fn short_ones_are_left_alone_and_later_ones_count() {
        assert_eq!(all_at_once(&["short", "true"], b"short true"), "short true");
        let mut redactor = Redactor::default();
        let mut out = Vec::new();
        redactor.push(b"one topsecret ", &mut out);
        redactor.add([&secret("topsecret")]);
        redactor.push(b"two topsecret", &mut out);
        redactor.finish(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("one topsecret two {MASK}"));
        assert_eq!(redactor.redact("a topsecret"), format!("a {MASK}"));
        assert!(!format!("{redactor:?}").contains("topsecret"));
    }
}
