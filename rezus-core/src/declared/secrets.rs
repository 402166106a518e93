//! Which values of a state are secret, and every place where one of them must not be shown.
//!
//! Secret is what the state marks (`sensitive_attributes`, sensitive outputs), and what a resource type is known to
//! hold at some place whether marked or not. A secret's place is hidden with all below it; besides, any other string
//! of an instance object that contains a secret string, plain or in base64, is hidden too. Strings under
//! [`SHORTEST`] characters, numbers and bools are hidden in their own place only: looking for them would hide half of
//! the state.

mod base64;
mod filter;
mod marks;
mod needles;
mod places;
mod table;
mod tree;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

pub(in crate::declared) use needles::Needles;
pub(in crate::declared) use places::{pruned, search};

use crate::declared::Fingerprint;
use crate::declared::document::{DocumentError, Parts, Watched};
use crate::declared::index::IndexRow;
use tree::{Found, Tree};

/// How many characters a secret string must have to be looked for in other places.
pub const SHORTEST: usize = 6;

/// Where instances of a resource type hold a secret, whether their state marks it or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRule {
    /// The way below `attributes`. Lists are passed through: a step names a member of each of their elements.
    pub path: Vec<RuleStep>,
    /// What is found there.
    pub kind: SecretKind,
}

/// One step of a [`SecretRule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleStep {
    /// The member of that name, whatever characters are in it.
    Member(Cow<'static, str>),
    /// Every member.
    Any,
}

/// What kind of secret a rule finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretKind {
    /// A long text that holds secrets beside much else: its place is hidden, no more.
    Document,
    /// A password, a key, a token: its strings are hidden wherever they turn up.
    Credential,
}

/// Gives the rules for a resource type, beyond the built-in ones.
pub type SecretRules<'r> = &'r dyn Fn(&str) -> &'r [SecretRule];

/// Returns all rules for a type.
pub(in crate::declared) fn known_rules<'r>(
    resource_type: &str,
    rules: SecretRules<'r>,
) -> [&'r [SecretRule]; 2] {
    [table::rules(resource_type), rules(resource_type)]
}

/// Returns the SHA-256 of the built-in rules and further ones, by resource type; their order does not matter.
pub(in crate::declared) fn digest(rules: &HashMap<String, Vec<SecretRule>>) -> [u8; 32] {
    let further = rules.iter().map(|(of, rules)| (of.as_str(), rules));
    let all = table::all().iter().map(|(of, rules)| (*of, rules)).chain(further);
    let spelt: BTreeSet<String> =
        all.flat_map(|(of, rules)| rules.iter().map(move |rule| format!("{of:?} {rule:?}"))).collect();
    Fingerprint::sha256_of(Vec::from_iter(spelt).join("\n").as_bytes())
}

/// Writes into each row which places of its object must not be shown.
pub(in crate::declared) fn mask(
    text: &str,
    rows: &mut [IndexRow],
    parts: &[Parts],
    outputs: &[Range<usize>],
    rules: SecretRules<'_>,
) -> Result<(), DocumentError> {
    let mut secrets = Vec::new();
    for (row, parts) in rows.iter_mut().zip(parts) {
        row.masked = gather(text, row, parts, rules, &mut secrets)?;
    }
    add_outputs(text, outputs, &mut secrets)?;
    let needles = Needles::new(secrets);
    for row in rows {
        let object = object_of(text, row);
        if needles.touch(object) {
            row.masked.extend(search(object, &needles)?);
        }
        if !row.masked.is_empty() {
            row.masked = pruned(std::mem::take(&mut row.masked), object.len());
        }
    }
    Ok(())
}

/// Returns the strings that a state holds secret.
pub(in crate::declared) fn strings(
    text: &str,
    rows: &[IndexRow],
    parts: &[Parts],
    outputs: &[Range<usize>],
    rules: SecretRules<'_>,
) -> Result<Vec<String>, DocumentError> {
    let mut secrets = Vec::new();
    for (row, parts) in rows.iter().zip(parts) {
        gather(text, row, parts, rules, &mut secrets)?;
    }
    add_outputs(text, outputs, &mut secrets)?;
    Ok(secrets)
}

/// Adds the secret outputs.
fn add_outputs(text: &str, outputs: &[Range<usize>], secrets: &mut Vec<String>) -> Result<(), DocumentError> {
    for output in outputs {
        let mut tree = Tree::of_all();
        secrets.extend(tree.gather(slice(text, output), "")?.strings);
    }
    Ok(())
}

/// Adds the secret strings that one object holds by its own account, and returns the pointers of their places.
fn gather(
    text: &str,
    row: &IndexRow,
    parts: &Parts,
    rules: SecretRules<'_>,
    secrets: &mut Vec<String>,
) -> Result<Vec<String>, DocumentError> {
    if parts.marks.is_none() && parts.flat.is_none() && matches!(parts.watched, Watched::Nothing) {
        return Ok(Vec::new());
    }
    let known = known_rules(&row.resource_type, rules);
    let mut tree = Tree::default();
    for rule in known.into_iter().flatten() {
        tree.add_rule(rule);
    }
    if let Some(span) = &parts.marks {
        marks::read(slice(text, span), &row.resource_type, row.position, &mut tree)?;
    }
    let mut masked = Vec::new();
    match (&parts.attributes, &parts.watched) {
        (Some(span), Watched::Members(members)) if parts.marks.is_none() => {
            for (name, value) in members {
                let value = slice(text, &(*value..span.end));
                let found = tree.gather_member(slice(text, name), value, "/attributes")?;
                masked.extend(found.pointers);
                secrets.extend(found.strings);
            }
        }
        (Some(span), _) => {
            let found = tree.gather(slice(text, span), "/attributes")?;
            masked = found.pointers;
            secrets.extend(found.strings);
        }
        (None, _) => {}
    }
    if let Some(span) = &parts.flat {
        let Found { pointers, strings } = places::flat(slice(text, span), &known)?;
        masked.extend(pointers);
        secrets.extend(strings);
    }
    // A mark that leads nowhere is a secret that was not found. Where there are no attributes there is none.
    let is_lost = (parts.attributes.is_some() && tree.is_any_mark_unmet())
        || (parts.attributes.is_none() && parts.flat.is_some() && tree.has_marks());
    if is_lost {
        masked = vec![String::new()];
    }
    Ok(masked)
}

fn slice<'a>(text: &'a str, span: &Range<usize>) -> &'a str {
    text.get(span.clone()).unwrap_or_default()
}

fn object_of<'a>(text: &'a str, row: &IndexRow) -> &'a str {
    let bound = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    text.get(bound(row.span.start)..bound(row.span.end)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
