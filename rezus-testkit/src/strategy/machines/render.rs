//! Makes a state with machines of a plan, and the model along with it.

mod talos;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::address::spell_key;
use super::super::model::Key;
use super::super::noise::Noise;
use super::believed::{self, Said};
use super::plan::{Id, Keys, MachinePlan, Name, NoisePlan, OddAddress, PoolPlan, Provider, StatePlan};
use super::providers::{self, Content, role_of};
use super::{DeclaredModel, DeclaredState};

const MODULES: [&str; 4] = ["", "module.a", "module.pool[\"x/1\"]", "module.pool[\"y\"]"];

#[derive(Debug, Default)]
struct Builder {
    blocks: Vec<Value>,
    model: DeclaredModel,
    /// Of machines, whichever resource they have.
    next: usize,
    /// The Talos configurations that are applied.
    applies: Vec<Value>,
    /// The secret of which others hold copies, if any does.
    shared: Option<String>,
}

pub(super) fn render(plan: &StatePlan) -> DeclaredState {
    let mut builder = Builder::default();
    for (number, pool) in plan.pools.iter().enumerate() {
        builder.pool(number, pool);
    }
    for applies in &plan.bare {
        builder.bare(applies);
    }
    for (number, noise) in plan.noise.iter().enumerate() {
        builder.noise(number, noise);
    }
    builder.finish()
}

/// Returns the address of an instance as OpenTofu spells it.
pub(super) fn address_of(block: &Value, instance: usize) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = &block["instances"][instance]["index_key"];
    let key = match key {
        Value::String(text) => Some(Key::Text(text.clone())),
        key => key.as_i64().map(Key::Number),
    };
    let module = block["module"].as_str().map(|module| format!("{module}.")).unwrap_or_default();
    let mode = if block["mode"] == "data" { "data." } else { "" };
    format!("{module}{mode}{}.{}{}", text(&block["type"]), text(&block["name"]), spell_key(key.as_ref()))
}

fn block(place: (&str, &str, &str), resource_type: &str, name: &str, instances: &[Value]) -> Value {
    let (module, mode, source) = place;
    let mut block = json!({
        "mode": mode,
        "type": resource_type,
        "name": name,
        "provider": format!("provider[\"{source}\"]"),
        "instances": instances,
    });
    if !module.is_empty() {
        block["module"] = json!(module);
    }
    block
}

fn instance(key: Option<Value>, attributes: &Value, marks: &[Vec<Value>]) -> Value {
    let mut instance = json!({"schema_version": 0, "attributes": attributes, "sensitive_attributes": marks});
    if let Some(key) = key {
        instance["index_key"] = key;
    }
    instance
}

fn attribute_path(name: &str) -> Vec<Value> {
    vec![providers::attribute(name)]
}

impl Builder {
    /// Returns a text that occurs nowhere else.
    fn secret(&mut self) -> String {
        let number = u64::try_from(self.model.secrets.len()).unwrap_or_default();
        let secret = format!("s{:016x}k", Noise::new(number).next());
        self.model.secrets.push(secret.clone());
        secret
    }

    fn shared(&mut self) -> String {
        if let Some(shared) = &self.shared {
            return shared.clone();
        }
        let secret = self.secret();
        self.shared = Some(secret.clone());
        secret
    }

    fn pool(&mut self, number: usize, pool: &PoolPlan) {
        let module = MODULES.get(pool.module).copied().unwrap_or_default();
        let name = format!("pool{number}");
        let count = if pool.keys == Keys::None { 1 } else { pool.machines.len() };
        let mut instances: Vec<Value> = Vec::new();
        let mut taken = BTreeSet::new();
        for (at, plan) in pool.machines.iter().take(count).enumerate() {
            let key = match pool.keys {
                Keys::None => None,
                Keys::Count => Some(Key::Number(i64::try_from(at).unwrap_or_default())),
                Keys::ForEach if taken.insert(plan.key.clone()) => Some(Key::Text(plan.key.clone())),
                Keys::ForEach => Some(Key::Text(format!("{}/{at}+", plan.key))),
            };
            self.machine(pool.provider, module, &name, key.as_ref(), plan, &mut instances);
        }
        let place = (module, "managed", pool.provider.source());
        self.blocks.push(block(place, pool.provider.resource_type(), &name, &instances));
    }

