//! Names of objects: DNS-1123 labels, unique in their list.
//!
//! - a wished name that is a label is the object's name as it is
//! - any other becomes a slug (lower case, every run of other characters a hyphen), and `-` and 8 hexadecimal digits
//!   of the SHA-256 of what the object is (a machine's address and element, a group's value) follow; without a wished
//!   name the slug is made of the address, of its end where it is too long
//! - where several objects would have one name, all of them get the hash
//!
//! So a name depends on nothing but the object itself, but for objects that wish the very same name: the first of them
//! is renamed when the second comes, since a name that said which of them was there first could not be made from the
//! state alone.

use std::collections::HashMap;

use crate::declared::Fingerprint;

/// The longest label.
const MAX: usize = 63;

/// How much of the hash is in a name, at each attempt to tell names apart. All but the first two are for hashes that
/// begin alike.
const DIGITS: [usize; 4] = [0, 8, 16, 40];

/// What an object would like to be called.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    pub(super) name: Option<&'a str>,
    /// What the slug is made of where there is no name, or one without a letter or digit.
    pub(super) fallback: &'a str,
    /// What it is, and no other is.
    pub(super) identity: String,
}

/// Returns a name for each.
pub(super) fn assign(wishes: &[Wish<'_>]) -> Vec<String> {
    let mut levels: Vec<usize> =
        wishes.iter().map(|wish| usize::from(!wish.name.is_some_and(is_label))).collect();
    loop {
        let names: Vec<_> = wishes.iter().zip(&levels).map(|(wish, level)| wish.spelt(*level)).collect();
        let mut lowest: HashMap<&str, (usize, usize)> = HashMap::new();
        for (name, level) in names.iter().zip(&levels) {
            let (count, lowest) = lowest.entry(name).or_insert((0, *level));
            *count += 1;
            *lowest = (*lowest).min(*level);
        }
        let mut changed = false;
        for (name, level) in names.iter().zip(&mut levels) {
            let is_to_change =
                |(count, lowest): &(usize, usize)| *count > 1 && lowest == level && *level < DIGITS.len();
            if lowest.get(name.as_str()).is_some_and(is_to_change) {
                *level += 1;
                changed = true;
            }
        }
        if !changed {
            return numbered(names);
        }
    }
}

/// Tells objects apart that are the same by all that is known of them.
fn numbered(mut names: Vec<String>) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for name in &mut names {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            *name = with_suffix(name, &count.to_string(), false);
        }
    }
    names
}

impl Wish<'_> {
    fn spelt(&self, level: usize) -> String {
        let digits = DIGITS.get(level).copied().unwrap_or(40);
        match self.name {
            Some(name) if digits == 0 => return name.to_owned(),
            _ => {}
        }
        let hash = Fingerprint::of(self.identity.as_bytes()).sha256_hex();
        let hash = hash.get(..digits).unwrap_or(&hash);
        match self.name.map(slug).filter(|slug| !slug.is_empty()) {
            Some(slug) => with_suffix(&slug, hash, false),
            None => with_suffix(&slug(self.fallback), hash, true),
        }
    }
}

/// Joins a slug, shortened to fit, and a suffix.
fn with_suffix(slug: &str, suffix: &str, keeps_end: bool) -> String {
    let room = MAX.saturating_sub(suffix.len() + 1);
    let cut = slug.len().saturating_sub(room);
    let kept = if keeps_end { slug.get(cut..) } else { slug.get(..slug.len() - cut) };
    let kept = kept.unwrap_or_default().trim_matches('-');
    if kept.is_empty() { suffix.to_owned() } else { format!("{kept}-{suffix}") }
}

fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// Tells whether a text is a DNS-1123 label.
pub(super) fn is_label(text: &str) -> bool {
    let is_inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=MAX).contains(&text.len())
        && text.bytes().all(is_inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
