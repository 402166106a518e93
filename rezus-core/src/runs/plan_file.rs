//! What `show -json` says of a plan: which machines it changes, and which attributes differ. Secrets stand there in
//! clear, so only names are taken out of it, and a digest that is kept nowhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::GroupCounts;
use crate::declared::document::{self, Document};
use crate::declared::mapping::Mappings;
use crate::declared::projection::project;
use crate::declared::resource::Projection;
use crate::declared::{Fingerprint, VersionNumber};

/// How many resources and attributes are named at most.
const MOST: usize = 1_000;

/// A resource that is not as the state has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drifted {
    /// The address of the resource instance.
    pub address: String,
    /// What the tool would record: `update`, `delete` ...
    pub action: String,
    /// The attributes that differ, by name: their values may be secrets.
    pub attributes: Vec<String>,
}

/// What tells the changes of two plans apart, values included. For memory only: whoever has it can try values until they
/// fit.
#[derive(Clone, PartialEq, Eq)]
pub struct PlannedValues([u8; 32]);

/// That there are some.
impl std::fmt::Debug for PlannedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PlannedValues(..)")
    }
}

/// The text is no plan.
#[derive(Debug, thiserror::Error)]
#[error("what the tool shows of the plan cannot be read")]
pub struct PlanFileError(#[source] serde_json::Error);

/// A plan, as `show -json` writes it (format 1).
pub struct PlanFile(Wire);

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    planned_values: Values,
    #[serde(default)]
    resource_changes: Vec<ResourceChange>,
    #[serde(default)]
    resource_drift: Vec<ResourceChange>,
    #[serde(default)]
    output_changes: BTreeMap<String, Change>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Values {
    root_module: Module,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Module {
    address: String,
    resources: Vec<Planned>,
    child_modules: Vec<Self>,
}

#[derive(Deserialize)]
struct Planned {
    mode: String,
    #[serde(rename = "type")]
    resource_type: String,
    name: String,
    #[serde(default)]
    index: Option<Value>,
    #[serde(default)]
    provider_name: String,
    #[serde(default)]
    values: Value,
}

#[derive(Deserialize)]
struct ResourceChange {
    address: String,
    /// Which of the objects at the address that were replaced and not destroyed, where it is one of those.
    #[serde(default)]
    deposed: Option<String>,
    #[serde(default)]
    change: Change,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Change {
    actions: Vec<String>,
    before: Value,
    after: Value,
    after_unknown: Value,
    replace_paths: Value,
}

/// That there is one.
impl std::fmt::Debug for PlanFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlanFile({} changes)", self.0.resource_changes.len())
    }
}

impl PlanFile {
    /// Reads what `show -json` wrote.
    ///
    /// # Errors
    ///
    /// [`PlanFileError`]; it repeats nothing of the content.
    pub fn read(json: &[u8]) -> Result<Self, PlanFileError> {
        serde_json::from_slice(json).map(Self).map_err(PlanFileError)
    }

    /// Returns what is not as the state has it, sorted by address.
    pub fn drift(&self) -> Vec<Drifted> {
        let mut drifted: Vec<Drifted> = self
            .0
            .resource_drift
            .iter()
            .map(|it| Drifted {
                address: it.address.clone(),
                action: action(&it.change.actions).to_owned(),
                attributes: differing(&it.change.before, &it.change.after),
            })
            .collect();
        drifted.sort_by(|a, b| a.address.cmp(&b.address));
        drifted.truncate(MOST);
        drifted
    }

    /// What it changes, to be compared with another plan. What it leaves as it is does not count, and nothing else that it
    /// says, such as when it was made.
    ///
    /// # Errors
    ///
    /// [`PlanFileError`] where the changes cannot be written down.
    pub fn values(&self) -> Result<PlannedValues, PlanFileError> {
        let changes = |change: &&Change| action(&change.actions) != "noop";
        let resources = self.0.resource_changes.iter().filter(|it| changes(&&it.change));
        let mut resources: Vec<_> =
            resources.map(|it| (it.address.as_str(), it.deposed.as_deref(), &it.change)).collect();
        resources.sort_by_key(|(address, deposed, _)| (*address, *deposed));
        let outputs: Vec<_> = self.0.output_changes.iter().filter(|(_, change)| changes(change)).collect();
        let text = serde_json::to_vec(&(resources, outputs)).map(Zeroizing::new).map_err(PlanFileError)?;
        Ok(PlannedValues(Fingerprint::of(&text).sha256))
    }

    /// Counts the changes by node group: machines that `before` has, and those that the state will have once the plan
    /// was done, as `mappings` read it.
    pub fn groups(&self, before: Option<&Projection>, mappings: &Mappings) -> Vec<GroupCounts> {
        let after = self.after(mappings);
        let (before, after) = (grouped(before), grouped(after.as_ref()));
        let changed: BTreeMap<&str, &str> = self
            .0
            .resource_changes
            .iter()
            .map(|it| (it.address.as_str(), action(&it.change.actions)))
            .filter(|(_, action)| *action != "noop")
            .collect();
        let mut groups: BTreeMap<String, GroupCounts> = BTreeMap::new();
        let mut count = |name: &str, what: fn(&mut GroupCounts)| {
            let new = || GroupCounts { name: name.to_owned(), add: 0, remove: 0, replace: 0 };
            what(groups.entry(name.to_owned()).or_insert_with(new));
        };
        for (machine, group) in &before {
            match (changed.get(machine.0.as_str()), after.get(machine)) {
                (Some(&"replace"), Some(new)) => {
                    count(group, |it| it.remove += 1);
                    count(new, |it| it.add += 1);
                    count(new, |it| it.replace += 1);
                }
                (Some(_), None) => count(group, |it| it.remove += 1),
                _ => {}
            }
        }
        for (machine, group) in &after {
            if changed.contains_key(machine.0.as_str()) && !before.contains_key(machine) {
                count(group, |it| it.add += 1);
            }
        }
        groups.into_values().collect()
    }

    /// Projects the state as it will be. What is not known before it is there is absent.
    fn after(&self, mappings: &Mappings) -> Option<Projection> {
        let mut resources = Vec::new();
        collect(&self.0.planned_values.root_module, &mut resources);
        let state = json!({
            "version": 4, "terraform_version": "1.0.0", "serial": 1, "lineage": "planned", "outputs": {},
            "resources": resources,
        });
        let body = state.to_string();
        match document::read_with(body.as_bytes(), &|kind| mappings.secret_rules(kind)).ok()? {
            Document::Plain(state) => {
                Some(project(mappings, VersionNumber::FIRST, body.as_bytes(), &state.rows))
            }
            Document::Encrypted(_) => None,
        }
    }
}

/// The node group of each machine that has one, by its address and, where an instance is several machines, which of them.
fn grouped(projection: Option<&Projection>) -> BTreeMap<(String, Option<String>), String> {
    let machines = projection.into_iter().flat_map(|projection| &projection.machines);
    let grouped = machines.filter_map(|machine| {
        let group = machine.node_group.as_ref()?;
        Some(((machine.address.to_string(), machine.element.clone()), group.to_string()))
    });
    grouped.collect()
}

/// The blocks of a state, from a module's planned resources.
fn collect(module: &Module, resources: &mut Vec<Value>) {
    let mut blocks: BTreeMap<(&str, &str, &str), (&str, Vec<Value>)> = BTreeMap::new();
    for planned in &module.resources {
        let mut instance = Map::new();
        if let Some(index) = &planned.index {
            instance.insert("index_key".to_owned(), index.clone());
        }
        instance.insert("schema_version".to_owned(), json!(0));
        instance.insert("attributes".to_owned(), planned.values.clone());
        let block = blocks.entry((&planned.mode, &planned.resource_type, &planned.name));
        block.or_insert_with(|| (&planned.provider_name, Vec::new())).1.push(Value::Object(instance));
    }
    for ((mode, resource_type, name), (provider, instances)) in blocks {
        let mut block = json!({
            "mode": mode, "type": resource_type, "name": name,
            "provider": format!("provider[\"{provider}\"]"), "instances": instances,
        });
        if !module.address.is_empty() {
            block["module"] = json!(module.address);
        }
        resources.push(block);
    }
    module.child_modules.iter().for_each(|child| collect(child, resources));
}

/// One word for a change's actions, as the stream has them.
fn action(actions: &[String]) -> &str {
    match actions {
        [one] if one == "no-op" => "noop",
        [one] => one,
        [_, _] => "replace",
        _ => "noop",
    }
}

/// The names of the members that are not the same in both.
fn differing(before: &Value, after: &Value) -> Vec<String> {
    let empty = Map::new();
    let (old, new) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|name| old.get(*name) != new.get(*name)).take(MOST).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"format_version":"1.2",
        "planned_values":{"root_module":{"resources":[
            {"address":"terraform_data.worker[0]","mode":"managed","type":"terraform_data","name":"worker","index":0,
             "provider_name":"terraform.io/builtin/terraform",
             "values":{"id":"a","input":{"rezus_kind":"Machine","role":"worker","name":"w0","node_group":"pool"}}},
            {"address":"terraform_data.worker[1]","mode":"managed","type":"terraform_data","name":"worker","index":1,
             "provider_name":"terraform.io/builtin/terraform",
             "values":{"input":{"rezus_kind":"Machine","role":"worker","name":"w1","node_group":"pool"}}}]}},
        "resource_changes":[
            {"address":"terraform_data.worker[0]","change":{"actions":["delete","create"],"before":{},"after":{}}},
            {"address":"terraform_data.worker[1]","change":{"actions":["create"],"before":null,"after":{}}}],
        "resource_drift":[
            {"address":"terraform_data.worker[0]","change":{"actions":["update"],
             "before":{"id":"a","secret":"hunter2","same":1},"after":{"id":"a","secret":"hunter3","same":1}}}]}"#;

    #[test]
    fn machines_are_counted_by_node_group() {
        let state = r#"{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","outputs":{},"resources":[
            {"mode":"managed","type":"terraform_data","name":"worker",
             "provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[
             {"index_key":0,"schema_version":0,"attributes":{"id":"a",
              "input":{"value":{"rezus_kind":"Machine","role":"worker","name":"w0","node_group":"pool"},
              "type":["object",{"rezus_kind":"string"}]}}}]}]}"#;
        let mappings = Mappings::built_in();
        let Ok(Document::Plain(read)) =
            document::read_with(state.as_bytes(), &|kind| mappings.secret_rules(kind))
        else {
            panic!("a state");
        };
        let before = project(&mappings, VersionNumber::FIRST, state.as_bytes(), &read.rows);
        let groups = PlanFile::read(PLAN.as_bytes()).unwrap().groups(Some(&before), &mappings);
        let pool = GroupCounts { name: "pool".to_owned(), add: 2, remove: 1, replace: 1 };
        assert_eq!(groups, [pool]);
    }

    #[test]
    fn attributes_that_differ_are_named_and_their_values_are_not() {
        let plan = PlanFile::read(PLAN.as_bytes()).unwrap();
        let drift = plan.drift();
        assert_eq!(drift.len(), 1);
        assert_eq!(drift[0].attributes, ["secret"]);
        assert_eq!(drift[0].action, "update");
        assert!(!format!("{plan:?} {drift:?}").contains("hunter"));
        assert!(PlanFile::read(b"{").is_err());
    }

    /// Each way in which a plan may change something else, one at a time.
    #[test]
    fn plans_are_told_apart_by_all_that_they_change() {
        let plan = json!({
            "timestamp": "2026-11-30T16:54:37Z",
            "resource_changes": [
                { "address": "a.b", "action_reason": "x", "change": { "actions": ["delete", "create"],
                  "before": { "password": "hunter2" }, "after": { "password": "hunter3" },
                  "after_unknown": { "id": true }, "replace_paths": [["password"]] } },
                { "address": "a.b", "deposed": "0a1b", "change": { "actions": ["delete"], "before": 1 } },
                { "address": "a.c", "change": { "actions": ["no-op"], "before": 1, "after": 1 } },
            ],
            "output_changes": { "o": { "actions": ["update"], "before": 1, "after": 2 },
                "same": { "actions": ["no-op"], "before": 1, "after": 1 } },
        });
        let values = |plan: &Value| PlanFile::read(plan.to_string().as_bytes()).unwrap().values().unwrap();
        let with = |pointer: &str, value: Value| {
            let mut plan = plan.clone();
            *plan.pointer_mut(pointer).unwrap() = value;
            values(&plan)
        };
        for (pointer, value) in [
            ("/resource_changes/0/address", json!("a.d")),
            ("/resource_changes/0/change/actions", json!(["create", "delete"])),
            ("/resource_changes/0/change/before/password", json!("hunter4")),
            ("/resource_changes/0/change/after/password", json!("hunter4")),
            ("/resource_changes/0/change/after_unknown/id", json!(false)),
            ("/resource_changes/0/change/replace_paths/0/0", json!("user")),
            ("/resource_changes/1/deposed", json!("0a1c")),
            ("/resource_changes/2/change/actions", json!(["update"])),
            ("/output_changes/o/after", json!(3)),
            ("/output_changes/same/actions", json!(["update"])),
        ] {
            assert_ne!(with(pointer, value), values(&plan), "{pointer}");
        }
        for (pointer, value) in [
            ("/timestamp", json!("2026-11-30T16:55:00Z")),
            ("/resource_changes/2/change/before", json!(2)),
            ("/output_changes/same/after", json!(2)),
        ] {
            assert_eq!(with(pointer, value), values(&plan), "{pointer}");
        }
        let mut turned = plan.clone();
        turned["resource_changes"].as_array_mut().unwrap().reverse();
        assert_eq!(values(&turned), values(&plan));
        assert!(!format!("{:?}", values(&plan)).contains(char::is_numeric));
    }
}