    fn machine(
        &mut self,
        provider: Provider,
        module: &str,
        block_name: &str,
        key: Option<&Key>,
        plan: &MachinePlan,
        instances: &mut Vec<Value>,
    ) {
        let number = self.next;
        self.next += 1;
        let (name, known_name) = self.name(plan.name, number);
        let id = match plan.id {
            Id::Text => json!(format!("id-{number}")),
            Id::Number => json!(9_007_199_254_740_993_u64 + u64::try_from(number).unwrap_or_default()),
            Id::Null => Value::Null,
            Id::Marked => json!(self.secret()),
        };
        let known_id = match plan.id {
            Id::Text => id.as_str().map(str::to_owned),
            Id::Number => Some(id.to_string()),
            Id::Null | Id::Marked => None,
        };
        let odd = match plan.odd {
            OddAddress::Marked => {
                let address = format!("2001:db8:{:x}:5ec::9", 0x1000 + number);
                self.model.secrets.push(address.clone());
                Some(json!(address))
            }
            other => providers::odd_address(other),
        };
        let is_aws = provider == Provider::Aws;
        let document = plan.document.filter(|_| is_aws).map(|role| {
            let token = self.secret();
            format!("version: v1alpha1\nmachine:\n  token: {token}\n  type: {}\n", role.as_str())
        });
        let is_referable = known_id.is_some();
        let content = Content { plan, number, name, id, is_referable, odd, document };
        let written = provider.write(&content);
        let mut marks = Vec::new();
        marks.extend((plan.name == Name::Marked).then(|| written.name_at.clone()));
        marks.extend((plan.id == Id::Marked).then(|| written.id_at.clone()));
        marks.extend((plan.odd == OddAddress::Marked).then(|| written.odd_at.clone()));

        let spelt = key.map(|key| match key {
            Key::Number(number) => json!(number),
            Key::Text(text) => json!(text),
        });
        let mut own = instance(spelt.clone(), &written.attributes, &marks);
        if plan.tainted {
            own["status"] = json!("tainted");
        }
        if plan.deposed {
            let mut old = instance(spelt, &json!({"id": "old", "name": format!("old-{number}")}), &[]);
            old["deposed"] = json!(format!("{number:08x}"));
            instances.push(old);
        }
        instances.push(own);

        let module_prefix = if module.is_empty() { String::new() } else { format!("{module}.") };
        let resource = provider.resource_type();
        let address = format!("{module_prefix}{resource}.{block_name}{}", spell_key(key));
        let mut described_by = BTreeSet::from([address.clone()]);
        for (at, (resource, attributes, is_near)) in written.beside.iter().enumerate() {
            let elsewhere = if module == "module.a" { "" } else { "module.a" };
            let module = if *is_near { module } else { elsewhere };
            let name = format!("beside{number}_{at}");
            let place = (module, "managed", provider.source());
            let block = block(place, resource, &name, &[instance(None, attributes, &[])]);
            described_by.insert(address_of(&block, 0));
            self.blocks.push(block);
        }

        let text_key = match key {
            Some(Key::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let hostname = (plan.hostname && provider.has_hostname()).then(|| providers::hostname(number));
        let fallback =
            text_key.clone().filter(|key| provider == Provider::TerraformData && is_something(key));
        let found_name = known_name.or_else(|| hostname.clone()).or(fallback);
        let mut problems = BTreeSet::new();
        if found_name.is_none() && plan.name != Name::Null {
            problems.insert("name");
        }
        if plan.id == Id::Marked {
            problems.insert("providerID");
        }
        if matches!(plan.odd, OddAddress::Object | OddAddress::Marked) && written.is_odd_told {
            problems.insert("addresses");
        }
        let labelled = plan.label.and_then(role_of).map(|role| (role, 0));
        let group = plan.group.map(|group| (group.to_owned(), 0));
        let by_key = text_key.as_deref().and_then(group_of_key).map(|group| (group.to_owned(), -5));
        let main = Said {
            address,
            provider: provider.mapping(),
            is_talos: false,
            key: text_key,
            name: found_name.map(|name| (name, 0)),
            hostname: hostname.map(|name| (name, 0)),
            role: labelled.or(plan.document.filter(|_| is_aws).map(|role| (role, -2))),
            group: group.or(by_key).or(Some((block_name.to_owned(), -10))),
            provider_id: known_id,
            cpus: written.cpus,
            tainted: plan.tainted,
            addresses: written.addresses.iter().cloned().collect(),
            problems,
            described_by,
        };
        let nodes: Vec<_> = written.addresses.into_iter().map(|(_, address)| address).collect();
        let mut others = Vec::new();
        for (at, plan) in plan.applies.iter().enumerate() {
            if let Some(node) = plan.to.checked_rem(nodes.len()).and_then(|place| nodes.get(place)) {
                others.push(self.apply(number, at, node, plan));
            }
        }
        self.model.machines.push(believed::machine(&main, others));
    }

    /// Returns what is in the place of a name, and the name if it can be known.
    fn name(&mut self, name: Name, number: usize) -> (Value, Option<String>) {
        match name {
            Name::Plain | Name::Odd => {
                let text = if name == Name::Plain {
                    format!("node-{number}")
                } else {
                    format!("Node {number}/\u{e4}\n\u{6f22}.")
                };
                (json!(text), Some(text))
            }
            Name::Null => (Value::Null, None),
            Name::List => (json!(["a", "b"]), None),
            Name::Object => (json!({"a": 1}), None),
            Name::Marked => (json!(self.secret()), None),
            Name::Copy => (json!(format!("x-{}.", self.shared())), None),
        }
    }

    fn noise(&mut self, number: usize, plan: &NoisePlan) {
        let module = MODULES.get(plan.module).copied().unwrap_or_default();
        let name = format!("noise{number}");
        let (mode, resource, attributes) = match plan.form {
            0 => ("managed", "acme_widget", json!({"name": "node-1", "private_ip": "10.0.0.7"})),
            1 => ("managed", "zz_thing", json!({"ip": "10.0.0.7"})),
            2 => ("managed", "hcloud_network", json!({"id": "1", "name": "net"})),
            3 => ("data", "acme_lookup", json!({"id": "1"})),
            4 => {
                let input = json!({"value": {"name": "x"}, "type": ["object", {"name": "string"}]});
                ("managed", "terraform_data", json!({"id": "u", "input": input}))
            }
            _ => {
                // No machine's address: spoilt, it may be a machine itself, and then there are two that have it.
                let lists = json!([["10.254.0.7"]]);
                let vm = json!({"name": "image", "template": true, "ipv4_addresses": lists});
                ("managed", "proxmox_virtual_environment_vm", vm)
            }
        };
        let source = match plan.form {
            2 => Provider::Hcloud.source(),
            4 => Provider::TerraformData.source(),
            5 => Provider::Proxmox.source(),
            _ => "registry.opentofu.org/acme/acme",
        };
        let mut instances: Vec<Value> =
            (0..plan.count).map(|at| instance(Some(json!(at)), &attributes, &[])).collect();
        let mut counted = plan.count;
        if plan.form == 1 {
            // An old generation counts for nothing.
            instances.iter_mut().take(1).for_each(|old| old["deposed"] = json!("0badcafe"));
            counted -= counted.min(1);
        }
        if plan.form < 2 && counted > 0 {
            let counted = u64::try_from(counted).unwrap_or_default();
            *self.model.unmapped.entry(resource.to_owned()).or_default() += counted;
        }
        self.blocks.push(block((module, mode, source), resource, &name, &instances));
    }

    fn finish(mut self) -> DeclaredState {
        if let Some(shared) = self.shared.take() {
            let place = ("", "managed", "registry.opentofu.org/hashicorp/random");
            // Known to be secret, and not marked.
            let password = instance(None, &json!({"id": "none", "result": shared}), &[]);
            let block = block(place, "random_password", "shared", &[password]);
            self.blocks.push(block);
        }
        if !self.applies.is_empty() {
            self.data_sources();
        }
        let unmapped: BTreeMap<String, u64> = std::mem::take(&mut self.model.unmapped);
        DeclaredState { blocks: self.blocks, model: DeclaredModel { unmapped, ..self.model } }
    }
}

fn is_something(text: &str) -> bool {
    !text.trim().is_empty() && !text.trim().eq_ignore_ascii_case("dhcp")
}

/// Returns the group in a key such as `cp/0`.
fn group_of_key(key: &str) -> Option<&str> {
    let (group, number) = key.split_once('/')?;
    let is_group = group.starts_with(|c: char| c.is_ascii_alphabetic())
        && group.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    (is_group && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(group)
}
