//! What the rules of a mapping found in one object, before machines are put together from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::declared::mapping::Mappings;
use crate::declared::resource::{NodeAddress, Problem, Spot};

/// A field that a mapping can fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// `name`
    Name,
    /// `hostname`
    Hostname,
    /// `role`: `controlplane` or `worker`, after the rule's table.
    Role,
    /// `nodeGroup`: the group's name as the provider spells it.
    NodeGroup,
    /// `providerID`
    ProviderId,
    /// `instanceType`
    InstanceType,
    /// `region`
    Region,
    /// `zone`
    Zone,
    /// `image`
    Image,
    /// `cpus`: a decimal.
    Cpus,
    /// `memoryMiB`: a decimal, in MiB.
    MemoryMib,
    /// `recordedPower`: `running`, `stopped` or `changing`, after the rule's table.
    Power,
    /// `clusterName`
    ClusterName,
    /// `endpoint`
    Endpoint,
    /// `kubernetesVersion`
    KubernetesVersion,
    /// `talosVersion`
    TalosVersion,
}

/// A value that a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The value, as text; numbers are canonical decimals.
    pub value: String,
    /// Where it was read.
    pub source: Spot,
    /// How much a rule of this kind is to be believed when two objects of one machine disagree: greater wins.
    pub precedence: i32,
}

/// What an object is, by its type's mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A machine.
    Machine,
    /// A Talos resource that describes the machine with one of its addresses, and is a machine of its own where no
    /// other has it.
    TalosMachine,
    /// Facts about the cluster as a whole.
    Cluster,
}

/// What was found in one object, or in one element of it where the mapping says "for each".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extract {
    /// Which row of the index the object is: its place in the list of rows.
    pub row: usize,
    /// Which element of the object, where there are several; the element's key or place as text.
    pub element: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// The mapping's name.
    pub mapping: Arc<str>,
    /// The fields that were found.
    pub fields: BTreeMap<Field, Found>,
    /// The addresses that were found, each once, with their sources. Loopback, link-local, unspecified and what the
    /// mapping leaves out are gone already.
    pub addresses: Vec<(NodeAddress, Spot)>,
    /// IP addresses that are the cluster's and not this machine's alone (a virtual IP): to be dropped from machines.
    pub shared_addresses: Vec<String>,
    /// Fields that could not be read.
    pub problems: Vec<Problem>,
    /// The rows of the objects that were read, this one first, each once.
    pub read: Vec<usize>,
}

/// Whether a type is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// A mapping makes something of it.
    Mapped,
    /// A mapping leaves it out on purpose, or uses it only through others.
    Ignored,
    /// No mapping names it.
    Unknown,
}

/// Runs all rules over a state. `rows` and `body` are of one document. Order of rows and input order do not matter but
/// for `row` and `read`. Pure, total and bounded: an odd attribute costs its field.
pub fn extract(mappings: &Mappings, body: &[u8], rows: &[crate::declared::index::IndexRow]) -> Vec<Extract> {
    crate::declared::mapping::run(mappings, body, rows)
}
