//! Strategies of whole states with machines in them, and what a correct projection of each must yield.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proptest::strategy::Strategy;
use rezus_core::declared::resource::{AddressType, Role};
use serde_json::{Value, json};

use super::noise::Noise;

mod believed;
mod plan;
mod providers;
mod render;

/// A state that declares machines, and what they are.
#[derive(Clone)]
pub struct DeclaredState {
    /// The elements of `resources[]`.
    pub blocks: Vec<Value>,
    /// What is in them.
    pub model: DeclaredModel,
}

/// What a correct projection yields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredModel {
    /// The machines, in no order.
    pub machines: Vec<MachineModel>,
    /// The managed, current objects of types that no mapping knows: type and how many.
    pub unmapped: BTreeMap<String, u64>,
    /// Every text that must not be shown anywhere.
    pub secrets: Vec<String>,
}

/// A machine as it is declared. What is `None`, or not listed, has to be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineModel {
    /// The address of its own object.
    pub address: String,
    /// The mapping's name.
    pub provider: &'static str,
    /// The provider's name of it.
    pub name: Option<String>,
    /// The host's name.
    pub hostname: Option<String>,
    /// The role that is to be believed.
    pub role: Option<Role>,
    /// The node group, as the state spells it.
    pub group: Option<String>,
    /// The provider's ID.
    pub provider_id: Option<String>,
    /// Its addresses.
    pub addresses: BTreeSet<(AddressType, String)>,
    /// The number of CPUs.
    pub cpus: Option<String>,
    /// Whether it is to be replaced.
    pub tainted: bool,
    /// The Talos resources that describe it, its own object aside.
    pub also_known_as: BTreeSet<String>,
    /// The fields that have a problem.
    pub problems: BTreeSet<&'static str>,
    /// The addresses of all objects that say anything of it: no other object may change it.
    pub described_by: BTreeSet<String>,
}

/// A state of which one object's attributes are no longer what its provider wrote.
#[derive(Clone, Debug)]
pub struct SpoiltState {
    /// The state's bytes.
    pub body: Vec<u8>,
    /// The object's address; `None` if the state has no objects.
    pub spoilt: Option<String>,
}

/// Returns a strategy of states that declare machines: from empty ones to some dozens of objects.
///
/// Of hcloud, openstack, AWS, Proxmox (bpg) and `terraform_data`, by themselves, by `count` and by `for_each`, in several
/// modules; addresses in the machine's own object, and over one, two or three hops in others; Talos configurations that
/// are applied to them or to machines that nothing else knows, with roles that agree, disagree, or are ambiguous;
/// names and IDs that are null, of an odd type, marked, or hold another object's secret; tainted and old generations;
/// resources that are no machines, of types that are known and of ones that are not.
pub fn declared_states() -> impl Strategy<Value = DeclaredState> {
    plan::state().prop_map(|plan| render::render(&plan))
}

impl DeclaredState {
    /// Returns the state's bytes.
    pub fn body(&self) -> Vec<u8> {
        document(&self.blocks)
    }

    /// Returns the bytes of the same state with blocks, and the instances of each, in another order.
    pub fn shuffled(&self, seed: u64) -> Vec<u8> {
        let mut noise = Noise::new(seed);
        let mut blocks = self.blocks.clone();
        noise.shuffle(&mut blocks);
        for instances in blocks.iter_mut().filter_map(|block| block["instances"].as_array_mut()) {
            noise.shuffle(instances);
        }
        document(&blocks)
    }

    /// Returns the state with one value of one object's attributes replaced. `way` leads to it, each step modulo what
    /// there is; the first chooses the object.
    pub fn spoilt(&self, way: &[usize], odd: &Value) -> SpoiltState {
        let mut blocks = self.blocks.clone();
        let (first, rest) = way.split_first().unwrap_or((&0, &[]));
        let count =
            blocks.iter().filter_map(|block| block["instances"].as_array()).map(Vec::len).sum::<usize>();
        let mut at = first.checked_rem(count).unwrap_or(0);
        let mut spoilt = None;
        for block in &mut blocks {
            let length = block["instances"].as_array().map_or(0, Vec::len);
            if at >= length {
                at -= length;
                continue;
            }
            spoilt = Some(render::address_of(block, at));
            replace(&mut block["instances"][at]["attributes"], rest, odd);
            break;
        }
        SpoiltState { body: document(&blocks), spoilt }
    }
}

/// The text and the model: what a failing test has to show.
impl fmt::Debug for DeclaredState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredState")
            .field("body", &String::from_utf8_lossy(&self.body()))
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

fn document(blocks: &[Value]) -> Vec<u8> {
    let state = json!({
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": 7,
        "lineage": "6a7f1c9e-3b52-4d1c-8f6e-2f1f0c6f0a11",
        "outputs": {},
        "resources": blocks,
        "check_results": null,
    });
    state.to_string().into_bytes()
}

/// Replaces one value of a tree.
fn replace(tree: &mut Value, way: &[usize], odd: &Value) {
    let Some((step, rest)) = way.split_first() else {
        *tree = odd.clone();
        return;
    };
    let place = |length: usize| step.checked_rem(length);
    let below = match tree {
        Value::Object(members) => place(members.len()).and_then(|place| members.values_mut().nth(place)),
        Value::Array(list) => place(list.len()).and_then(|place| list.get_mut(place)),
        _ => None,
    };
    match below {
        Some(below) => replace(below, rest, odd),
        None => *tree = odd.clone(),
    }
}
