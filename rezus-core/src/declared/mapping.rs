//! Mappings: which resource types become what, and where each field is. Data, not code.
//!
//! `docs/mappings.md` has the language.

mod built_in;
mod compile;
mod context;
mod dom;
mod eval;
pub mod extract;
mod in_force;
mod ip;
mod lift;
mod path;
mod rule;
mod run;
mod steps;
mod text;
mod visit;
mod world;
mod yaml;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::declared::index::IndexRow;
use crate::declared::secrets::{self, SecretRule};
use compile::{Compiled, Numbers};
use context::Provider as Configuration;
use dom::Wanted;
use extract::{Extract, Kind, Known};
pub use in_force::MappingsInForce;
use rule::{TypeRules, Uses};

/// A mapping file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingFile {
    /// The file's name, for messages.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What is wrong in a mapping file, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct MappingError {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub reason: String,
}

/// Where a mapping comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It comes with rezus.
    BuiltIn,
    /// The file of that name.
    File(String),
}

/// What a mapping says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The mapping's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Patterns of the provider sources that it is for.
    pub sources: Vec<String>,
    /// The types that it names, `X` or `data.X`, and what they become; none where it leaves them out on purpose.
    pub types: Vec<(String, Option<Kind>)>,
    /// Where it comes from.
    pub origin: Origin,
}

/// All mappings in force. Cheap to clone. The default is none at all.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    inner: Arc<Inner>,
}

/// Compiled mappings.
#[derive(Debug, Default)]
struct Inner {
    providers: Vec<Provider>,
    /// What is said of each type, `X` or `data.X`: by one mapping or by several.
    types: HashMap<String, Vec<TypeRules>>,
    /// Types whose objects rules look at from others.
    used: HashSet<String>,
    /// A number above those of all joins.
    joins: usize,
    /// Which attributes rules look at, by type.
    wanted: HashMap<String, Wanted>,
    secrets: HashMap<String, Vec<SecretRule>>,
    secrets_digest: OnceLock<[u8; 32]>,
}

impl Mappings {
    /// Returns the mappings that come with rezus.
    pub fn built_in() -> Self {
        // A test compiles them: there is nothing to refuse here.
        Self::compile(&[]).unwrap_or_default()
    }

