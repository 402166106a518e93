//! Compiled rules.

use std::collections::{HashMap, HashSet};

use regex_lite::Regex;

use super::dom::Wanted;
use super::extract::{Field, Kind};
use super::lift::Lift;
use super::path::Path;
use super::text::{Glob, Table, Unit};

/// What a mapping says of a resource type.
#[derive(Clone, Debug)]
pub(super) struct TypeRules {
    /// The mapping's place in the list of providers.
    pub(super) provider: usize,
    /// Patterns of provider sources.
    pub(super) sources: Vec<Glob>,
    /// The first block that fits an object counts; none where the type is left out on purpose.
    pub(super) blocks: Vec<Block>,
}

/// One block of rules for a type.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) schema: Option<(u64, u64)>,
    pub(super) conditions: Vec<Condition>,
    pub(super) each: Option<Each>,
    pub(super) fields: Vec<(Field, Vec<Rule>)>,
    pub(super) addresses: Vec<(AddressList, Vec<Rule>)>,
}

/// What makes several machines of one object.
#[derive(Clone, Debug)]
pub(super) struct Each {
    pub(super) path: Path,
    pub(super) key: Option<Path>,
}

/// A list of rules under `addresses`; in the order in which an address is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AddressList {
    Internal,
    External,
    Mixed,
    Hostname,
    Shared,
}

/// What must hold for an object to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) subject: Subject,
    pub(super) test: Test,
}

/// Where a value to be compared is.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Path(Path),
    Context(Word),
}

/// How a value is tested.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Is(Vec<Glob>),
    Not(Vec<Glob>),
    Exists(bool),
    Match(Regex),
}

/// A rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) origin: Origin,
    pub(super) steps: Steps,
    /// The rule in the mapping's words.
    pub(super) words: String,
}

/// Where a rule's values come from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Path(Path),
    Context(Word),
    Value(String),
    Join(Box<Join>),
    Depends(Box<Depends>),
    First(Vec<Rule>),
    Concat(Vec<Rule>, String),
}

/// Other objects, chosen by equal values.
#[derive(Clone, Debug)]
pub(super) struct Join {
    /// Its number: joins with the same types, first path and module rule share it, and an index.
    pub(super) number: usize,
    pub(super) types: Vec<String>,
    pub(super) is_same_module: bool,
    /// Theirs and ours.
    pub(super) pairs: Vec<(Path, Subject)>,
    pub(super) read: Rule,
}

/// An object that ours depends on.
#[derive(Clone, Debug)]
pub(super) struct Depends {
    pub(super) number: usize,
    pub(super) types: Vec<String>,
    pub(super) read: Rule,
}

/// What is known of an object besides its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Key,
    TextKey,
    Name,
    Type,
    Mode,
    Address,
    Module,
    ModuleName,
    ModuleKey,
    ProviderSource,
    ProviderAlias,
    ProviderKey,
    Element,
}

/// What is done to the values, in this order.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub(super) parallel: Option<Parallel>,
    pub(super) lift: Option<Lift>,
    pub(super) tag: Option<Tag>,
    pub(super) split: Option<String>,
    pub(super) matches: Option<Regex>,
    pub(super) url_host: bool,
    pub(super) last: Option<String>,
    pub(super) before: Option<String>,
    pub(super) drop_last: Option<String>,
    pub(super) strip_prefix: Option<String>,
    pub(super) unless: Vec<Glob>,
    pub(super) table: Option<Table>,
    pub(super) unit: Option<Unit>,
    pub(super) unit_path: Option<Path>,
    pub(super) times: Option<Path>,
    pub(super) number: bool,
    pub(super) precedence: i32,
}

/// A list of names beside a list of values.
#[derive(Clone, Debug)]
pub(super) struct Parallel {
    pub(super) names: Path,
    pub(super) not: Vec<Glob>,
    pub(super) only: Vec<Glob>,
}

