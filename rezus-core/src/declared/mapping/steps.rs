//! What a rule does to the values that it found.

use std::borrow::Cow;

use super::dom::Value;
use super::eval::{At, Eval, From, Item};
use super::lift::Lift;
use super::path::Path;
use super::rule::{Parallel, Rule, Tag};
use super::text::{self, Unit};
use super::visit::{Complaint, Place, Way};
use crate::declared::resource::Decimal;
use crate::declared::secrets::{self, RuleStep, SecretKind};

/// How long a text may be that steps work on.
const LONGEST_TEXT: usize = 64 * 1024;

impl<'d, 'a: 'd> Eval<'d, 'a> {
    /// Returns what a path finds, and does the steps that look at values and not at texts.
    pub(super) fn path(&mut self, rule: &'d Rule, path: &'d Path, at: At<'d>) -> Vec<Item<'d>> {
        let mut places = self.visit.find(path, at.base);
        if let Some(parallel) = &rule.steps.parallel {
            places = self.parallel(parallel, places, at);
        }
        let mut items = Vec::with_capacity(places.len());
        for place in places {
            let found = match (&rule.steps.lift, &rule.steps.tag) {
                (Some(lift), _) => self.lift(lift, place).map(|text| (place, text)),
                (None, Some(tag)) => self.tag(tag, place),
                (None, None) => self.visit.text(place).map(|text| (place, text)),
            };
            items.extend(found.map(|(place, text)| Item {
                text,
                from: From::Place(place),
                words: &rule.words,
                precedence: 0,
            }));
        }
        items
    }

    fn parallel(&mut self, parallel: &'d Parallel, places: Vec<usize>, at: At<'d>) -> Vec<usize> {
        let mut names = self.visit.find(&parallel.names, at.base);
        if let [only] = names.as_slice()
            && let Some(only) = self.visit.unwrapped(*only)
            && let Some(Place { node, .. }) = self.visit.get(only)
            && let Value::List(list) = &node.value
        {
            let entered = list.iter().enumerate();
            names = entered.filter_map(|(i, node)| self.visit.enter(only, Way::Element(i), node)).collect();
        }
        let names: Vec<Option<Cow<'d, str>>> = names.into_iter().map(|name| self.visit.text(name)).collect();
        let is_kept = |place: &usize| {
            let first = self.visit.get(*place).and_then(|place| place.first);
            let name = first.and_then(|first| names.get(first)).and_then(Option::as_deref);
            let fits =
                |globs: &[text::Glob]| name.is_some_and(|name| globs.iter().any(|glob| glob.fits(name)));
            !fits(&parallel.not) && (parallel.only.is_empty() || fits(&parallel.only))
        };
        places.into_iter().filter(is_kept).collect()
    }

    /// Takes a scalar out of a document; out of a hidden one only if it is hidden as a document.
    fn lift(&mut self, lift: &Lift, place: usize) -> Option<Cow<'d, str>> {
        let found = self.visit.get(place)?;
        if found.is_masked && !self.is_document(place) {
            if found.node.kind().is_some() {
                self.visit.complain(Complaint::Hidden);
            }
            return None;
        }
        lift.of(&found.node.text()?).map(Cow::Owned)
    }

    fn is_document(&self, at: usize) -> bool {
        let Some(place) = self.visit.get(at) else { return false };
        let Some(row) = self.world.row(place.row) else { return false };
        let is_all_hidden = row.masked.iter().any(|pointer| matches!(pointer.as_str(), "" | "/attributes"));
        let names = self.visit.names_to(at);
        let rules = |name: &str| self.world.mappings.secret_rules(name);
        let known = secrets::known_rules(&row.resource_type, &rules);
        let mut is_document = false;
        for rule in known.into_iter().flatten() {
            let fits = rule.path.len() <= names.len()
                && rule.path.iter().zip(&names).all(|(step, name)| match step {
                    RuleStep::Member(known) => known == name,
                    RuleStep::Any => true,
                });
            match rule.kind {
                _ if !fits => {}
                SecretKind::Credential => return false,
                SecretKind::Document => is_document = true,
            }
        }
        is_document && !is_all_hidden
    }

    /// Looks a tag up, and tells where it is.
    fn tag(&mut self, tag: &Tag, place: usize) -> Option<(usize, Cow<'d, str>)> {
        let mut place = self.visit.unwrapped(place)?;
        if let Some(Place { node, .. }) = self.visit.get(place)
            && let Value::List(list) = &node.value
            && let [only] = list.as_slice()
            && matches!(only.value, Value::Object(_))
            && only.member("key").is_none()
        {
            place = self.visit.enter(place, Way::Element(0), only)?;
        }
        let found = self.visit.get(place)?;
        match &found.node.value {
            Value::Object(_) => match tag {
                Tag::Named(name) => {
                    let (name, node) = found.node.member(name)?;
                    let member = self.visit.enter(place, Way::Member(name), node)?;
                    self.visit.text(member).map(|text| (member, text))
                }
                Tag::AnyOf(words) => words.iter().find_map(|word| {
                    let (name, node) = found.node.member(word)?;
                    let member = self.visit.enter(place, Way::Member(name), node)?;
                    let is_masked = self.visit.get(member).is_none_or(|member| member.is_masked);
                    (!is_masked).then_some((member, Cow::Borrowed(name)))
                }),
            },
            Value::List(list) => {
                let mut texts = Vec::new();
                for (at, node) in list.iter().enumerate() {
                    let element = self.visit.enter(place, Way::Element(at), node)?;
                    if let (Tag::Named(name), Some((_, key))) = (tag, node.member("key")) {
                        if key.text().is_some_and(|key| key == name.as_str())
                            && let Some((value, node)) = node.member("value")
                            && let Some(value) = self.visit.enter(element, Way::Member(value), node)
                            && let Some(text) = self.visit.text(value)
                        {
                            return Some((value, text));
                        }
                        continue;
                    }
                    texts.extend(self.visit.text(element).map(|text| (element, text)));
                }
                in_texts(tag, &texts)
            }
            _ => {
                let text = self.visit.text(place)?;
                in_text(tag, &text).map(|found| (place, Cow::Owned(found.to_owned())))
            }
        }
    }

    /// Does the steps that work on texts.
    pub(super) fn apply(&mut self, rule: &'d Rule, item: Item<'d>, at: At<'d>, into: &mut Vec<Item<'d>>) {
        let steps = &rule.steps;
        if item.text.len() > LONGEST_TEXT {
            self.visit.complain(Complaint::TooLong);
            return;
        }
        let is_path = matches!(rule.origin, super::rule::Origin::Path(_));
        if steps.split.is_none() && (steps.tag.is_none() || is_path) {
            if let Some(text) = self.one(rule, item.text, at) {
                into.push(Item { text, ..item });
            }
            return;
        }
        let mut texts = vec![item.text.clone()];
        if let (Some(tag), false) = (&steps.tag, is_path) {
            texts = in_text(tag, &item.text).map(|found| Cow::Owned(found.to_owned())).into_iter().collect();
        }
        if let Some(separators) = &steps.split {
            let is_separator = |c: char| separators.contains(c);
            let split = |text: &Cow<'d, str>| -> Vec<Cow<'d, str>> {
                text.split(is_separator).map(|part| Cow::Owned(part.trim().to_owned())).collect()
            };
            texts = texts.iter().flat_map(split).collect();
        }
        for text in texts {
            if let Some(text) = self.one(rule, text, at) {
                into.push(Item { text, ..item.clone() });
            }
        }
    }

    fn one(&mut self, rule: &'d Rule, text: Cow<'d, str>, at: At<'d>) -> Option<Cow<'d, str>> {
        let steps = &rule.steps;
        let mut text = text;
        if let Some(regex) = &steps.matches {
            let captured = regex.captures(&text)?.get(1)?.as_str().to_owned();
            text = Cow::Owned(captured);
        }
        if steps.url_host {
            text = text::sliced(text, text::url_host)?;
        }
        if let Some(separator) = &steps.last {
            text = text::sliced(text, |text| Some(text::last(text, separator)))?;
        }
        if let Some(separator) = &steps.before {
            text = text::sliced(text, |text| Some(text::before(text, separator)))?;
        }
        if let Some(separator) = &steps.drop_last {
            text = text::sliced(text, |text| text.rsplit_once(separator.as_str()).map(|(rest, _)| rest))?;
        }
        if let Some(prefix) = &steps.strip_prefix {
            text = text::sliced(text, |text| Some(text.strip_prefix(prefix.as_str()).unwrap_or(text)))?;
        }
        if text::is_nothing(&text) || steps.unless.iter().any(|glob| glob.fits(&text)) {
            return None;
        }
        if let Some(table) = &steps.table {
            text = Cow::Owned(table.look_up(&text)?.to_owned());
        }
        self.numbers(rule, text, at)
    }

    fn numbers(&mut self, rule: &'d Rule, text: Cow<'d, str>, at: At<'d>) -> Option<Cow<'d, str>> {
        let steps = &rule.steps;
        let mut number = if steps.unit.is_some() || steps.unit_path.is_some() {
            let named = steps.unit_path.as_ref().and_then(|path| {
                let found = self.visit.quiet_texts(path, at.base);
                found.first().and_then(|name| Unit::named(name))
            });
            named.or(steps.unit).map_or_else(|| Some(text.to_string()), |unit| unit.to_mib(&text))
        } else if steps.times.is_some() || steps.number {
            Some(text.to_string())
        } else {
            return Some(text);
        };
        if let Some(path) = &steps.times
            && let Some(times) = self.visit.quiet_texts(path, at.base).first()
        {
            number = number.and_then(|number| text::product(&number, times));
        }
        let number = number.and_then(|number| Decimal::parse(number.trim()));
        if number.is_none() {
            self.visit.complain(Complaint::NoNumber);
        }
        number.map(|number| Cow::Owned(number.as_str().to_owned()))
    }
}

/// Looks a tag up in a list of texts.
fn in_texts<'d>(tag: &Tag, texts: &[(usize, Cow<'d, str>)]) -> Option<(usize, Cow<'d, str>)> {
    match tag {
        Tag::Named(name) => texts.iter().find_map(|(place, text)| {
            let (found, value) = text::pair(text)?;
            (found == name && !value.is_empty()).then(|| (*place, Cow::Owned(value.to_owned())))
        }),
        Tag::AnyOf(words) => words.iter().find_map(|word| {
            let found = texts.iter().find(|(_, text)| text.trim().eq_ignore_ascii_case(word));
            found.map(|(place, _)| (*place, Cow::Owned(word.clone())))
        }),
    }
}

/// Looks a tag up in one text that lists them.
fn in_text<'t>(tag: &'t Tag, text: &'t str) -> Option<&'t str> {
    match tag {
        Tag::Named(name) => text::tags(text)
            .filter_map(text::pair)
            .find(|(found, value)| found == name && !value.is_empty())
            .map(|(_, value)| value),
        Tag::AnyOf(words) => words
            .iter()
            .find(|word| text::tags(text).any(|found| found.eq_ignore_ascii_case(word)))
            .map(String::as_str),
    }
}
