//! Compiles mapping files, and says of each fault where it is.

mod rules;

use std::collections::HashMap;

use super::extract::{Field, Kind};
use super::path::{Path, Root, Step};
use super::rule::{AddressList, Block, Condition, Each, Subject, Test, TypeRules, Word};
use super::text::Glob;
use super::yaml::{Value, Yaml};
use super::{MappingError, yaml};
use crate::declared::secrets::{RuleStep, SecretKind, SecretRule};

const MOST_TYPES: usize = 500;
const MOST_RULES: usize = 4_000;
/// How many rules, conditions or texts a list may have.
const MOST_IN_LIST: usize = 32;

/// How much of a wrong word is repeated.
const SHOWN: usize = 60;

const FIELDS: [(&str, Field); 16] = [
    ("name", Field::Name),
    ("hostname", Field::Hostname),
    ("role", Field::Role),
    ("nodeGroup", Field::NodeGroup),
    ("providerID", Field::ProviderId),
    ("instanceType", Field::InstanceType),
    ("region", Field::Region),
    ("zone", Field::Zone),
    ("image", Field::Image),
    ("cpus", Field::Cpus),
    ("memoryMiB", Field::MemoryMib),
    ("recordedPower", Field::Power),
    ("clusterName", Field::ClusterName),
    ("endpoint", Field::Endpoint),
    ("kubernetesVersion", Field::KubernetesVersion),
    ("talosVersion", Field::TalosVersion),
];
const ADDRESS_LISTS: [(&str, AddressList); 5] = [
    ("internal", AddressList::Internal),
    ("external", AddressList::External),
    ("mixed", AddressList::Mixed),
    ("hostname", AddressList::Hostname),
    ("shared", AddressList::Shared),
];

/// Returns the field's name in the API.
pub(super) fn field_name(field: Field) -> &'static str {
    FIELDS.into_iter().find(|(_, known)| *known == field).map_or("", |(name, _)| name)
}

/// A compiled file.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) sources: Vec<String>,
    pub(super) types: Vec<CompiledType>,
}

/// A type of a compiled file.
#[derive(Debug)]
pub(super) struct CompiledType {
    /// `X`, or `data.X`.
    pub(super) name: String,
    pub(super) line: u64,
    pub(super) rules: TypeRules,
    pub(super) secrets: Vec<SecretRule>,
}

/// What numbers joins; shared by all files.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) joins: HashMap<String, usize>,
    pub(super) depends: usize,
}

/// Compiles one file; faults are added to `errors`.
pub(super) fn compile(
    file: &str,
    text: &str,
    numbers: &mut Numbers,
    errors: &mut Vec<MappingError>,
) -> Option<Compiled> {
    let top = match yaml::read(file, text) {
        Ok(top) => top,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    let before = errors.len();
    let mut compiler = Compiler { file, errors, numbers, rules: 0, has_each: false, fields: "" };
    let compiled = compiler.file(&top);
    if errors.len() == before { compiled } else { None }
}

/// Where a compilation stands.
struct Compiler<'c> {
    file: &'c str,
    errors: &'c mut Vec<MappingError>,
    numbers: &'c mut Numbers,
    rules: usize,
    /// Whether the block has an `each`: its paths may begin with `@` or `^`.
    has_each: bool,
    /// What is being compiled, for messages.
    fields: &'static str,
}

