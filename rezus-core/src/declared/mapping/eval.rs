//! Evaluates rules for one object.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::{self, can_refer, shared_call};
use super::dom::Object;
use super::ip;
use super::rule::{Condition, Depends, Join, Origin, Rule, Subject, Test};
use super::text;
use super::visit::{Base, Complaint, Visit, is_something};
use super::world::{World, join_key};
use crate::declared::resource::{Places, Spot};

/// How many values a rule may find.
const MOST_VALUES: usize = 1_000;
/// How many objects a join may find.
const MOST_MATCHES: usize = 64;
/// How many objects a join may compare by its second pair and further ones.
const MOST_COMPARED: usize = 2_000;
/// How long a value may be.
const LONGEST_VALUE: usize = 4_096;

/// What is looked for: tells which values are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Want {
    Text,
    Ip,
    IpOrName,
    Name,
}

/// A value that a rule found.
#[derive(Clone, Debug)]
pub(super) struct Item<'d> {
    pub(super) text: Cow<'d, str>,
    pub(super) from: From,
    pub(super) words: &'d str,
    pub(super) precedence: i32,
}

/// Where a value was found.
#[derive(Clone, Debug)]
pub(super) enum From {
    Place(usize),
    /// The object itself.
    Row(usize),
    /// Below an object: its row, and the path from there.
    Below(Arc<(usize, String)>),
}

/// What following dependencies to one block found.
#[derive(Debug, Default)]
pub(super) struct Kept {
    items: Vec<(String, Arc<(usize, String)>)>,
    read: Vec<usize>,
    complaint: Option<Complaint>,
}

/// The object, or element, that rules are evaluated for.
#[derive(Clone, Copy)]
pub(super) struct At<'d> {
    pub(super) row: usize,
    pub(super) object: &'d Object<'d>,
    pub(super) base: Base,
}

/// The evaluation for one object.
pub(super) struct Eval<'d, 'a> {
    pub(super) world: &'d World<'a>,
    pub(super) visit: Visit<'d>,
    /// The rows of other objects that were read.
    pub(super) read: Vec<usize>,
    /// What tells the element from others of its object.
    pub(super) label: Option<String>,
}

