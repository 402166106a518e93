//! What a state declares, as Kubernetes-style resources: their specs, and where each field comes from.
//!
//! Made by [`project`](crate::declared::projection) alone; nothing here is ever taken from an observation.

mod provenance;

use std::fmt;
use std::sync::Arc;

pub use provenance::{Place, Provenance, Spot};
pub(in crate::declared) use provenance::{Places, Shapes};

use crate::declared::{ResourceAddress, VersionNumber};

/// A whole number or decimal fraction, its digits kept as they were spelt in canonical form: no exponent, no leading
/// zeros, no trailing zeros behind a point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(String);

/// Role of a machine or node group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Runs the Kubernetes control plane.
    ControlPlane,
    /// Runs workloads only.
    Worker,
}

/// What the provider wrote into the state about whether the machine ran: declared data of that version, no
/// observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Power {
    /// It ran.
    Running,
    /// It was switched off.
    Stopped,
    /// It was on its way from one to the other, or anything else the mapping's table names.
    Changing,
}

/// The kind of an address (Kubernetes, `NodeAddressType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressType {
    /// Reached from within the cluster's network.
    InternalIp,
    /// Reached from outside.
    ExternalIp,
    /// A name.
    Hostname,
}

/// An address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress {
    /// Its kind.
    pub kind: AddressType,
    /// An IP address in canonical spelling, or a name.
    pub address: String,
}

/// A field that could not be read as its mapping says: it is absent, and the rest of the object is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    /// The spec's field, as the API spells it.
    pub field: String,
    /// Why it is absent or in doubt; never a value of the state that must not be shown.
    pub reason: String,
}

/// Where a value was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The object, by its address.
    pub address: ResourceAddress,
    /// The deposed key, if it is an old generation.
    pub deposed: Option<String>,
    /// The JSON path (RFC 9535) in the state: `$.resources[3].instances[0].attributes.name`; ends at the object where
    /// the value is the object's own (its key, its address).
    pub path: String,
    /// The rule that read it, in the mapping's words.
    pub rule: String,
}

/// Spec of a Machine. What many machines have in common is one text for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The object's name in the API: a DNS-1123 label, unique in the tenant and stable for an address.
    pub object_name: String,
    /// The provider's name of it.
    pub name: Option<String>,
    /// The address of the resource instance that it is.
    pub address: ResourceAddress,
    /// Which element of that instance, where its mapping makes several machines of one: a node of a node pool.
    pub element: Option<String>,
    /// That instance's type.
    pub resource_type: Arc<str>,
    /// The mapping's name.
    pub provider: Arc<str>,
    /// The provider's source, such as `registry.opentofu.org/hetznercloud/hcloud`; empty where the state names none.
    pub provider_source: Arc<str>,
    /// The provider's ID, its digits kept.
    pub provider_id: Option<String>,
    /// The host's name.
    pub hostname: Option<String>,
    /// Its role.
    pub role: Option<Role>,
    /// The node group it belongs to, by the group's object name.
    pub node_group: Option<Arc<str>>,
    /// Its addresses, sorted, each once.
    pub addresses: Vec<NodeAddress>,
    /// The provider's type or flavour.
    pub instance_type: Option<Arc<str>>,
    /// The region.
    pub region: Option<Arc<str>>,
    /// The zone, or the host that carries it.
    pub zone: Option<Arc<str>>,
    /// The image it was made from.
    pub image: Option<Arc<str>>,
    /// How many CPUs.
    pub cpus: Option<Decimal>,
    /// Memory in MiB.
    pub memory_mib: Option<u64>,
    /// What the state recorded of its power.
    pub recorded_power: Option<Power>,
    /// Whether it is to be replaced.
    pub tainted: bool,
    /// Talos resources that describe the same machine, sorted.
    pub also_known_as: Vec<ResourceAddress>,
    /// Fields that could not be read, sorted.
    pub problems: Vec<Problem>,
    /// Where each field comes from, by the API's name of the field (`addresses[0].address` for an element).
    pub provenance: Provenance,
    /// All objects that feed it, the machine's own first: a single read needs their bytes and no others.
    pub fed_by: Vec<(ResourceAddress, Option<String>)>,
    /// What the rest of the state decided about it: no part of the spec.
    pub context: Context,
}

/// What a machine's projection owes to objects that do not feed it. Names and places, never an attribute's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The Talos resources (and which element of them) that were merged into the machine, sorted.
    pub merged: Vec<(ResourceAddress, Option<String>)>,
    /// The addresses that were dropped because they are the cluster's: their places among all that were found, sorted.
    pub dropped: Vec<usize>,
    /// Those of the machine's problems that only a look at other machines shows, sorted.
    pub problems: Vec<Problem>,
}