impl Compiler<'_> {
    fn fault(&mut self, line: u64, reason: impl Into<String>) {
        self.errors.push(MappingError { file: self.file.to_owned(), line, reason: reason.into() });
    }

    /// Takes a map apart; each of its names must be known.
    fn members<'y, const N: usize>(
        &mut self,
        yaml: &'y Yaml,
        what: &str,
        names: [&str; N],
    ) -> [Option<&'y Yaml>; N] {
        let mut found = [None; N];
        let Value::Map(members) = &yaml.value else {
            self.fault(yaml.line, format!("{what} is {}, and should be a map", yaml.kind()));
            return found;
        };
        for (name, value) in members {
            let text = name.text().unwrap_or_default();
            let place = names.iter().position(|known| *known == text);
            match place.and_then(|place| found.get_mut(place)) {
                Some(slot) => *slot = Some(value),
                None => self.fault(
                    name.line,
                    format!("unknown field {text:?} in {what}: known are {}", names.join(", ")),
                ),
            }
        }
        found
    }

    fn text<'y>(&mut self, yaml: &'y Yaml, what: &str) -> Option<&'y str> {
        let text = yaml.text();
        if text.is_none() {
            self.fault(yaml.line, format!("{what} is {}, and should be a text", yaml.kind()));
        }
        text
    }

    /// Takes a text for a list of one.
    fn list<'y>(&mut self, yaml: &'y Yaml, what: &str) -> &'y [Yaml] {
        let list = match &yaml.value {
            Value::List(list) => list,
            Value::Text(_) | Value::Map(_) => std::slice::from_ref(yaml),
            Value::Null => &[],
        };
        if list.is_empty() {
            self.fault(yaml.line, format!("{what} is empty"));
        }
        if list.len() > MOST_IN_LIST {
            self.fault(yaml.line, format!("{what} has more than {MOST_IN_LIST} entries"));
        }
        list
    }

    fn texts(&mut self, yaml: &Yaml, what: &str) -> Vec<String> {
        let list = self.list(yaml, what);
        list.iter().filter_map(|text| self.text(text, what).map(str::to_owned)).collect()
    }

    fn globs(&mut self, yaml: &Yaml, what: &str) -> Vec<Glob> {
        self.texts(yaml, what).iter().map(|pattern| Glob::new(pattern)).collect()
    }

    fn flag(&mut self, yaml: &Yaml, what: &str) -> bool {
        match yaml.text() {
            Some("true") => true,
            Some("false") => false,
            _ => {
                self.fault(yaml.line, format!("{what} should be true or false"));
                false
            }
        }
    }

    /// Reads a path of the object that the block, or the join, is about.
    fn path(&mut self, yaml: &Yaml, what: &str) -> Option<Path> {
        let text = self.text(yaml, what)?;
        match Path::parse(text) {
            Ok(path) if path.root == Root::Attributes || self.has_each => Some(path),
            Ok(_) => {
                self.fault(yaml.line, format!("{text:?}: only an each block has paths from @ or ^"));
                None
            }
            Err(reason) => {
                self.fault(yaml.line, reason);
                None
            }
        }
    }

    fn file(&mut self, top: &Yaml) -> Option<Compiled> {
        let [name, description, sources, types] =
            self.members(top, "a mapping", ["mapping", "description", "sources", "types"]);
        let Some(name) = name else {
            self.fault(top.line, "the mapping's name is missing: mapping: NAME");
            return None;
        };
        let line = name.line;
        let name = self.text(name, "mapping")?.to_owned();
        let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || name.len() > 63 || !name.bytes().all(is_part) || name.starts_with('-') {
            self.fault(line, format!("{name:?} is no name: a-z, 0-9 and -, at most 63"));
        }
        let description =
            description.and_then(|text| self.text(text, "description")).unwrap_or_default().to_owned();
        let mut patterns = Vec::new();
        for source in sources.map(|list| self.list(list, "sources")).unwrap_or_default() {
            let Some(text) = self.text(source, "a source") else { continue };
            if text.split('/').count() == 3 && !text.split('/').any(str::is_empty) {
                patterns.push(text.to_owned());
            } else {
                self.fault(source.line, format!("{text:?} is no source: HOST/NAMESPACE/TYPE"));
            }
        }
        if patterns.is_empty() {
            patterns.push("*/*/*".to_owned());
        }
        let globs: Vec<Glob> = patterns.iter().map(|pattern| Glob::new(pattern)).collect();
        let mut compiled = Vec::new();
        match types.map(|types| (&types.value, types.line)) {
            Some((Value::Map(members), line)) => {
                if members.len() > MOST_TYPES {
                    self.fault(line, format!("more than {MOST_TYPES} types"));
                }
                for (name, rules) in members.iter().take(MOST_TYPES) {
                    compiled.extend(self.resource_type(name, rules, &globs));
                }
            }
            Some((_, line)) => self.fault(line, "types should be a map"),
            None => self.fault(top.line, "types is missing"),
        }
        if self.rules > MOST_RULES {
            self.fault(top.line, format!("more than {MOST_RULES} rules"));
        }
        Some(Compiled { name, description, sources: patterns, types: compiled })
    }

    fn resource_type(&mut self, name: &Yaml, rules: &Yaml, sources: &[Glob]) -> Option<CompiledType> {
        let line = name.line;
        let name = self.text(name, "a type's name")?.to_owned();
        let mut found = CompiledType {
            name,
            line,
            rules: TypeRules { provider: 0, sources: sources.to_vec(), blocks: Vec::new() },
            secrets: Vec::new(),
        };
        if rules.text() == Some("ignore") {
            return Some(found);
        }
        if let Some(text) = rules.text() {
            let text: String = text.chars().take(SHOWN).collect();
            self.fault(
                rules.line,
                format!("a type is a map, a list of maps or the word ignore, not {text:?}"),
            );
            return None;
        }
        for block in self.list(rules, "a type") {
            let block = self.block(block, &mut found);
            found.rules.blocks.extend(block);
        }
        Some(found)
    }

    fn block(&mut self, yaml: &Yaml, found: &mut CompiledType) -> Option<Block> {
        let names = ["kind", "schema", "where", "each", "fields", "secrets", "documents"];
        let [kind, schema, conditions, each, fields, secrets, documents] =
            self.members(yaml, "a type", names);
        for (list, kind) in [(secrets, SecretKind::Credential), (documents, SecretKind::Document)] {
            for path in list.map(|list| self.list(list, "secrets")).unwrap_or_default() {
                let rule = self.secret(path, kind);
                found.secrets.extend(rule);
            }
        }
        let Some(kind) = kind else {
            self.fault(yaml.line, "kind is missing: Machine, TalosMachine, Cluster or Ignore");
            return None;
        };
        let is_data = found.name.starts_with("data.");
        let kind = match kind.text() {
            Some("Ignore") => {
                if let Some(extra) = fields.or(each).or(conditions) {
                    self.fault(extra.line, "kind: Ignore takes secrets and documents, and no more");
                }
                return None;
            }
            Some("Machine") if !is_data => Kind::Machine,
            Some("TalosMachine") if !is_data => Kind::TalosMachine,
            Some("Machine" | "TalosMachine") => {
                self.fault(kind.line, "a data source is no machine");
                return None;
            }
            Some("Cluster") => Kind::Cluster,
            unknown => {
                let unknown: String = unknown.unwrap_or(kind.kind()).chars().take(SHOWN).collect();
                let reason =
                    format!("unknown kind {unknown:?}: known are Machine, TalosMachine, Cluster, Ignore");
                self.fault(kind.line, reason);
                return None;
            }
        };
        let schema = schema.and_then(|range| self.schema(range));
        self.has_each = false;
        let each = each.and_then(|each| self.each(each));
        let mut block =
            Block { kind, schema, conditions: Vec::new(), each, fields: Vec::new(), addresses: Vec::new() };
        for condition in conditions.map(|list| self.list(list, "where")).unwrap_or_default() {
            block.conditions.extend(self.condition(condition));
        }
        self.has_each = block.each.is_some();
        if let Some(fields) = fields {
            self.all_fields(fields, &mut block);
        }
        self.has_each = false;
        Some(block)
    }

    fn schema(&mut self, yaml: &Yaml) -> Option<(u64, u64)> {
        let range: Vec<u64> =
            self.texts(yaml, "schema").iter().filter_map(|number| number.parse().ok()).collect();
        match range.as_slice() {
            [from, to] if from <= to => Some((*from, *to)),
            _ => {
                self.fault(yaml.line, "schema should be [FROM, TO]");
                None
            }
        }
    }

    fn each(&mut self, yaml: &Yaml) -> Option<Each> {
        if yaml.text().is_some() {
            return Some(Each { path: self.path(yaml, "each")?, key: None });
        }
        let [path, key] = self.members(yaml, "each", ["path", "key"]);
        let Some(path) = path else {
            self.fault(yaml.line, "each has no path");
            return None;
        };
        let path = self.path(path, "each")?;
        self.has_each = true;
        let key = key.and_then(|key| self.path(key, "key"));
        self.has_each = false;
        Some(Each { path, key })
    }

    fn condition(&mut self, yaml: &Yaml) -> Option<Condition> {
        let names = ["path", "context", "is", "not", "exists", "match"];
        let [path, context, is, not, exists, matches] = self.members(yaml, "a condition", names);
        let subject = match (path, context) {
            (Some(path), None) => Subject::Path(self.path(path, "path")?),
            (None, Some(word)) => Subject::Context(self.word(word)?),
            _ => {
                self.fault(yaml.line, "a condition has either a path or a context");
                return None;
            }
        };
        let mut tests = Vec::new();
        tests.extend(is.map(|texts| Test::Is(self.globs(texts, "is"))));
        tests.extend(not.map(|texts| Test::Not(self.globs(texts, "not"))));
        tests.extend(exists.map(|flag| Test::Exists(self.flag(flag, "exists"))));
        if let Some(expression) = matches {
            tests.push(Test::Match(self.regex(expression, 0)?));
        }
        if tests.len() != 1 {
            self.fault(yaml.line, "a condition has exactly one of is, not, exists, match");
        }
        Some(Condition { subject, test: tests.pop()? })
    }

    fn word(&mut self, yaml: &Yaml) -> Option<Word> {
        let text = self.text(yaml, "context")?;
        let word = Word::named(text);
        if word.is_none() || (word == Some(Word::Element) && !self.has_each) {
            let known = Word::ALL.map(|(name, _)| name).join(", ");
            self.fault(yaml.line, format!("unknown context {text:?}: known are {known} (element: in each)"));
            return None;
        }
        word
    }

    fn secret(&mut self, yaml: &Yaml, kind: SecretKind) -> Option<SecretRule> {
        self.has_each = false;
        let path = self.path(yaml, "a secret's path")?;
        let mut steps = Vec::new();
        for step in &path.steps {
            match step {
                Step::Member(name) => steps.push(RuleStep::Member(name.clone().into())),
                Step::AnyMember => steps.push(RuleStep::Any),
                Step::AllElements => {}
                Step::Element(_) | Step::Filter(_) => {
                    self.fault(
                        yaml.line,
                        format!("{:?}: a secret's path has members, .* and [*]", path.text),
                    );
                    return None;
                }
            }
        }
        if steps.is_empty() {
            steps.push(RuleStep::Any);
        }
        Some(SecretRule { path: steps, kind })
    }
}
