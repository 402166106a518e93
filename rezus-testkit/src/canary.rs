//! Finds a secret in any bytes, however it is encoded: answers, logs, labels, files.

mod views;

use std::collections::HashSet;
use std::fmt;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The fewest characters of an encoding that are looked for: fewer turn up by chance.
const SHORTEST_ENCODING: usize = 6;

/// How deep archives and escapes within each other are opened.
const DEEPEST: usize = 3;

/// Looks for secrets.
///
/// A secret is found plain, in JSON's escapes (also twice over), in Base64 of either alphabet at any alignment and also
/// broken into lines, in hexadecimal digits of either case, percent-encoded, and in any of these within gzip, zstd or the
/// files of a zip archive, wherever in the bytes that begins.
///
/// What it does not see: a secret that is split, as a database's pages or a log's lines may do. Read such files by their
/// own means, and look at what they give.
///
/// ```
/// use rezus_testkit::canary::{Canary, Form};
///
/// let canary = Canary::new(["hunter2-hunter2"]);
/// assert!(canary.leaks(br#"{"password":"(sensitive)"}"#).is_empty());
/// assert_eq!(canary.leaks(b"Basic dXNlcjpodW50ZXIyLWh1bnRlcjI=")[0].form, Form::Base64);
/// ```
#[derive(Clone)]
pub struct Canary {
    needles: Vec<(usize, Form)>,
    automaton: AhoCorasick,
}

/// Counts only: this is what looks for secrets, and must not tell them.
impl fmt::Debug for Canary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canary").field("needles", &self.needles.len()).finish_non_exhaustive()
    }
}

/// How a secret was spelt where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// As it is.
    Plain,
    /// In Base64 of either alphabet.
    Base64,
    /// In hexadecimal digits.
    Hex,
}

/// What had to be undone before a secret was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrapping {
    /// The escapes of JSON strings.
    Json,
    /// Percent-encoding.
    Percent,
    /// White space, which breaks Base64 into lines.
    Lines,
    /// gzip that begins at that byte.
    Gzip(usize),
    /// A zstd frame that begins at that byte.
    Zstd(usize),
    /// A file of a zip archive whose header begins at that byte.
    Zip(usize),
}

/// A secret that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// Which secret: its place among those that the canary was made of.
    pub secret: usize,
    /// How it was spelt.
    pub form: Form,
    /// What had to be undone, outermost first.
    pub wrapping: Vec<Wrapping>,
    /// The byte at which it begins, after all that was undone.
    pub offset: usize,
}

/// For a test's message: where, and not what.
impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret {} ({:?}) at byte {}", self.secret, self.form, self.offset)?;
        self.wrapping.iter().rev().try_for_each(|wrapping| write!(f, " within {wrapping:?}"))
    }
}

impl Canary {
    /// Makes a canary that looks for these secrets. One that is shorter than 6 bytes is looked for in plain only.
    ///
    /// # Panics
    ///
    /// If a secret is empty, or there are more than memory can hold.
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut needles = Vec::new();
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        for (number, secret) in secrets.into_iter().enumerate() {
            let secret = secret.as_ref();
            assert!(!secret.is_empty(), "an empty secret is everywhere");
            for (form, pattern) in spellings(secret) {
                needles.push((number, form));
                patterns.push(pattern);
            }
        }
        let automaton = AhoCorasick::new(&patterns).expect("the secrets fit into memory");
        Self { needles, automaton }
    }

    /// Returns the secrets that are in these bytes: of each spelling the first place, within each wrapping.
    pub fn leaks(&self, haystack: &[u8]) -> Vec<Leak> {
        let mut leaks = Vec::new();
        self.search(haystack, &mut Vec::new(), &mut leaks);
        leaks
    }

    fn search(&self, haystack: &[u8], wrapping: &mut Vec<Wrapping>, leaks: &mut Vec<Leak>) {
        let mut seen = HashSet::new();
        for found in self.automaton.find_overlapping_iter(haystack) {
            let (secret, form) = self.needles[found.pattern().as_usize()];
            // What shows through a wrapping as it does without is no second leak.
            let known = |leak: &Leak| {
                leak.secret == secret && leak.form == form && wrapping.starts_with(&leak.wrapping)
            };
            if seen.insert((secret, form)) && !leaks.iter().any(known) {
                leaks.push(Leak { secret, form, wrapping: wrapping.clone(), offset: found.start() });
            }
        }
        if wrapping.len() == DEEPEST || wrapping.last() == Some(&Wrapping::Lines) {
            return;
        }
        for (undone, view) in views::of(haystack) {
            wrapping.push(undone);
            self.search(&view, wrapping, leaks);
            wrapping.pop();
        }
    }
}

/// Returns the spellings of a secret that are looked for.
fn spellings(secret: &[u8]) -> Vec<(Form, Vec<u8>)> {
    let mut spellings = vec![(Form::Plain, secret.to_vec())];
    if secret.len() < SHORTEST_ENCODING {
        return spellings;
    }
    let hex = hex(secret);
    spellings.push((Form::Hex, hex.to_uppercase().into_bytes()));
    spellings.push((Form::Hex, hex.into_bytes()));
    for before in 0..3 {
        // Three bytes make four characters. Which characters a secret makes depends on how many bytes stand before it,
        // and those at its ends on what these bytes are: they are left out.
        let bytes = [&[0; 2][..before.min(2)], secret].concat();
        let first = (before * 8).div_ceil(6);
        let end = bytes.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let inner = encoded.as_bytes()[first..end].to_vec();
            let known = spellings.iter().any(|(_, pattern)| *pattern == inner);
            if inner.len() >= SHORTEST_ENCODING && !known {
                spellings.push((Form::Base64, inner));
            }
        }
    }
    spellings
}

/// Returns the lower-case hexadecimal digits of bytes.
fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests;
