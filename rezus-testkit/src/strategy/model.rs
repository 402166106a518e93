//! What a correct reader finds in a generated state.

use super::address::spell_key;

/// What a correct reader finds in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateModel {
    /// `serial`.
    pub serial: u64,
    /// `lineage`; `None` if the member is absent.
    pub lineage: Option<String>,
    /// `terraform_version`; `None` if the member is absent.
    pub writer: Option<String>,
    /// The objects in the order of their place.
    pub objects: Vec<ObjectModel>,
    /// The root module's outputs.
    pub outputs: Vec<OutputModel>,
    /// Every string that must not be shown anywhere, neither plain nor in Base64: what the state marks, and what is
    /// copied of it. Each occurs nowhere but where it was put as a secret or as a copy of one.
    pub secrets: Vec<String>,
}

/// One instance object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectModel {
    /// Its place: position in `resources[]`, then in `instances[]`.
    pub position: (usize, usize),
    /// The module instance's address; empty for the root.
    pub module: String,
    /// Managed or data.
    pub mode: Mode,
    /// The resource type.
    pub resource_type: String,
    /// The resource's name.
    pub name: String,
    /// The instance key.
    pub key: Option<Key>,
    /// The key of an old generation.
    pub deposed: Option<String>,
    /// The provider as the instance, else its block, spells it; empty if neither does.
    pub provider: String,
    /// Whether it is to be replaced.
    pub tainted: bool,
    /// Whether all of it must be hidden: a mark of it leads nowhere.
    pub hidden: bool,
    /// The strings of its own that must not be shown; copies of those of others are not among them.
    pub secrets: Vec<String>,
    /// Strings of it that a reader may see: they hold no secret. Empty where all of it is hidden.
    pub shown: Vec<String>,
}

/// One output of the root module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputModel {
    /// Its name.
    pub name: String,
    /// Whether it is marked sensitive.
    pub sensitive: bool,
}

/// Whether a resource is managed or only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Managed.
    Managed,
    /// A data source.
    Data,
}

/// An instance key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Of `count`.
    Number(i64),
    /// Of `for_each`, not escaped.
    Text(String),
}

impl ObjectModel {
    /// Returns the address as OpenTofu spells it. Written without a look at the core's spelling, and without a table of
    /// Unicode: the characters of generated keys are known.
    pub fn address(&self) -> String {
        let mut text = self.module.clone();
        if !text.is_empty() {
            text.push('.');
        }
        if self.mode == Mode::Data {
            text += "data.";
        }
        let Self { resource_type, name, .. } = self;
        format!("{text}{resource_type}.{name}{}", spell_key(self.key.as_ref()))
    }
}
