//! Walks paths through objects, and remembers how it got to each value.

use std::borrow::Cow;

use super::dom::{Node, Value};
use super::path::{Filter, Operand, Path, Root, Step};
use super::{ip, text};

/// How many values may be looked at for one object, those of joined objects among them.
pub(super) const MOST_PLACES: usize = 50_000;
/// How many more for each element of an `each` block.
pub(super) const MORE_FOR_ELEMENT: usize = 500;
/// How many values a path may find.
pub(super) const MOST_FOUND: usize = 5_000;

/// Why a rule found less than it might have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Complaint {
    Hidden,
    /// Expected something else than this kind of value.
    WrongKind(&'static str),
    NoNumber,
    NoAddress,
    TooLong,
    TooMany,
    TooMuchWork,
    Ambiguous,
    ManyMatches,
}

impl Complaint {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Hidden => "hidden: it is marked sensitive, or known to be a secret".to_owned(),
            Self::WrongKind(kind) => format!("not of the kind that the mapping expects: {kind}"),
            Self::NoNumber => "not a number".to_owned(),
            Self::NoAddress => "not an IP address".to_owned(),
            Self::TooLong => "too long".to_owned(),
            Self::TooMany => "more values than can be looked at".to_owned(),
            Self::TooMuchWork => "the object is too large to be looked at whole".to_owned(),
            Self::Ambiguous => {
                "ambiguous: the instances that the object may depend on do not say the same".to_owned()
            }
            Self::ManyMatches => "ambiguous: more than 64 objects match".to_owned(),
        }
    }
}

/// A value and the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'d> {
    pub(super) node: &'d Node<'d>,
    pub(super) way: Way<'d>,
    /// The place of what it is in; none for an object's attributes.
    pub(super) above: Option<usize>,
    /// Whether it, or something that it is in, must not be shown.
    pub(super) is_masked: bool,
    /// The element taken at the path's first `[*]` or filter.
    pub(super) first: Option<usize>,
    /// The object's row.
    pub(super) row: usize,
}

/// One step of the way to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way<'d> {
    Attributes,
    Member(&'d str),
    Element(usize),
}

/// Where the paths of a rule begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) root: usize,
    pub(super) element: Option<usize>,
}

/// All places that were looked at.
#[derive(Debug)]
pub(super) struct Visit<'d> {
    places: Vec<Place<'d>>,
    most: usize,
    pub(super) complaint: Option<Complaint>,
}

