//! The search for many secrets at once, plain and in base64.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, MatchKind};

use super::SHORTEST;
use super::base64::{self, Alphabet, Core};
use super::filter::Filter;
use crate::declared::json::Text;

/// How many bytes of a pattern the automaton looks for. The rest is compared where it finds them: whole patterns
/// would make an automaton of gigabytes.
const ANCHOR: usize = 12;

/// How many bytes from the middle of a secret stand for it. A text that has so many in a row has the secret; and
/// comparing with a document of megabytes at many places would take hours.
const LONGEST: usize = 256;

/// How many secrets may have one anchor and still be told apart.
const MOST_CANDIDATES: usize = 16;

/// Secret strings, ready to be looked for.
pub(in crate::declared) struct Needles {
    secrets: Vec<Box<[u8]>>,
    search: Search,
    /// For each pattern of the automaton, what it may be part of.
    candidates: Vec<Vec<Candidate>>,
}

enum Search {
    Nothing,
    Anchors(Box<(Filter, AhoCorasick)>),
    /// More secrets than an automaton can hold: every string counts as one.
    Everything,
}

#[derive(Clone, Copy)]
struct Candidate {
    secret: usize,
    form: Form,
    /// Where the anchor begins in the pattern.
    anchor: usize,
}

/// How a secret may stand in a string.
#[derive(Clone, Copy)]
enum Form {
    Plain,
    Base64 { shift: usize, alphabet: Alphabet },
}

impl Needles {
    /// Takes the secret strings; those that are too short to be looked for are passed over.
    pub(in crate::declared) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all: BTreeSet<String> = secrets.into_iter().filter(|secret| is_long_enough(secret)).collect();
        let inner: Vec<String> = all.iter().filter_map(|secret| base64::readable(secret)).collect();
        all.extend(inner.into_iter().filter(|secret| is_long_enough(secret)));
        let secrets: BTreeSet<Box<[u8]>> =
            all.into_iter().map(|secret| middle(secret.as_bytes()).into()).collect();
        let secrets: Vec<Box<[u8]>> = secrets.into_iter().collect();
        let mut anchors: BTreeMap<Vec<u8>, Vec<Candidate>> = BTreeMap::new();
        for (index, secret) in secrets.iter().enumerate() {
            for form in forms(secret) {
                let pattern = Pattern { secret, form };
                let anchor = pattern.len().saturating_sub(ANCHOR) / 2;
                let bytes = (anchor..pattern.len().min(anchor + ANCHOR)).map(|i| pattern.at(i)).collect();
                anchors.entry(bytes).or_default().push(Candidate { secret: index, form, anchor });
            }
        }
        let (patterns, candidates): (Vec<_>, Vec<_>) = anchors.into_iter().unzip();
        let search = if patterns.is_empty() {
            Search::Nothing
        } else {
            let filter = Filter::new(patterns.iter().map(Vec::as_slice));
            let built = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns);
            built.map_or(Search::Everything, |automaton| Search::Anchors(Box::new((filter, automaton))))
        };
        Self { secrets, search, candidates }
    }

    /// Tells whether a text contains a secret, plain or in base64.
    pub(in crate::declared) fn are_in(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        match &self.search {
            Search::Nothing => false,
            Search::Everything => true,
            Search::Anchors(search) => {
                let (filter, automaton) = &**search;
                filter.parts(bytes).any(|(start, part)| {
                    automaton.find_overlapping_iter(part).any(|found| {
                        let candidates = self.candidates.get(found.pattern().as_usize());
                        candidates.is_some_and(|candidates| {
                            candidates.len() > MOST_CANDIDATES
                                || candidates.iter().any(|it| self.is_at(bytes, start + found.start(), *it))
                        })
                    })
                })
            }
        }
    }

    /// Tells whether some string of a JSON text may contain a secret; false is certain.
    ///
    /// Looks at the text as it stands, and decodes only those strings that have escapes.
    pub(in crate::declared) fn touch(&self, json: &str) -> bool {
        if matches!(self.search, Search::Nothing) {
            return false;
        }
        if self.are_in(json) {
            return true;
        }
        let bytes = json.as_bytes();
        let mut at = 0;
        while let Some(escape) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
            // The first escape of a string: nothing before it hides the quote that opens the string.
            let start = memchr::memrchr(b'"', &bytes[..at + escape]).map_or(0, |quote| quote + 1);
            let raw = Text::until_quote(json, start);
            if self.are_in(&raw.decode()) {
                return true;
            }
            at = start + raw.raw().len() + 1;
        }
        false
    }

    fn is_at(&self, bytes: &[u8], anchor: usize, candidate: Candidate) -> bool {
        let Some(secret) = self.secrets.get(candidate.secret) else {
            return false;
        };
        let pattern = Pattern { secret, form: candidate.form };
        let Some(start) = anchor.checked_sub(candidate.anchor) else {
            return false;
        };
        let Some(bytes) = bytes.get(start..start + pattern.len()) else {
            return false;
        };
        bytes.iter().enumerate().all(|(index, byte)| *byte == pattern.at(index))
    }
}

