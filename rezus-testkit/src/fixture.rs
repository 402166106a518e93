//! The synthetic states under `fixtures/`, each with what a correct server makes of it. Their README says what the
//! members of an expectation mean.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the directory of the fixtures.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// One state and what is expected of it.
#[derive(Clone, Debug)]
pub struct StateFixture {
    /// Its name: that of the file without `.tfstate`.
    pub name: String,
    /// The state's bytes.
    pub body: Vec<u8>,
    /// What a correct server makes of it.
    pub expect: Expectation,
}

/// What a server does with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Stores and projects it.
    Project,
    /// Stores, locks and serves it; what it declares cannot be read.
    StoreOnly,
    /// Refuses it.
    Refuse,
    /// Zero bytes: no state at all.
    NoState,
}

/// How many of what a state holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Elements of `resources[]`.
    pub resource_blocks: u64,
    /// Objects that are not deposed.
    pub current_objects: u64,
    /// Objects that are.
    pub deposed_objects: u64,
    /// Current objects that are tainted.
    pub tainted_current: u64,
    /// Current objects of managed resources.
    pub managed_current: u64,
    /// Current objects of data sources.
    pub data_current: u64,
}

/// The content of a fixture's `.expect.json`.
#[derive(Clone, Debug)]
pub struct Expectation(pub Value);

impl Expectation {
    /// Returns what a server does with the state.
    ///
    /// # Panics
    ///
    /// If the file says something else than the README knows.
    pub fn accept(&self) -> Accept {
        match &self.0["accept"] {
            Value::Bool(true) => Accept::Project,
            Value::Bool(false) => Accept::Refuse,
            Value::String(text) if text == "store-only" => Accept::StoreOnly,
            other => {
                assert!(other.is_null(), "accept is {other}");
                Accept::NoState
            }
        }
    }

    /// Returns the kind of refusal, such as `not-a-state`; for a state that is refused.
    pub fn reject_code(&self) -> Option<&str> {
        self.0["reject"]["code"].as_str()
    }

    /// Returns the serial's digits.
    pub fn serial(&self) -> Option<&str> {
        self.0["format"]["serial"].as_str()
    }

    /// Returns the lineage.
    pub fn lineage(&self) -> Option<&str> {
        self.0["format"]["lineage"].as_str()
    }

    /// Returns `terraform_version`.
    pub fn writer(&self) -> Option<&str> {
        self.0["format"]["terraform_version"].as_str()
    }

    /// Returns how much of what there is; `None` for what is not projected and for empty states.
    pub fn counts(&self) -> Option<Counts> {
        let count = |name: &str| self.0["counts"][name].as_u64();
        Some(Counts {
            resource_blocks: count("resource_blocks")?,
            current_objects: count("current_objects")?,
            deposed_objects: count("deposed_objects")?,
            tainted_current: count("tainted_current")?,
            managed_current: count("managed_current")?,
            data_current: count("data_current")?,
        })
    }

    /// Returns the Machines, as the README describes them.
    pub fn machines(&self) -> &[Value] {
        self.list("machines")
    }

    /// Returns the addresses of the Machines.
    pub fn machine_addresses(&self) -> Vec<&str> {
        texts(self.list("machines"), "address")
    }

    /// Returns addresses of objects that are no Machines.
    pub fn not_machine_addresses(&self) -> Vec<&str> {
        texts(self.list("not_machines"), "address")
    }

    /// Returns address and deposed key of deposed objects.
    pub fn deposed(&self) -> Vec<(&str, &str)> {
        let deposed = self.list("deposed");
        texts(deposed, "address").into_iter().zip(texts(deposed, "deposed_key")).collect()
    }

    /// Returns the canaries that no answer, log or label may hold.
    pub fn secret_strings(&self) -> Vec<&str> {
        self.list("secret_strings").iter().filter_map(Value::as_str).collect()
    }

    /// Returns name, `sensitive_flag` and `must_hide` of each output.
    pub fn outputs(&self) -> Vec<(&str, bool, bool)> {
        let outputs = self.0["outputs"].as_object().into_iter().flatten();
        let is = |output: &Value, flag: &str| output[flag].as_bool() == Some(true);
        outputs
            .map(|(name, output)| (name.as_str(), is(output, "sensitive_flag"), is(output, "must_hide")))
            .collect()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().map_or(&[], Vec::as_slice)
    }
}

fn texts<'a>(list: &'a [Value], member: &str) -> Vec<&'a str> {
    list.iter().filter_map(|element| element[member].as_str()).collect()
}

/// Returns all fixtures, sorted by name.
///
/// # Panics
///
/// If they cannot be read: outside a checkout there are none.
pub fn states() -> Vec<StateFixture> {
    let files = std::fs::read_dir(directory()).expect("rezus-testkit/fixtures can be read");
    let mut names: Vec<String> = files
        .filter_map(|file| file.expect("a directory entry can be read").file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".tfstate").map(str::to_owned))
        .collect();
    names.sort();
    names.iter().map(|name| state(name)).collect()
}

/// Returns the fixture of that name.
///
/// # Panics
///
/// If there is none, or it cannot be read.
pub fn state(name: &str) -> StateFixture {
    let read = |suffix: &str| {
        std::fs::read(directory().join(format!("{name}{suffix}")))
            .expect("the fixture exists and can be read")
    };
    let expect = serde_json::from_slice(&read(".expect.json")).expect("an expectation is JSON");
    StateFixture { name: name.to_owned(), body: read(".tfstate"), expect: Expectation(expect) }
}