impl<'d, 'a: 'd> Eval<'d, 'a> {
    pub(super) fn new(world: &'d World<'a>) -> Self {
        Self { world, visit: Visit::new(), read: Vec::new(), label: None }
    }

    pub(super) fn condition(&mut self, condition: &Condition, at: At<'d>) -> bool {
        if let (Test::Exists(wanted), Subject::Path(path)) = (&condition.test, &condition.subject) {
            let found = self.visit.find(path, at.base);
            let exists = found.into_iter().filter_map(|place| self.visit.get(place)).any(is_something);
            self.visit.complaint = None;
            return exists == *wanted;
        }
        let texts = self.subject(&condition.subject, at);
        match &condition.test {
            Test::Is(globs) => texts.iter().any(|text| globs.iter().any(|glob| glob.fits(text))),
            Test::Not(globs) => !texts.iter().any(|text| globs.iter().any(|glob| glob.fits(text))),
            Test::Exists(wanted) => texts.is_empty() != *wanted,
            Test::Match(regex) => texts.iter().any(|text| regex.is_match(text)),
        }
    }

    fn subject(&mut self, subject: &Subject, at: At<'d>) -> Vec<Cow<'d, str>> {
        match subject {
            Subject::Path(path) => self.visit.quiet_texts(path, at.base),
            Subject::Context(word) => self.context(*word, at).into_iter().collect(),
        }
    }

    fn context(&mut self, word: super::rule::Word, at: At<'d>) -> Option<Cow<'d, str>> {
        use super::rule::Word;
        if at.object.is_key_hidden && matches!(word, Word::Key | Word::TextKey | Word::Address) {
            self.visit.complain(Complaint::Hidden);
            return None;
        }
        if word == Word::Element {
            return self.label.clone().map(Cow::Owned);
        }
        context::value(word, self.world.row(at.row)?)
    }

    /// Returns what the first rule that finds something finds.
    pub(super) fn first(&mut self, rules: &'d [Rule], at: At<'d>, want: Want) -> Vec<Item<'d>> {
        let before = self.visit.complaint;
        for rule in rules {
            let found = self.rule(rule, at, want);
            if !found.is_empty() {
                self.visit.complaint = before;
                return found;
            }
        }
        Vec::new()
    }

    /// Returns all that a rule finds. Rules nest no deeper than their compilation allows.
    pub(super) fn rule(&mut self, rule: &'d Rule, at: At<'d>, want: Want) -> Vec<Item<'d>> {
        let is_plain = rule.steps.are_none();
        let inner = if is_plain { want } else { Want::Text };
        let one = |text, from| vec![Item { text, from, words: rule.words.as_str(), precedence: 0 }];
        let mut items = match &rule.origin {
            Origin::Path(path) => self.path(rule, path, at),
            Origin::Context(word) => {
                self.context(*word, at).map(|text| one(text, From::Row(at.row))).unwrap_or_default()
            }
            Origin::Value(text) => one(Cow::Borrowed(text), From::Row(at.row)),
            Origin::Join(join) => self.named(rule, |eval| eval.join(join, at, inner)),
            Origin::Depends(depends) => self.named(rule, |eval| eval.depends(depends, at, inner)),
            Origin::First(rules) => self.first(rules, at, inner),
            Origin::Concat(rules, with) => self.concat(rules, with, at, rule),
        };
        if !is_plain {
            let mut changed = Vec::with_capacity(items.len());
            for item in items {
                self.apply(rule, item, at, &mut changed);
            }
            items = changed;
        }
        let mut useful = 0;
        items.retain_mut(|item| {
            if useful == MOST_VALUES {
                self.visit.complain(Complaint::TooMany);
                return false;
            }
            if rule.steps.precedence != 0 {
                item.precedence = rule.steps.precedence;
            }
            let is_useful = self.accepts(item, want);
            useful += usize::from(is_useful);
            is_useful
        });
        items
    }

    fn named(&mut self, rule: &'d Rule, find: impl FnOnce(&mut Self) -> Vec<Item<'d>>) -> Vec<Item<'d>> {
        let mut items = find(self);
        for item in &mut items {
            item.words = &rule.words;
        }
        items
    }

    /// Tells whether a value is of use, and spells it as it is.
    fn accepts(&mut self, item: &mut Item<'d>, want: Want) -> bool {
        if text::is_nothing(&item.text) {
            return false;
        }
        if item.text.len() > LONGEST_VALUE {
            self.visit.complain(Complaint::TooLong);
            return false;
        }
        if want == Want::Text {
            return true;
        }
        let address = ip::parse(&item.text);
        match (want, address) {
            (Want::Ip | Want::IpOrName, Some(address)) => {
                let is_usable = ip::is_usable(address);
                if is_usable {
                    item.text = Cow::Owned(address.to_string());
                }
                is_usable
            }
            (Want::Ip, None) => {
                self.visit.complain(Complaint::NoAddress);
                false
            }
            (Want::IpOrName | Want::Name, None) => ip::is_name(&item.text),
            _ => false,
        }
    }

    fn concat(&mut self, rules: &'d [Rule], with: &str, at: At<'d>, rule: &'d Rule) -> Vec<Item<'d>> {
        let mut parts = Vec::new();
        let mut from = From::Row(at.row);
        for part in rules {
            let Some(item) = self.rule(part, at, Want::Text).into_iter().next() else {
                return Vec::new();
            };
            if parts.is_empty() {
                from = item.from;
            }
            parts.push(item.text);
        }
        let text = Cow::Owned(parts.join(with));
        vec![Item { text, from, words: &rule.words, precedence: 0 }]
    }

    fn join(&mut self, join: &'d Join, at: At<'d>, want: Want) -> Vec<Item<'d>> {
        let Some((_, first)) = join.pairs.first() else { return Vec::new() };
        let module = self.world.row(at.row).map(|row| row.module.as_str()).unwrap_or_default();
        let ours = self.subject(first, at);
        if ours.is_empty() {
            return Vec::new();
        }
        let Some(index) = self.world.index(join) else { return Vec::new() };
        let keys: BTreeSet<String> =
            ours.iter().map(|text| join_key(join, module, &ip::comparable(text))).collect();
        let mut matches = BTreeSet::new();
        for (compared, found) in keys.iter().filter_map(|key| index.get(key)).flatten().enumerate() {
            if compared == MOST_COMPARED {
                self.visit.complain(Complaint::ManyMatches);
                return Vec::new();
            }
            let Some(row) = self.world.row(*found) else { continue };
            if self.visit.complaint == Some(Complaint::TooMuchWork) || matches.len() > MOST_MATCHES {
                break;
            }
            if self.is_match(join, *found, at) {
                matches.insert((row.position, *found));
            }
        }
        self.read.extend(matches.iter().map(|(_, found)| *found));
        if matches.len() > MOST_MATCHES {
            self.visit.complain(Complaint::ManyMatches);
            return Vec::new();
        }
        let mut items = Vec::new();
        for (_, found) in matches {
            if let Some(there) = self.object_at(found) {
                items.extend(self.rule(&join.read, there, want));
            }
        }
        items
    }

    fn object_at(&mut self, row: usize) -> Option<At<'d>> {
        let object: &'d Object<'d> = self.world.object(row)?;
        let root = self.visit.root(&object.attributes, row);
        Some(At { row, object, base: Base { root, element: None } })
    }

    /// Tells whether an object that fits the first pair fits the others as well.
    fn is_match(&mut self, join: &'d Join, found: usize, at: At<'d>) -> bool {
        join.pairs.iter().skip(1).all(|(theirs, ours)| {
            let Some(there) = self.object_at(found) else { return false };
            let theirs: BTreeSet<String> =
                self.visit.quiet_texts(theirs, there.base).iter().map(|text| ip::comparable(text)).collect();
            self.subject(ours, at).iter().any(|text| theirs.contains(&ip::comparable(text)))
        })
    }

    fn depends(&mut self, depends: &'d Depends, at: At<'d>, want: Want) -> Vec<Item<'d>> {
        let mut items: Vec<Item<'d>> = Vec::new();
        for address in &at.object.dependencies {
            if !depends.types.iter().any(|name| is_of_type(address, name)) {
                continue;
            }
            let kept = self.follow(depends, address, at, want);
            self.read.extend(&kept.read);
            if let Some(complaint) = kept.complaint {
                self.visit.complain(complaint);
                if complaint == Complaint::Ambiguous {
                    return Vec::new();
                }
            }
            let found: Vec<Item<'d>> = kept
                .items
                .iter()
                .map(|(text, below)| {
                    let from = From::Below(Arc::clone(below));
                    Item { text: Cow::Owned(text.clone()), from, words: "", precedence: 0 }
                })
                .collect();
            if items.is_empty() {
                items = found;
            } else if !found.is_empty() && !is_same(&items, &found) {
                self.visit.complain(Complaint::Ambiguous);
                return Vec::new();
            }
        }
        items
    }

    /// Reads all instances of a block that ours may depend on; once for each module instance that asks.
    fn follow(&mut self, depends: &'d Depends, address: &str, at: At<'d>, want: Want) -> Arc<Kept> {
        let module = self.world.row(at.row).map(|row| row.module.as_str()).unwrap_or_default();
        let key = (depends.number, address.to_owned(), shared_call(module, address), want);
        if let Some(kept) = self.world.kept(&key) {
            return kept;
        }
        let mut kept = Kept::default();
        let mut first: Option<Vec<Item<'d>>> = None;
        for found in self.world.block(address) {
            let Some(row) = self.world.row(*found) else { continue };
            if !can_refer(module, &row.module) {
                continue;
            }
            let mut inner = Self::new(self.world);
            let Some(there) = inner.object_at(*found) else { continue };
            let items = inner.rule(&depends.read, there, want);
            let is_new = match &first {
                None => !items.is_empty(),
                Some(first) => !items.is_empty() && !is_same(first, &items),
            };
            let complaint = inner.visit.complaint.filter(|_| items.is_empty() && first.is_none());
            if is_new || (complaint.is_some() && kept.complaint.is_none()) {
                kept.read.push(*found);
                kept.read.append(&mut inner.read);
            }
            if is_new && first.is_some() {
                kept.items.clear();
                kept.complaint = Some(Complaint::Ambiguous);
                break;
            }
            if is_new {
                kept.items = items.iter().map(|item| (item.text.to_string(), inner.below(item))).collect();
                kept.complaint = None;
                first = Some(items);
            } else if kept.items.is_empty() {
                kept.complaint = kept.complaint.or(complaint);
            }
        }
        let kept = Arc::new(kept);
        self.world.keep(key, Arc::clone(&kept));
        kept
    }

    fn below(&self, item: &Item<'_>) -> Arc<(usize, String)> {
        match &item.from {
            From::Place(place) => {
                let row = self.visit.get(*place).map_or(usize::MAX, |place| place.row);
                let mut path = String::new();
                self.visit.push_path(*place, &mut path);
                Arc::new((row, path))
            }
            From::Row(row) => Arc::new((*row, String::new())),
            From::Below(below) => Arc::clone(below),
        }
    }

    /// Returns where a value was found.
    pub(super) fn spot(&self, item: &Item<'_>, places: &mut Places) -> Option<Spot> {
        let row = match &item.from {
            From::Place(place) => self.visit.get(*place)?.row,
            From::Row(row) => *row,
            From::Below(below) => below.0,
        };
        let place = places.of(item.words, |text| match &item.from {
            From::Place(place) => self.visit.push_path(*place, text),
            From::Row(_) => {}
            From::Below(below) => text.push_str(&below.1),
        });
        Some(Spot::new(self.world.row(row)?, place))
    }
}

fn is_same(left: &[Item<'_>], right: &[Item<'_>]) -> bool {
    left.iter().map(|item| &item.text).eq(right.iter().map(|item| &item.text))
}

/// Tells whether the address of a block is of a type: `X`, or `data.X`.
fn is_of_type(address: &str, name: &str) -> bool {
    let mut rest = address;
    while let Some(inner) = rest.strip_prefix("module.") {
        rest = inner.split_once('.').map_or("", |(_, rest)| rest);
    }
    rest.rsplit_once('.').is_some_and(|(found, _)| found == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_by_type() {
        assert!(is_of_type("module.a.module.data.data.x_y.z", "data.x_y"));
        assert!(is_of_type("x_y.z", "x_y"));
        assert!(!is_of_type("module.data.x_y.z", "data.x_y"));
        assert!(!is_of_type("data.x_y.z", "x_y"));
    }
}