/// How many there are: each is a secret.
impl std::fmt::Debug for Needles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Needles({})", self.secrets.len())
    }
}

fn middle(secret: &[u8]) -> &[u8] {
    let start = secret.len().saturating_sub(LONGEST) / 2;
    &secret[start..secret.len().min(start + LONGEST)]
}

fn is_long_enough(secret: &str) -> bool {
    secret.chars().nth(SHORTEST - 1).is_some()
}

fn forms(secret: &[u8]) -> impl Iterator<Item = Form> {
    let encoded = (0..3).flat_map(|shift| {
        let standard = Form::Base64 { shift, alphabet: Alphabet::Standard };
        let url_safe = Form::Base64 { shift, alphabet: Alphabet::UrlSafe };
        let is_ambiguous = Core::new(secret, shift).is_ambiguous();
        [Some(standard), is_ambiguous.then_some(url_safe)].into_iter().flatten()
    });
    std::iter::once(Form::Plain).chain(encoded)
}

/// A secret in one of its forms.
struct Pattern<'a> {
    secret: &'a [u8],
    form: Form,
}

impl Pattern<'_> {
    fn len(&self) -> usize {
        match self.form {
            Form::Plain => self.secret.len(),
            Form::Base64 { shift, .. } => Core::new(self.secret, shift).len(),
        }
    }

    fn at(&self, index: usize) -> u8 {
        match self.form {
            Form::Plain => self.secret.get(index).copied().unwrap_or(0),
            Form::Base64 { shift, alphabet } => Core::new(self.secret, shift).at(index, alphabet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needles(secrets: &[&str]) -> Needles {
        Needles::new(secrets.iter().map(|secret| (*secret).to_owned()))
    }

    #[test]
    fn a_secret_is_found_plain_and_encoded() {
        let needles =
            needles(&["hunter2", "hunter22", "a much longer secret, with ~~~???>>> in it", "éàüöä"]);
        for text in [
            "hunter2",
            "postgres://app:hunter2@db",
            "aHVudGVyMg==",
            "eGh1bnRlcjI=",
            "eHhodW50ZXIyIQ==",
            "YSBtdWNoIGxvbmdlciBzZWNyZXQsIHdpdGggfn5-Pz8_Pj4-IGluIGl0",
            "YSBtdWNoIGxvbmdlciBzZWNyZXQsIHdpdGggfn5+Pz8/Pj4+IGluIGl0",
        ] {
            assert!(needles.are_in(text), "{text}");
        }
        for text in ["", "hunter", "Hunter2", "much longer secret", "éàüöä"] {
            assert!(!needles.are_in(text), "{text}");
        }
    }

    #[test]
    fn what_a_secret_encodes_is_a_secret() {
        let needles = needles(&["RkFLRS1wbGFpbnZhci03NDU4ZjAwYTc2YzM="]);
        assert!(needles.are_in("<FAKE-plainvar-7458f00a76c3>"));
    }

    #[test]
    fn escaped_strings_are_decoded_before_the_search() {
        let needles = needles(&["pass<word>\n"]);
        assert!(needles.touch(r#"{"a":"x\\","b":"\"pass\u003cword\u003e\n"}"#));
        assert!(needles.touch(r#"{"pass\u003cword>\n":1}"#));
        assert!(!needles.touch(r#"{"a":"pass\u003cword\\n","b":"\n"}"#));
        assert!(!super::Needles::new([]).touch(r#"{"a":"\n"}"#));
    }
}