/// What to look for among tags.
#[derive(Clone, Debug)]
pub(super) enum Tag {
    Named(String),
    AnyOf(Vec<String>),
}

impl Word {
    pub(super) const ALL: [(&'static str, Self); 13] = [
        ("key", Self::Key),
        ("text_key", Self::TextKey),
        ("name", Self::Name),
        ("type", Self::Type),
        ("mode", Self::Mode),
        ("address", Self::Address),
        ("module", Self::Module),
        ("module_name", Self::ModuleName),
        ("module_key", Self::ModuleKey),
        ("provider_source", Self::ProviderSource),
        ("provider_alias", Self::ProviderAlias),
        ("provider_key", Self::ProviderKey),
        ("element", Self::Element),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, word)| word)
    }
}

impl Steps {
    /// Tells whether the steps leave every value as it is.
    pub(super) fn are_none(&self) -> bool {
        self.is_node_only()
            && self.split.is_none()
            && self.matches.is_none()
            && !self.url_host
            && self.last.is_none()
            && self.before.is_none()
            && self.drop_last.is_none()
            && self.strip_prefix.is_none()
            && self.unless.is_empty()
            && self.table.is_none()
            && self.unit.is_none()
            && self.unit_path.is_none()
            && self.times.is_none()
            && !self.number
    }

    fn is_node_only(&self) -> bool {
        self.parallel.is_none() && self.lift.is_none() && self.tag.is_none()
    }
}

/// Notes which members of `attributes` rules look at, by type: `X`, or `data.X`.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pub(super) wanted: HashMap<String, Wanted>,
    /// Types whose objects are looked at from others.
    pub(super) used: HashSet<String>,
    /// A number above those of all joins.
    pub(super) joins: usize,
}

impl Uses {
    pub(super) fn block(&mut self, own: &str, block: &Block) {
        for condition in &block.conditions {
            self.subject(own, &condition.subject);
        }
        if let Some(each) = &block.each {
            self.path(own, &each.path);
        }
        let fields = block.fields.iter().map(|(_, rules)| rules);
        for rule in fields.chain(block.addresses.iter().map(|(_, rules)| rules)).flatten() {
            self.rule(own, rule);
        }
    }

    fn rule(&mut self, own: &str, rule: &Rule) {
        match &rule.origin {
            Origin::Path(path) => self.path(own, path),
            Origin::Context(_) | Origin::Value(_) => {}
            Origin::Join(join) => {
                self.used.extend(join.types.iter().cloned());
                self.joins = self.joins.max(join.number + 1);
                for (theirs, ours) in &join.pairs {
                    for other in &join.types {
                        self.path(other, theirs);
                    }
                    self.subject(own, ours);
                }
                for other in &join.types {
                    self.rule(other, &join.read);
                }
            }
            Origin::Depends(depends) => {
                self.used.extend(depends.types.iter().cloned());
                for other in &depends.types {
                    self.rule(other, &depends.read);
                }
            }
            Origin::First(rules) | Origin::Concat(rules, _) => {
                for rule in rules {
                    self.rule(own, rule);
                }
            }
        }
        let names = rule.steps.parallel.as_ref().map(|parallel| &parallel.names);
        for path in names.into_iter().chain(&rule.steps.unit_path).chain(&rule.steps.times) {
            self.path(own, path);
        }
    }

    fn subject(&mut self, own: &str, subject: &Subject) {
        if let Subject::Path(path) = subject {
            self.path(own, path);
        }
    }

    fn path(&mut self, own: &str, path: &Path) {
        let wanted = self.wanted.entry(own.to_owned()).or_default();
        path.each_path(&mut |path| match path.first_member() {
            Some(name) => {
                wanted.names.insert(name.to_owned());
            }
            // `@` alone is an element, and `$` alone all there is.
            None => wanted.is_all |= path.root != super::path::Root::Element,
        });
    }
}
