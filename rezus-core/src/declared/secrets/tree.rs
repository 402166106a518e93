//! Secret paths as one tree, so that an object is walked once whatever their number.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{RuleStep, SecretKind, SecretRule};
use crate::declared::json::{JsonError, Step, Walk, push_escaped};

/// The root of the paths that a state marks.
pub(super) const MARKS: usize = 0;
/// The root of the paths that are known for a resource type.
pub(super) const RULES: usize = 1;

/// Secret paths, the marks of a state and the rules for a type.
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Where the marks end.
    ends: Vec<usize>,
}

#[derive(Default)]
struct Node {
    parent: usize,
    is_rule: bool,
    members: BTreeMap<Cow<'static, str>, usize>,
    elements: BTreeMap<u64, usize>,
    any: Option<usize>,
    /// Set where a path ends.
    end: Option<SecretKind>,
    /// Whether a value was found here.
    is_met: bool,
    /// Whether what is below needs no finding: the value is null, or hidden as a whole.
    is_settled: bool,
}

/// What a walk found.
#[derive(Default)]
pub(super) struct Found {
    /// The places to be hidden.
    pub(super) pointers: Vec<String>,
    /// The secret strings in them.
    pub(super) strings: Vec<String>,
}

/// A node at a value.
#[derive(Clone, Copy)]
struct At {
    node: usize,
    /// Whether by passing through a member `value`, which may or may not be a dynamic wrapper's.
    is_through: bool,
}

/// A container on the way.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one container, not a state machine"
)]
struct Frame {
    is_object: bool,
    nodes: Vec<At>,
    /// Whether the strings in it are secrets.
    is_counting: bool,
    is_hidden: bool,
    elements: u64,
    /// What tells a dynamic wrapper, `{"value": V, "type": T}`: its members, and the strings found under `type`.
    names: usize,
    has_value: bool,
    types: Option<(usize, usize)>,
    is_in_type: bool,
}

impl Default for Tree {
    fn default() -> Self {
        let rules = Node { is_rule: true, ..Node::default() };
        Self { nodes: vec![Node::default(), rules], ends: Vec::new() }
    }
}

impl Tree {
    /// Makes the tree that takes all of a value for secret.
    pub(super) fn of_all() -> Self {
        let mut tree = Self::default();
        tree.end_mark(MARKS);
        tree
    }

    /// Adds a rule.
    pub(super) fn add_rule(&mut self, rule: &SecretRule) {
        let mut node = RULES;
        for step in &rule.path {
            node = match step {
                RuleStep::Member(name) => self.member(node, name.clone()),
                RuleStep::Any => self.nodes[node].any.unwrap_or_else(|| {
                    let child = self.child(node);
                    self.nodes[node].any = Some(child);
                    child
                }),
            };
        }
        self.end_rule(node, rule.kind);
    }

    /// Ends a rule.
    pub(super) fn end_rule(&mut self, node: usize, kind: SecretKind) {
        let end = &mut self.nodes[node].end;
        *end = (*end).max(Some(kind));
    }

    /// Returns the node below another one for a member.
    pub(super) fn member(&mut self, node: usize, name: Cow<'static, str>) -> usize {
        if let Some(child) = self.nodes[node].members.get(&name) {
            return *child;
        }
        let child = self.child(node);
        self.nodes[node].members.insert(name, child);
        child
    }

    /// Returns the node below another one for a list element.
    pub(super) fn element(&mut self, node: usize, index: u64) -> usize {
        if let Some(child) = self.nodes[node].elements.get(&index) {
            return *child;
        }
        let child = self.child(node);
        self.nodes[node].elements.insert(index, child);
        child
    }

    /// Returns a node below another one that no value is at.
    pub(super) fn nowhere(&mut self, node: usize) -> usize {
        self.child(node)
    }

    /// Ends a mark.
    pub(super) fn end_mark(&mut self, node: usize) {
        self.nodes[node].end = Some(SecretKind::Credential);
        self.ends.push(node);
    }