    /// Compiles files, on top of the built-in mappings: one of the same name takes a built-in one's place, but for its
    /// secrets, which stay hidden.
    ///
    /// # Errors
    ///
    /// All that is wrong in the files, in their order.
    pub fn compile(files: &[MappingFile]) -> Result<Self, Vec<MappingError>> {
        let built_in = built_in::FILES.iter().map(|(name, text)| (Origin::BuiltIn, *name, *text));
        let given = files
            .iter()
            .map(|file| (Origin::File(file.name.clone()), file.name.as_str(), file.text.as_str()));
        let (mut numbers, mut errors, mut compiled) = (Numbers::default(), Vec::new(), Vec::new());
        for (origin, name, text) in built_in.chain(given) {
            if let Some(mapping) = compile::compile(name, text, &mut numbers, &mut errors) {
                compiled.push((origin, name, mapping));
            }
        }
        let mut inner = Inner::default();
        let names: HashSet<String> = compiled
            .iter()
            .filter(|(origin, ..)| *origin != Origin::BuiltIn)
            .map(|(.., mapping)| mapping.name.clone())
            .collect();
        for (origin, file, mapping) in compiled {
            inner.add_secrets(&mapping);
            if origin == Origin::BuiltIn && names.contains(&mapping.name) {
                continue;
            }
            inner.add(origin, file, mapping, &mut errors);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        inner.note_uses();
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns what each mapping says of itself, the built-in ones first.
    pub fn providers(&self) -> &[Provider] {
        &self.inner.providers
    }

    /// Tells whether a type, `X` or `data.X`, is known.
    ///
    /// `provider_source` is the provider's, such as `registry.opentofu.org/hetznercloud/hcloud`; it only matters where
    /// several mappings name the type, and may be empty.
    pub fn known(&self, resource_type: &str, provider_source: &str) -> Known {
        match self.inner.rules(resource_type, provider_source) {
            Some(rules) if !rules.blocks.is_empty() => Known::Mapped,
            Some(_) => Known::Ignored,
            None if self.inner.used.contains(resource_type) => Known::Ignored,
            None => Known::Unknown,
        }
    }

    /// Returns where instances of a type, without `data.`, hold secrets by what mappings say; for
    /// [`read_with`](crate::declared::document::read_with).
    pub fn secret_rules(&self, resource_type: &str) -> &[SecretRule] {
        self.inner.secret_rules(resource_type)
    }

    /// Returns the SHA-256 of all rules by which secrets are found, those that are built in included: what was masked
    /// by rules of another digest may show what these hide.
    pub fn secrets_digest(&self) -> [u8; 32] {
        *self.inner.secrets_digest.get_or_init(|| secrets::digest(&self.inner.secrets))
    }

    /// Tells whether these are the very same mappings, and not only equal ones.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Inner {
    fn add_secrets(&mut self, mapping: &Compiled) {
        for found in &mapping.types {
            let name = found.name.strip_prefix("data.").unwrap_or(&found.name);
            if !found.secrets.is_empty() {
                self.secrets.entry(name.to_owned()).or_default().extend(found.secrets.iter().cloned());
            }
        }
    }

    fn add(&mut self, origin: Origin, file: &str, mapping: Compiled, errors: &mut Vec<MappingError>) {
        let mut fault = |line, reason| errors.push(MappingError { file: file.to_owned(), line, reason });
        if self.providers.iter().any(|known| known.name == mapping.name) {
            fault(1, format!("another file has the mapping {:?} too", mapping.name));
            return;
        }
        let mut types = Vec::new();
        for mut found in mapping.types {
            let known = self.types.entry(found.name.clone()).or_default();
            for other in known.iter().filter_map(|rules| self.providers.get(rules.provider)) {
                if is_overlapping(&other.sources, &mapping.sources) {
                    let reason =
                        format!("the mapping {:?} has {} too, and sources overlap", other.name, found.name);
                    fault(found.line, reason);
                }
            }
            if types.iter().any(|(name, _)| *name == found.name) {
                fault(found.line, format!("{} is there twice", found.name));
            }
            types.push((found.name, found.rules.blocks.first().map(|block| block.kind)));
            found.rules.provider = self.providers.len();
            known.push(found.rules);
        }
        let Compiled { name, description, sources, .. } = mapping;
        self.providers.push(Provider { name, description, sources, types, origin });
    }

    fn note_uses(&mut self) {
        let mut uses = Uses::default();
        for (name, rules) in &self.types {
            for block in rules.iter().flat_map(|rules| &rules.blocks) {
                uses.block(name, block);
            }
        }
        self.wanted = uses.wanted;
        self.used = uses.used;
        self.joins = uses.joins;
    }

    fn rules(&self, resource_type: &str, provider_source: &str) -> Option<&TypeRules> {
        let rules = self.types.get(resource_type)?;
        if let [only] = rules.as_slice() {
            return Some(only);
        }
        let is_any = !Configuration::is_known(provider_source);
        rules.iter().find(|rules| is_any || rules.sources.iter().any(|source| source.fits(provider_source)))
    }

    fn secret_rules(&self, resource_type: &str) -> &[SecretRule] {
        self.secrets.get(resource_type).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Tells whether some source can fit a pattern of each list.
fn is_overlapping(left: &[String], right: &[String]) -> bool {
    let can_meet = |left: &str, right: &str| {
        let mut parts = left.split('/').zip(right.split('/'));
        parts.all(|(a, b)| a.contains('*') || b.contains('*') || a.eq_ignore_ascii_case(b))
    };
    left.iter().any(|left| right.iter().any(|right| can_meet(left, right)))
}

/// Runs all rules over a state.
pub(in crate::declared) fn run(mappings: &Mappings, body: &[u8], rows: &[IndexRow]) -> Vec<Extract> {
    let bound = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = |row: &IndexRow| body.get(bound(row.span.start)..bound(row.span.end)).unwrap_or_default();
    run::run(&mappings.inner, rows.iter().map(|row| (row, bytes(row))).collect())
}

/// Runs all rules over some objects of a state, given by their rows and bytes. Where the list has all rows that an
/// extract of [`extract`](extract::extract) names in `read`, that extract is made again, but for the rows' numbers.
pub fn run_some(mappings: &Mappings, objects: &[(&IndexRow, &[u8])]) -> Vec<Extract> {
    run::run(&mappings.inner, objects.to_vec())
}

#[cfg(test)]
mod tests;