/// All that [`project_machine`](crate::declared::projection::project_machine) needs to know of a machine beside the
/// bytes of the objects that feed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineKey {
    /// The machine's name in the API: whether it carries a hash depends on the others' names.
    pub object_name: String,
    /// The instance.
    pub address: ResourceAddress,
    /// Which element of it.
    pub element: Option<String>,
    /// The object name of its node group, if it has one.
    pub node_group: Option<Arc<str>>,
    /// The rest.
    pub context: Context,
}

/// Spec of a `NodeGroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    /// The object's name in the API.
    pub object_name: String,
    /// The role all its machines have; absent where they differ or none is known.
    pub role: Option<Role>,
    /// The mapping's name all its machines come from; absent where they differ.
    pub provider: Option<String>,
    /// How many machines are declared.
    pub count: u64,
    /// Their object names, sorted.
    pub machines: Vec<String>,
    /// Their types, sorted, each once.
    pub instance_types: Vec<String>,
    /// Their regions, sorted, each once.
    pub regions: Vec<String>,
    /// How the group was derived: the mapping's rule, the module, the resource block.
    pub source: String,
}

/// A provider configuration that the state names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderConfig {
    /// `registry.opentofu.org/hetznercloud/hcloud`.
    pub source: String,
    /// The alias, of an aliased one.
    pub alias: Option<String>,
    /// The key, of one with `for_each`.
    pub key: Option<String>,
}

/// Spec of a Tenant, but for what the store knows of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The cluster's name.
    pub cluster_name: Option<String>,
    /// Where its API answers: a URL.
    pub endpoint: Option<String>,
    /// The Kubernetes version that is wanted.
    pub kubernetes_version: Option<String>,
    /// The Talos version that is wanted.
    pub talos_version: Option<String>,
    /// Provider configurations, sorted, each once.
    pub providers: Vec<ProviderConfig>,
    /// Managed, current objects whose type no mapping knows: type and how many, sorted by type.
    pub unmapped: Vec<(String, u64)>,
    /// Fields that could not be read, sorted.
    pub problems: Vec<Problem>,
    /// Where each field comes from.
    pub provenance: Provenance,
}

/// All that one version of a state declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// The version.
    pub version: VersionNumber,
    /// The cluster as a whole.
    pub cluster: Cluster,
    /// Its machines, sorted by object name.
    pub machines: Vec<Machine>,
    /// Its node groups, sorted by object name.
    pub node_groups: Vec<NodeGroup>,
}

impl Decimal {
    /// Reads a number in JSON's spelling; `None` for any other text, and for exponents beyond 400.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
        let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let exponent: i64 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || exponent.abs() > 400 {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let point = i64::try_from(whole.len()).ok()? + exponent;
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        let length = i64::try_from(all.len()).ok()?;
        let padded = format!("{}{all}{}", zeros(1 - point), zeros(point - length));
        let split = usize::try_from(point.max(1)).ok()?;
        let whole = padded[..split].trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let fraction = padded[split..].trim_end_matches('0');
        let number = if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") };
        Some(Self(if number == "0" { number } else { format!("{sign}{number}") }))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Machine {
    /// Returns what a single read has to know of it.
    pub fn key(&self) -> MachineKey {
        MachineKey {
            object_name: self.object_name.clone(),
            address: self.address.clone(),
            element: self.element.clone(),
            node_group: self.node_group.clone(),
            context: self.context.clone(),
        }
    }

    /// Returns what tells it from all other machines of a state, whatever they are called: its address, and which
    /// element of it.
    pub fn identity(&self) -> String {
        identity(&self.address, self.element.as_deref())
    }
}

/// A line break is in no address: it is escaped there.
pub(in crate::declared) fn identity(address: &ResourceAddress, element: Option<&str>) -> String {
    element.map_or_else(|| address.to_string(), |element| format!("{address}\n{element}"))
}

impl Role {
    /// Returns the role that has this word in the API.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::ControlPlane, Self::Worker].into_iter().find(|role| role.as_str() == text)
    }

    /// Returns the API's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlane => "controlplane",
            Self::Worker => "worker",
        }
    }
}

impl Power {
    /// Returns the power that has this word in the API.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Stopped, Self::Changing].into_iter().find(|power| power.as_str() == text)
    }

    /// Returns the API's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Changing => "changing",
        }
    }
}

impl AddressType {
    /// Returns the API's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InternalIp => "InternalIP",
            Self::ExternalIp => "ExternalIP",
            Self::Hostname => "Hostname",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_canonical() {
        for (text, canonical) in [
            ("8.192e3", "8192"),
            ("2.0", "2"),
            ("1.50", "1.5"),
            ("0.0000001", "0.0000001"),
            ("1e-7", "0.0000001"),
            ("-0", "0"),
            ("-1.5E+1", "-15"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("00", "0"),
        ] {
            assert_eq!(Decimal::parse(text).as_ref().map(Decimal::as_str), Some(canonical), "{text}");
        }
        for bad in ["", "-", "1e999", "abc", "1.2.3", ".5"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }
}