    /// Tells whether the state marks anything.
    pub(super) fn has_marks(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Tells whether, after a walk, some mark led nowhere.
    pub(super) fn is_any_mark_unmet(&self) -> bool {
        self.ends.iter().any(|end| {
            let mut node = *end;
            if self.nodes[node].is_met {
                return false;
            }
            while node != MARKS {
                if self.nodes[node].is_settled {
                    return false;
                }
                node = self.nodes[node].parent;
            }
            !self.nodes[MARKS].is_settled
        })
    }

    /// Walks through a value, which is at a pointer, and finds what the paths lead to.
    pub(super) fn gather(&mut self, text: &str, pointer: &str) -> Result<Found, JsonError> {
        let roots = [MARKS, RULES].map(|node| At { node, is_through: false });
        self.gather_from(roots.into(), text, pointer)
    }

    /// Walks through the value of one member only, and finds what the rules lead to. The text may go on behind it.
    pub(super) fn gather_member(
        &mut self,
        name: &str,
        text: &str,
        pointer: &str,
    ) -> Result<Found, JsonError> {
        let nodes = self.below_name(&[At { node: RULES, is_through: false }], name);
        let mut below = format!("{pointer}/");
        push_escaped(&mut below, name);
        self.gather_from(nodes, text, &below)
    }

    fn gather_from(&mut self, mut next: Vec<At>, text: &str, pointer: &str) -> Result<Found, JsonError> {
        let most = super::places::most_bytes(text.len());
        let mut found = Found::default();
        let mut pointer_bytes = 0;
        let mut walk = Walk::new(text).below(pointer);
        let mut frames: Vec<Frame> = Vec::new();
        while let Some(step) = walk.next_step()? {
            let kind = match step {
                Step::Name(name) => {
                    let Some(frame) = frames.last_mut() else { continue };
                    let decoded = name.decode();
                    frame.note_name(&decoded, found.strings.len());
                    next = self.below_name(&frame.nodes, &decoded);
                    if next.is_empty() && !frame.is_counting {
                        walk.skip_member()?;
                    } else {
                        walk.enter(name);
                    }
                    continue;
                }
                Step::Close(_) => {
                    if let Some(mut frame) = frames.pop() {
                        frame.drop_types(&mut found.strings);
                    }
                    continue;
                }
                Step::Open(true) => Kind::Object,
                Step::Open(false) => Kind::Array,
                Step::Other("null") => Kind::Null,
                Step::String(text) if text.raw().is_empty() => Kind::Empty,
                Step::String(_) | Step::Other(_) => Kind::Scalar,
            };
            let (mut is_counting, mut is_hidden) = (false, false);
            if let Some(frame) = frames.last_mut() {
                (is_counting, is_hidden) = (frame.is_counting, frame.is_hidden);
                if !frame.is_object {
                    next = self.below_element(&frame.nodes, frame.elements);
                    frame.elements += 1;
                }
            }
            let nodes = std::mem::take(&mut next);
            let end = self.arrive(&nodes, kind);
            is_counting |= end == Some(SecretKind::Credential);
            if end.is_some() && !is_hidden {
                is_hidden = true;
                pointer_bytes += walk.pointer().len() + 1;
                if pointer_bytes <= most {
                    found.pointers.push(walk.pointer().to_owned());
                } else {
                    found.pointers = vec![String::new()];
                }
            }
            match step {
                Step::Open(_) if nodes.is_empty() && !is_counting => {
                    walk.skip_opened()?;
                }
                Step::Open(is_object) => {
                    frames.push(Frame { is_object, nodes, is_counting, is_hidden, ..Frame::default() });
                }
                Step::String(text) if is_counting => found.strings.push(text.decode().into_owned()),
                _ => {}
            }
        }
        Ok(found)
    }

    fn child(&mut self, parent: usize) -> usize {
        let is_rule = self.nodes[parent].is_rule;
        self.nodes.push(Node { parent, is_rule, ..Node::default() });
        self.nodes.len() - 1
    }

    fn below_name(&self, nodes: &[At], name: &str) -> Vec<At> {
        let mut below = Vec::new();
        for at in nodes {
            let node = &self.nodes[at.node];
            let children = [node.members.get(name).copied(), node.any];
            below.extend(children.into_iter().flatten().map(|node| At { node, is_through: false }));
            if name == "value" {
                below.push(At { node: at.node, is_through: true });
            }
        }
        below.sort_unstable_by_key(|at| (at.node, at.is_through));
        below.dedup_by_key(|at| at.node);
        below
    }

    fn below_element(&self, nodes: &[At], index: u64) -> Vec<At> {
        let mut below = Vec::new();
        for at in nodes {
            let node = &self.nodes[at.node];
            below.extend(node.elements.get(&index).map(|node| At { node: *node, is_through: false }));
            if node.is_rule && node.end.is_none() && !(node.members.is_empty() && node.any.is_none()) {
                below.push(*at);
            }
        }
        below
    }

    /// Notes that a value was found at some nodes, and returns how secret it is.
    fn arrive(&mut self, nodes: &[At], kind: Kind) -> Option<SecretKind> {
        let mut end = None;
        for at in nodes.iter().filter(|at| !(at.is_through && at.node <= RULES)) {
            let node = &mut self.nodes[at.node];
            node.is_met = true;
            if kind == Kind::Null || (kind == Kind::Empty && node.is_rule) {
                node.is_settled |= kind == Kind::Null && !at.is_through;
                continue;
            }
            end = end.max(node.end);
            if at.is_through {
                continue;
            }
            if kind == Kind::Scalar && node.is_rule {
                // The type's schema is not the one that the rule was made for: what is here may hold it.
                end = end.max(Some(SecretKind::Document));
            }
            if kind == Kind::Array && !node.is_rule && !node.members.is_empty() {
                // A text that indexes a set: its elements have no place of their own.
                node.is_settled = true;
                end = Some(SecretKind::Credential);
            }
        }
        end
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
    Null,
    /// The empty string: as good as null to a rule, and what a mark marks all the same.
    Empty,
    Scalar,
}

impl Frame {
    fn note_name(&mut self, name: &str, strings: usize) {
        self.leave_type(strings);
        self.names += 1;
        self.has_value |= name == "value";
        self.is_in_type = name == "type";
        if self.is_in_type {
            self.types = Some((strings, strings));
        }
    }

    fn leave_type(&mut self, strings: usize) {
        if self.is_in_type
            && let Some((_, end)) = &mut self.types
        {
            *end = strings;
        }
        self.is_in_type = false;
    }

    /// Forgets the strings under `type`, if this was a dynamic wrapper: they name a type.
    fn drop_types(&mut self, strings: &mut Vec<String>) {
        self.leave_type(strings.len());
        if self.is_object
            && self.names == 2
            && self.has_value
            && let Some((start, end)) = self.types
        {
            strings.drain(start..end);
        }
    }
}
