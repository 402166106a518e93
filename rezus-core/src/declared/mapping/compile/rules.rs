//! Fields, rules and their steps.

use regex_lite::{Regex, RegexBuilder};

use super::{ADDRESS_LISTS, Compiler, FIELDS};
use crate::declared::mapping::extract::Field;
use crate::declared::mapping::lift::Lift;
use crate::declared::mapping::rule::{
    Block, Depends, Join, Origin, Parallel, Rule, Steps, Subject, Tag, Word,
};
use crate::declared::mapping::text::{Table, Unit};
use crate::declared::mapping::yaml::{Value, Yaml};

/// How deep rules may nest in rules, and joins in joins.
const DEEPEST_RULE: usize = 8;
const DEEPEST_JOIN: usize = 3;
const LONGEST_EXPRESSION: usize = 500;

const ORIGINS: [&str; 7] = ["path", "context", "value", "join", "depends", "first", "concat"];

impl Compiler<'_> {
    pub(super) fn all_fields(&mut self, yaml: &Yaml, block: &mut Block) {
        let Value::Map(members) = &yaml.value else {
            self.fault(yaml.line, "fields should be a map");
            return;
        };
        for (name, rules) in members {
            let text = name.text().unwrap_or_default();
            if text == "addresses" {
                self.fields = "addresses";
                let names = ADDRESS_LISTS.map(|(name, _)| name);
                let lists = self.members(rules, "addresses", names);
                for (list, (_, which)) in lists.into_iter().zip(ADDRESS_LISTS) {
                    if let Some(list) = list {
                        block.addresses.push((which, self.rule_list(list, 0, 0)));
                    }
                }
                continue;
            }
            let Some((known, field)) = FIELDS.into_iter().find(|(known, _)| *known == text) else {
                let known = FIELDS.map(|(name, _)| name).join(", ");
                self.fault(name.line, format!("unknown field {text:?}: known are {known}, addresses"));
                continue;
            };
            self.fields = known;
            let mut found = self.rule_list(rules, 0, 0);
            for rule in &mut found {
                self.finish(rule, field, rules.line);
            }
            block.fields.push((field, found));
        }
        block.addresses.sort_by_key(|(which, _)| *which);
    }

    /// Adds what a field asks of its rules.
    fn finish(&mut self, rule: &mut Rule, field: Field, line: u64) {
        let (table, values): (_, &[&str]) = match field {
            Field::Role => (Table::Role, &["controlplane", "worker"]),
            Field::Power => (Table::Power, &["running", "stopped", "changing"]),
            Field::Cpus | Field::MemoryMib => {
                rule.steps.number = true;
                return;
            }
            _ => return,
        };
        if let Some(Table::Own { entries, other }) = &rule.steps.table {
            let targets = entries.iter().map(|(_, to)| to).chain(other);
            let odd: Vec<String> = targets.filter(|to| !values.contains(&to.as_str())).cloned().collect();
            for odd in odd {
                self.fault(
                    line,
                    format!("{odd:?} in the table of {}: known are {}", self.fields, values.join(", ")),
                );
            }
        }
        rule.steps.table.get_or_insert(table);
    }

    fn rule_list(&mut self, yaml: &Yaml, depth: usize, joins: usize) -> Vec<Rule> {
        let what = self.fields;
        self.list(yaml, what).iter().filter_map(|rule| self.rule(rule, depth, joins)).collect()
    }

    fn rule(&mut self, yaml: &Yaml, depth: usize, joins: usize) -> Option<Rule> {
        self.rules += 1;
        if depth > DEEPEST_RULE {
            self.fault(yaml.line, format!("rules nest deeper than {DEEPEST_RULE}"));
            return None;
        }
        if let Some(text) = yaml.text() {
            let path = self.path(yaml, "a rule")?;
            let words = text.to_owned();
            return Some(Rule { origin: Origin::Path(path), steps: Steps::default(), words });
        }
        let names = [
            "path",
            "context",
            "value",
            "join",
            "depends",
            "first",
            "concat",
            "with",
            "parallel",
            "lift",
            "tag",
            "split",
            "match",
            "url_host",
            "last",
            "before",
            "drop_last",
            "strip_prefix",
            "unless",
            "table",
            "unit",
            "unit_path",
            "times",
            "number",
            "precedence",
        ];
        let found = self.members(yaml, "a rule", names);
        let get = |name: &str| {
            let at = names.iter().position(|known| *known == name);
            at.and_then(|at| found.get(at).copied().flatten())
        };
        let origins: Vec<(&str, &Yaml)> =
            ORIGINS.into_iter().filter_map(|name| get(name).map(|yaml| (name, yaml))).collect();
        let [(origin, value)] = origins.as_slice() else {
            self.fault(yaml.line, format!("a rule has exactly one of {}", ORIGINS.join(", ")));
            return None;
        };
        if let (Some(with), true) = (get("with"), *origin != "concat") {
            self.fault(with.line, "with belongs to concat");
        }
        let mut words = match value.text() {
            Some(text) if *origin == "path" => text.to_owned(),
            Some(text) => format!("{origin} {text}"),
            None => (*origin).to_owned(),
        };
        let origin = match *origin {
            "path" => Origin::Path(self.path(value, "path")?),
            "context" => Origin::Context(self.word(value)?),
            "value" => Origin::Value(self.text(value, "value")?.to_owned()),
            "join" => {
                let join = self.join(value, depth, joins)?;
                words = format!("join {} read {}", join.types.join(" or "), join.read.words);
                Origin::Join(Box::new(join))
            }
            "depends" => {
                let depends = self.depends(value, depth, joins)?;
                words = format!("depends {} read {}", depends.types.join(" or "), depends.read.words);
                Origin::Depends(Box::new(depends))
            }
            "first" => Origin::First(self.rule_list(value, depth + 1, joins)),
            _ => {
                let parts = self.rule_list(value, depth + 1, joins);
                let with = get("with").and_then(|with| self.text(with, "with")).unwrap_or_default();
                words = format!(
                    "concat {}",
                    parts.iter().map(|part| part.words.as_str()).collect::<Vec<_>>().join(" ")
                );
                Origin::Concat(parts, with.to_owned())
            }
        };
        let is_path = matches!(origin, Origin::Path(_));
        for name in ["parallel", "lift"] {
            if let (Some(step), false) = (get(name), is_path) {
                self.fault(step.line, format!("{name} belongs to a path"));
            }
        }
        let steps = self.steps(&get)?;
        for (name, step) in
            [("tag", get("tag")), ("match", get("match")), ("table", get("table")), ("unit", get("unit"))]
        {
            if let Some(text) = step.and_then(Yaml::text) {
                words = format!("{words} {name} {text}");
            }
        }
        Some(Rule { origin, steps, words })
    }

    fn steps<'y>(&mut self, get: &dyn Fn(&str) -> Option<&'y Yaml>) -> Option<Steps> {
        let mut steps = Steps::default();
        if let Some(yaml) = get("parallel") {
            let [names, not, only] = self.members(yaml, "parallel", ["names", "not", "only"]);
            let Some(names) = names else {
                self.fault(yaml.line, "parallel has no names");
                return None;
            };
            steps.parallel = Some(Parallel {
                names: self.path(names, "names")?,
                not: not.map(|globs| self.globs(globs, "not")).unwrap_or_default(),
                only: only.map(|globs| self.globs(globs, "only")).unwrap_or_default(),
            });
        }
        if let Some(yaml) = get("lift") {
            steps.lift = Some(self.lift(yaml)?);
        }
        if let Some(yaml) = get("tag") {
            steps.tag = Some(if let Some(name) = yaml.text() {
                Tag::Named(name.to_owned())
            } else {
                let [words] = self.members(yaml, "tag", ["any_of"]);
                Tag::AnyOf(words.map(|words| self.texts(words, "any_of")).unwrap_or_default())
            });
        }
        if let Some(yaml) = get("match") {
            steps.matches = Some(self.regex(yaml, 1)?);
        }
        for (name, slot) in [
            ("split", &mut steps.split),
            ("last", &mut steps.last),
            ("before", &mut steps.before),
            ("drop_last", &mut steps.drop_last),
            ("strip_prefix", &mut steps.strip_prefix),
        ] {
            let Some(yaml) = get(name) else { continue };
            let text = self.text(yaml, name)?;
            if text.is_empty() {
                self.fault(yaml.line, format!("{name} is empty"));
            }
            *slot = Some(text.to_owned());
        }
        steps.url_host = get("url_host").is_some_and(|flag| self.flag(flag, "url_host"));
        steps.number = get("number").is_some_and(|flag| self.flag(flag, "number"));
        steps.unless = get("unless").map(|globs| self.globs(globs, "unless")).unwrap_or_default();
        if let Some(yaml) = get("table") {
            steps.table = Some(self.table(yaml)?);
        }
        if let Some(yaml) = get("unit") {
            let text = self.text(yaml, "unit")?;
            steps.unit = Unit::named(text);
            if steps.unit.is_none() {
                self.fault(yaml.line, format!("unknown unit {text:?}"));
            }
        }
        steps.unit_path = get("unit_path").and_then(|path| self.path(path, "unit_path"));
        steps.times = get("times").and_then(|path| self.path(path, "times"));
        if let Some(yaml) = get("precedence") {
            match yaml.text().and_then(|text| text.parse().ok()) {
                Some(number) => steps.precedence = number,
                None => self.fault(yaml.line, "precedence should be a whole number"),
            }
        }
        Some(steps)
    }

    fn lift(&mut self, yaml: &Yaml) -> Option<Lift> {
        let [decode, path] = self.members(yaml, "lift", ["decode", "yaml"]);
        let is_base64 = match decode.map(|decode| decode.text()) {
            None | Some(Some("plain")) => false,
            Some(Some("base64")) => true,
            Some(_) => {
                self.fault(yaml.line, "decode should be plain or base64");
                return None;
            }
        };
        let text = path.and_then(Yaml::text).unwrap_or_default();
        Lift::new(is_base64, text).map_err(|reason| self.fault(yaml.line, reason)).ok()
    }

    fn table(&mut self, yaml: &Yaml) -> Option<Table> {
        match (&yaml.value, yaml.text()) {
            (_, Some("role")) => Some(Table::Role),
            (_, Some("power")) => Some(Table::Power),
            (Value::Map(members), _) => {
                let (mut entries, mut other) = (Vec::new(), None);
                for (from, to) in members {
                    let (from, to) = (self.text(from, "a table's name")?, self.text(to, "a table's value")?);
                    if from == "*" {
                        other = Some(to.to_owned());
                    } else {
                        entries.push((from.to_lowercase(), to.to_owned()));
                    }
                }
                Some(Table::Own { entries, other })
            }
            _ => {
                self.fault(yaml.line, "unknown table: role, power, or a map");
                None
            }
        }
    }

    pub(super) fn regex(&mut self, yaml: &Yaml, captures: usize) -> Option<Regex> {
        let text = self.text(yaml, "match")?;
        if text.len() > LONGEST_EXPRESSION {
            self.fault(yaml.line, format!("an expression longer than {LONGEST_EXPRESSION} characters"));
            return None;
        }
        match RegexBuilder::new(text).size_limit(256 * 1024).nest_limit(20).build() {
            Ok(regex) if captures == 0 || regex.captures_len() == captures + 1 => Some(regex),
            Ok(_) => {
                self.fault(
                    yaml.line,
                    format!("{text:?} should have exactly one capture, ( ); (?: ) is none"),
                );
                None
            }
            Err(error) => {
                self.fault(yaml.line, format!("bad expression {text:?}: {error}"));
                None
            }
        }
    }

    fn types(&mut self, yaml: Option<&Yaml>, line: u64) -> Vec<String> {
        if let Some(yaml) = yaml {
            return self.texts(yaml, "type");
        }
        self.fault(line, "type is missing");
        Vec::new()
    }

    /// Compiles the rule that is read in another object, which has no elements.
    fn read(&mut self, yaml: Option<&Yaml>, line: u64, depth: usize, joins: usize) -> Option<Rule> {
        let Some(yaml) = yaml else {
            self.fault(line, "read is missing");
            return None;
        };
        if joins >= DEEPEST_JOIN {
            self.fault(line, format!("joins nest deeper than {DEEPEST_JOIN}"));
            return None;
        }
        let has_each = std::mem::take(&mut self.has_each);
        let read = self.rule(yaml, depth + 1, joins + 1);
        self.has_each = has_each;
        read
    }

    fn join(&mut self, yaml: &Yaml, depth: usize, joins: usize) -> Option<Join> {
        let [types, pairs, module, read] = self.members(yaml, "join", ["type", "where", "module", "read"]);
        let types = self.types(types, yaml.line);
        let is_same_module = match module.map(|module| module.text()) {
            None | Some(Some("any")) => false,
            Some(Some("same")) => true,
            Some(_) => {
                self.fault(yaml.line, "module should be same or any");
                false
            }
        };
        let Some(Value::Map(members)) = pairs.map(|pairs| &pairs.value) else {
            self.fault(yaml.line, "where is missing: {THEIRS: OURS}");
            return None;
        };
        let mut found = Vec::new();
        for (theirs, ours) in members {
            let has_each = std::mem::take(&mut self.has_each);
            let theirs = self.path(theirs, "where");
            self.has_each = has_each;
            found.push((theirs?, self.ours(ours)?));
        }
        let Some((theirs, _)) = found.first() else {
            self.fault(yaml.line, "where is empty");
            return None;
        };
        let key = format!("{}\n{}\n{is_same_module}", types.join(" "), theirs.text);
        let next = self.numbers.joins.len();
        let number = *self.numbers.joins.entry(key).or_insert(next);
        let read = self.read(read, yaml.line, depth, joins)?;
        Some(Join { number, types, is_same_module, pairs: found, read })
    }

    fn ours(&mut self, yaml: &Yaml) -> Option<Subject> {
        let text = self.text(yaml, "where")?;
        if let Some(word) = text.strip_prefix("context.") {
            let word = Word::named(word).filter(|word| *word != Word::Element || self.has_each);
            if word.is_none() {
                self.fault(yaml.line, format!("unknown context in {text:?}"));
            }
            return word.map(Subject::Context);
        }
        self.path(yaml, "where").map(Subject::Path)
    }

    fn depends(&mut self, yaml: &Yaml, depth: usize, joins: usize) -> Option<Depends> {
        let [types, read] = self.members(yaml, "depends", ["type", "read"]);
        let types = self.types(types, yaml.line);
        let read = self.read(read, yaml.line, depth, joins)?;
        self.numbers.depends += 1;
        Some(Depends { number: self.numbers.depends, types, read })
    }
}