impl<'d> Visit<'d> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), most: MOST_PLACES, complaint: None }
    }

    pub(super) fn allow(&mut self, more: usize) {
        self.most += more;
    }

    /// Notes a complaint; the first one counts.
    pub(super) fn complain(&mut self, complaint: Complaint) {
        self.complaint.get_or_insert(complaint);
    }

    /// Begins at an object's attributes.
    pub(super) fn root(&mut self, node: &'d Node<'d>, row: usize) -> usize {
        let is_masked = node.is_masked;
        self.places.push(Place { node, way: Way::Attributes, above: None, is_masked, first: None, row });
        self.places.len() - 1
    }

    pub(super) fn get(&self, place: usize) -> Option<Place<'d>> {
        self.places.get(place).copied()
    }

    /// Goes from a place to a value in it.
    pub(super) fn enter(&mut self, above: usize, way: Way<'d>, node: &'d Node<'d>) -> Option<usize> {
        if self.places.len() >= self.most {
            self.complain(Complaint::TooMuchWork);
            return None;
        }
        let from = self.get(above)?;
        let is_masked = from.is_masked || node.is_masked;
        self.places.push(Place { node, way, above: Some(above), is_masked, ..from });
        Some(self.places.len() - 1)
    }

    /// Passes through a dynamic wrapper, if there is one.
    pub(super) fn unwrapped(&mut self, place: usize) -> Option<usize> {
        match self.get(place)?.node.wrapped() {
            Some(node) => self.enter(place, Way::Member("value"), node),
            None => Some(place),
        }
    }

    /// Returns the places that a path leads to.
    pub(super) fn find(&mut self, path: &Path, base: Base) -> Vec<usize> {
        let start = match path.root {
            Root::Attributes => Some(base.root),
            Root::Element => base.element,
            Root::Around => base.element.and_then(|element| self.around(element)),
        };
        let mut found: Vec<usize> = start.into_iter().collect();
        for place in &found {
            if let Some(place) = self.places.get_mut(*place) {
                place.first = None;
            }
        }
        for step in &path.steps {
            if let [only] = *found {
                found.clear();
                self.step(step, only, base, &mut found);
            } else {
                let mut next = Vec::new();
                for place in found {
                    self.step(step, place, base, &mut next);
                    if next.len() > MOST_FOUND {
                        break;
                    }
                }
                found = next;
            }
            if found.len() > MOST_FOUND {
                self.complain(Complaint::TooMany);
                return Vec::new();
            }
        }
        found
    }

    /// Returns the object around the list that an element is in.
    fn around(&self, element: usize) -> Option<usize> {
        let mut place = self.get(element)?.above;
        while let Some(at) = place {
            let found = self.get(at)?;
            if matches!(found.node.value, Value::Object(_)) {
                return Some(at);
            }
            place = found.above;
        }
        None
    }

    fn step(&mut self, step: &Step, at: usize, base: Base, next: &mut Vec<usize>) {
        let Some(inner) = self.unwrapped(at) else { return };
        let Some(place) = self.get(inner) else { return };
        match (step, &place.node.value) {
            (Step::Member(name), _) => {
                let found = self.member(name, inner).or_else(|| {
                    // No wrapper after all, but an object that has such members.
                    if inner == at { None } else { self.member(name, at) }
                });
                next.extend(found);
                if found.is_none() && !matches!(place.node.value, Value::Object(_)) {
                    self.complain_of(place);
                }
            }
            (Step::AnyMember, Value::Object(members)) => {
                for (name, node) in members {
                    next.extend(self.enter(inner, Way::Member(name), node));
                }
            }
            (Step::AnyMember, Value::List(list)) if list.len() == 1 => {
                if let Some(only) = list.first().and_then(|node| self.enter(inner, Way::Element(0), node))
                    && let Some(Place { node: Node { value: Value::Object(_), .. }, .. }) = self.get(only)
                {
                    self.step(step, only, base, next);
                }
            }
            (Step::Element(number), Value::List(list)) => {
                let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
                let at = if *number < 0 { length.saturating_add(*number) } else { *number };
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                if let Some(node) = list.get(at) {
                    next.extend(self.enter(inner, Way::Element(at), node));
                }
            }
            (Step::Element(0 | -1), Value::Object(_)) => next.push(inner),
            (Step::AllElements | Step::Filter(_), Value::List(list)) => {
                for (at, node) in list.iter().enumerate() {
                    let Some(element) = self.enter(inner, Way::Element(at), node) else { return };
                    if let Some(place) = self.places.get_mut(element) {
                        place.first.get_or_insert(at);
                    }
                    self.push_if(step, element, base, next);
                }
            }
            (Step::AllElements | Step::Filter(_), Value::Object(members)) if !members.is_empty() => {
                self.push_if(step, inner, base, next);
            }
            (_, Value::Object(_) | Value::List(_)) => {}
            _ => self.complain_of(place),
        }
    }

    fn push_if(&mut self, step: &Step, element: usize, base: Base, next: &mut Vec<usize>) {
        let holds = match step {
            Step::Filter(filter) => {
                let before = self.complaint;
                let holds = self.holds(filter, Base { element: Some(element), ..base });
                self.complaint = before.or(self.complaint.filter(|c| *c == Complaint::TooMuchWork));
                holds
            }
            _ => true,
        };
        if holds {
            next.push(element);
        }
    }

    fn complain_of(&mut self, place: Place<'d>) {
        if let Some(kind) = place.node.kind() {
            self.complain(if place.is_masked { Complaint::Hidden } else { Complaint::WrongKind(kind) });
        }
    }

    /// Goes to a member of an object, or of the only element of a list.
    fn member(&mut self, name: &str, at: usize) -> Option<usize> {
        let node = self.get(at)?.node;
        if let Value::List(list) = &node.value
            && let [only] = list.as_slice()
        {
            let only = self.enter(at, Way::Element(0), only)?;
            let only = self.unwrapped(only)?;
            let node = self.get(only)?.node;
            let (name, node) = node.member(name)?;
            return self.enter(only, Way::Member(name), node);
        }
        let (name, node) = node.member(name)?;
        self.enter(at, Way::Member(name), node)
    }

    /// Returns the text at a place; complains of what is there and is no text.
    pub(super) fn text(&mut self, at: usize) -> Option<Cow<'d, str>> {
        let at = self.unwrapped(at)?;
        let mut place = self.get(at)?;
        if let Value::List(list) = &place.node.value
            && let [only] = list.as_slice()
        {
            place = self.enter(at, Way::Element(0), only).and_then(|only| self.get(only))?;
        }
        if place.is_masked {
            if place.node.kind().is_some() {
                self.complain(Complaint::Hidden);
            }
            return None;
        }
        let text = place.node.text();
        if text.is_none() {
            self.complain_of(place);
        }
        text.filter(|text| !text::is_nothing(text))
    }

    /// Returns the texts that a path finds, for comparisons: hidden ones and what is no text left out, silently.
    pub(super) fn quiet_texts(&mut self, path: &Path, base: Base) -> Vec<Cow<'d, str>> {
        let before = self.complaint;
        let found = self.find(path, base);
        let texts = found.into_iter().filter_map(|place| self.text(place)).collect();
        let is_over = self.complaint.filter(|complaint| *complaint == Complaint::TooMuchWork);
        self.complaint = before.or(is_over);
        texts
    }

    fn holds(&mut self, filter: &Filter, base: Base) -> bool {
        match filter {
            Filter::All(parts) => parts.iter().all(|part| self.holds(part, base)),
            Filter::Any(parts) => parts.iter().any(|part| self.holds(part, base)),
            Filter::Not(part) => !self.holds(part, base),
            Filter::Exists(path) => {
                let found = self.find(path, base);
                found.into_iter().any(|place| self.get(place).is_some_and(|place| is_something(place)))
            }
            Filter::Compare { left, right, is_equal } => {
                let (left, right) = (self.side(left, base), self.side(right, base));
                let is_same =
                    left.iter().any(|left| right.contains(left)) || (left.is_empty() && right.is_empty());
                is_same == *is_equal
            }
        }
    }

    /// Returns the comparable texts of one side; nothing for null.
    fn side(&mut self, operand: &Operand, base: Base) -> Vec<String> {
        match operand {
            Operand::Null => Vec::new(),
            Operand::Text(text) => vec![ip::comparable(text)],
            Operand::Path(path) => {
                self.quiet_texts(path, base).iter().map(|text| ip::comparable(text)).collect()
            }
        }
    }

    /// Spells a place: below the instance object, as a JSON path (RFC 9535).
    pub(super) fn push_path(&self, at: usize, text: &mut String) {
        let Some(place) = self.get(at) else { return };
        if let Value::Flat { name, .. } = &place.node.value {
            text.push_str(".attributes_flat");
            push_member(text, name);
        } else {
            self.push_way(place, text);
        }
    }

    /// Values that are looked at nest no deeper than objects are read.
    fn push_way(&self, place: Place<'d>, text: &mut String) {
        if let Some(above) = place.above.and_then(|above| self.get(above)) {
            self.push_way(above, text);
        }
        match place.way {
            Way::Attributes => text.push_str(".attributes"),
            Way::Member(name) => push_member(text, name),
            Way::Element(number) => {
                text.push('[');
                text.push_str(&number.to_string());
                text.push(']');
            }
        }
    }

    /// Returns the names of the members on the way to a place, without those of dynamic wrappers.
    pub(super) fn names_to(&self, at: usize) -> Vec<&'d str> {
        let mut names = Vec::new();
        let mut place = self.get(at);
        while let Some(found) = place {
            let above = found.above.and_then(|above| self.get(above));
            if let Way::Member(name) = found.way {
                let is_wrapper = above.is_some_and(|above| above.node.wrapped().is_some());
                if !is_wrapper {
                    names.push(name);
                }
            }
            place = above;
        }
        names.reverse();
        names
    }
}

/// Tells whether there is a value that does not count as nothing.
pub(super) fn is_something(place: Place<'_>) -> bool {
    let is_nothing = place.node.text().is_some_and(|text| text::is_nothing(&text));
    place.node.kind().is_some() && !is_nothing && !place.is_masked
}

/// Adds a member: `.name`, or `['any name']`.
fn push_member(text: &mut String, name: &str) {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_short = name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit());
    if is_short {
        text.push('.');
        text.push_str(name);
        return;
    }
    text.push_str("['");
    for character in name.chars() {
        match character {
            '\'' => text.push_str("\\'"),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            control if u32::from(control) < 0x20 => {
                let digits = format!("{:04x}", u32::from(control));
                text.push_str("\\u");
                text.push_str(&digits);
            }
            other => text.push(other),
        }
    }
    text.push_str("']");
}
