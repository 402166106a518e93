//! Makes a state of a plan, and the model along with it.

use std::collections::HashSet;

use super::address::{spell_key, spell_module};
use super::json::{self, Json, member, number, raw, text};
use super::model::{Key, Mode, ObjectModel, OutputModel, StateModel};
use super::noise::Noise;
use super::plan::{AttributesPlan, BlockPlan, InstancePlan, OutputPlan, ProviderPlan, StatePlan};

mod attributes;

use attributes::{Attributes, decoded, secret_text};

/// A state, and what a correct reader finds in it.
#[derive(Clone)]
pub struct GeneratedState {
    /// The state's bytes.
    pub body: Vec<u8>,
    /// What is in it.
    pub model: StateModel,
}

/// The text and the model: what a failing test has to show.
impl std::fmt::Debug for GeneratedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeneratedState")
            .field("body", &String::from_utf8_lossy(&self.body))
            .field("model", &self.model)
            .finish()
    }
}

/// Makes the state of a plan: twice, since what is copied must be known before it is written first.
pub(super) fn render(plan: &StatePlan) -> GeneratedState {
    let secrets = Renderer::new(plan, &[]).state().1.copied;
    let (tree, rendered) = Renderer::new(plan, &secrets).state();
    let mut secrets = rendered.copied;
    secrets.extend(rendered.in_place);
    let model = StateModel {
        serial: plan.serial,
        lineage: plan.lineage.clone(),
        writer: plan.writer.clone(),
        objects: rendered.objects,
        outputs: rendered.outputs,
        secrets,
    };
    GeneratedState { body: json::write(&tree, plan.style), model }
}

/// What comes about while a state is made.
#[derive(Default)]
struct Rendered {
    objects: Vec<ObjectModel>,
    outputs: Vec<OutputModel>,
    /// Secrets that copies are made of.
    copied: Vec<String>,
    /// Secrets that stand in one place only.
    in_place: Vec<String>,
}

/// What tells an object from all others: module, mode, type, name, key, deposed key.
type Identity = (String, Mode, &'static str, &'static str, Option<Key>, Option<String>);

struct Renderer<'a> {
    plan: &'a StatePlan,
    /// All secrets of the state that copies are made of, from an earlier pass.
    known: &'a [String],
    rendered: Rendered,
    disorder: Option<Noise>,
    /// Objects so far: of each there can be one.
    seen: HashSet<Identity>,
    /// Counts what must be told apart.
    count: usize,
}

impl<'a> Renderer<'a> {
    fn new(plan: &'a StatePlan, known: &'a [String]) -> Self {
        let disorder = plan.disorder.map(Noise::new);
        Self { plan, known, rendered: Rendered::default(), disorder, seen: HashSet::new(), count: 0 }
    }

    fn state(mut self) -> (Json, Rendered) {
        let plan = self.plan;
        let outputs: Vec<(String, Json)> =
            (0..).zip(&plan.outputs).map(|(at, output)| self.output(at, output)).collect();
        let resources: Vec<Json> = (0..plan.blocks.len()).map(|at| self.block(at)).collect();
        let mut members = vec![member("version", raw("4"))];
        members.extend(plan.writer.iter().map(|writer| member("terraform_version", text(writer))));
        members.push(member("serial", raw(&plan.serial.to_string())));
        members.extend(plan.lineage.iter().map(|lineage| member("lineage", text(lineage))));
        members.push(member("outputs", Json::Object(outputs)));
        members.push(member("resources", Json::List(resources)));
        members.extend(checks(plan.checks));
        if plan.unknown {
            members.push(member(
                "x_resources",
                Json::List(vec![Json::Object(vec![member("instances", raw("[{}]"))])]),
            ));
            members.push(member("futures", raw("{\"serial\": 1, \"version\": 9}")));
        }
        (self.ordered(members), self.rendered)
    }

    /// Puts members in the order of the plan.
    fn ordered(&mut self, mut members: Vec<(String, Json)>) -> Json {
        if let Some(noise) = &mut self.disorder {
            noise.shuffle(&mut members);
        }
        Json::Object(members)
    }

    fn next(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    fn output(&mut self, at: usize, plan: &OutputPlan) -> (String, Json) {
        let name = format!("out_{at}");
        let count = self.next();
        let secret = secret_text(plan.secret, count);
        let shown = format!("an output that says {count}");
        let value = if plan.sensitive { secret.as_str() } else { shown.as_str() };
        let (value, kind) = match plan.form {
            0 | 1 => (text(value), raw("\"string\"")),
            2 => (Json::List(vec![text(value), text("same")]), raw("[\"tuple\",[\"string\",\"string\"]]")),
            3 => (
                Json::Object(vec![
                    member("inner", Json::Object(vec![member("v", text(value))])),
                    member("n", raw("7")),
                ]),
                raw("[\"object\",{\"inner\":[\"object\",{\"v\":\"string\"}],\"n\":\"number\"}]"),
            ),
            _ => (
                Json::Object(vec![member("value", text(value)), member("type", text("string"))]),
                raw("\"dynamic\""),
            ),
        };
        if plan.sensitive {
            self.rendered.copied.extend(decoded(&secret));
            self.rendered.copied.push(secret);
        }
        let mut members = vec![member("value", value), member("type", kind)];
        if plan.sensitive {
            members.push(member("sensitive", raw("true")));
        } else if plan.secret.nonce.is_multiple_of(3) {
            members.push(member("sensitive", raw("false")));
            members.push(member("deprecated", text("use another")));
        }
        self.rendered.outputs.push(OutputModel { name: name.clone(), sensitive: plan.sensitive });
        (name, self.ordered(members))
    }

    fn block(&mut self, at: usize) -> Json {
        let plan = &self.plan.blocks[at];
        // Whose resource it is: its own, or that of an earlier block.
        let owner =
            plan.same_as.filter(|_| at > 0).map_or(plan, |earlier| earlier.get(&self.plan.blocks[..at]));
        let module = spell_module(&owner.module);
        let mut instances = Vec::new();
        for instance in &plan.instances {
            self.instance(at, plan, owner, &module, instance, &mut instances);
        }
        let mut members = Vec::new();
        if !module.is_empty() {
            members.push(member("module", Json::Text(module)));
        }
        members.push(member("mode", text(if owner.data { "data" } else { "managed" })));
        members.push(member("type", text(owner.resource_type)));
        members.push(member("name", text(owner.name)));
        if plan.unknown {
            members.push(member("each", text("list")));
            members.push(member("x_instances", raw("[{\"attributes\":{}}]")));
        }
        if let ProviderPlan::Block(provider) = plan.provider {
            members.push(member("provider", text(provider)));
        }
        members.push(member("instances", Json::List(instances)));
        self.ordered(members)
    }

    fn instance(
        &mut self,
        block: usize,
        plan: &BlockPlan,
        owner: &BlockPlan,
        module: &str,
        instance: &InstancePlan,
        instances: &mut Vec<Json>,
    ) {
        let old = instance.deposed.iter().filter(|_| !owner.data).cloned().map(Some);
        let generations = std::iter::once(None).filter(|_| instance.current).chain(old);
        for deposed in generations {
            let mode = if owner.data { Mode::Data } else { Mode::Managed };
            let identity = (
                module.to_owned(),
                mode,
                owner.resource_type,
                owner.name,
                instance.key.clone(),
                deposed.clone(),
            );
            if !self.seen.insert(identity) {
                continue;
            }
            let provider = match plan.provider {
                ProviderPlan::Block(provider) => provider.to_owned(),
                ProviderPlan::Instances => instance_provider(&instance.provider_key),
                ProviderPlan::Nowhere => String::new(),
            };
            let mut model = ObjectModel {
                position: (block, instances.len()),
                module: module.to_owned(),
                mode,
                resource_type: owner.resource_type.to_owned(),
                name: owner.name.to_owned(),
                key: instance.key.clone(),
                deposed,
                provider,
                tainted: instance.tainted && !owner.data,
                hidden: false,
                secrets: Vec::new(),
                shown: Vec::new(),
            };
            let object = self.object(plan, instance, &mut model);
            instances.push(object);
            self.rendered.objects.push(model);
        }
    }

    fn object(&mut self, block: &BlockPlan, plan: &InstancePlan, model: &mut ObjectModel) -> Json {
        let mut members = Vec::new();
        match &plan.key {
            None => {}
            Some(Key::Number(_)) => members.push(member("index_key", raw(&plan.key_text))),
            Some(Key::Text(key)) => members.push(member("index_key", text(key))),
        }
        if model.tainted {
            members.push(member("status", text("tainted")));
        }
        members.extend(model.deposed.iter().map(|deposed| member("deposed", text(deposed))));
        if matches!(block.provider, ProviderPlan::Instances) {
            members.push(member("provider", Json::Text(model.provider.clone())));
        }
        members.push(member("schema_version", number(plan.attributes_len())));
        let mut attributes = Attributes::new(self.count, self.known);
        let marks = match &plan.attributes {
            AttributesPlan::Absent => Vec::new(),
            AttributesPlan::Null => {
                members.push(member("attributes", raw("null")));
                Vec::new()
            }
            AttributesPlan::Flat(list) => {
                members.push(member("attributes_flat", attributes.flat(list)));
                Vec::new()
            }
            AttributesPlan::Object(list) => {
                members.push(member("attributes", attributes.object(list)));
                std::mem::take(&mut attributes.marks)
            }
        };
        self.count = attributes.count;
        if plan.private {
            // Not marked by anybody, and never to be shown: what a provider keeps for itself.
            let private = base64::Engine::encode(
                &base64::engine::general_purpose::STANDARD,
                format!("{{\"kept-{:08}\":\"by the provider\"}}", self.next()),
            );
            members.push(member("private", text(&private)));
            self.rendered.in_place.push(private.clone());
            model.secrets.push(private);
        }
        if !marks.is_empty() {
            let paths = marks.into_iter().map(|path| self.path(path)).collect();
            members.push(member("sensitive_attributes", Json::List(paths)));
        } else if plan.no_marks > 0 {
            members.push(member("sensitive_attributes", raw(if plan.no_marks == 1 { "[]" } else { "null" })));
        }
        if plan.unknown {
            members.push(member("identity_schema_version", raw("0")));
            members.push(member(
                "x_object",
                raw("{\"deposed\":\"00000000\",\"index_key\":7,\"instances\":[{}]}"),
            ));
            members.push(member("dependencies", raw("[\"module.a.data.x_y.z\"]")));
            members.push(member("create_before_destroy", raw("true")));
        }
        let Attributes { copied, in_place, shown, hidden, .. } = attributes;
        model.secrets.extend(copied.iter().chain(&in_place).cloned());
        model.hidden = hidden;
        model.shown = if hidden { Vec::new() } else { shown };
        self.rendered.copied.extend(copied);
        self.rendered.in_place.extend(in_place);
        self.ordered(members)
    }

    /// Returns a path with the members of its steps in the order of the plan.
    fn path(&mut self, steps: Vec<Json>) -> Json {
        let ordered = |step| match step {
            Json::Object(members) => self.ordered(members),
            other => other,
        };
        Json::List(steps.into_iter().map(ordered).collect())
    }
}

impl InstancePlan {
    fn attributes_len(&self) -> usize {
        match &self.attributes {
            AttributesPlan::Absent | AttributesPlan::Null => 0,
            AttributesPlan::Flat(list) | AttributesPlan::Object(list) => list.len(),
        }
    }
}

fn instance_provider(key: &str) -> String {
    let key = spell_key(Some(&Key::Text(key.to_owned())));
    format!("provider[\"registry.opentofu.org/hetznercloud/hcloud\"].by_region{key}")
}

fn checks(form: u8) -> Option<(String, Json)> {
    let results = match form {
        0 => return None,
        1 => "null",
        2 => "[]",
        _ => {
            "[{\"object_kind\":\"check\",\"config_addr\":\"check.up\",\"status\":\"fail\",\"objects\":\
             [{\"object_addr\":\"check.up\",\"status\":\"fail\",\"failure_messages\":[\"it is \\\"down\\\"\"]}]},\
             {\"object_kind\":\"var\",\"config_addr\":\"var.x\",\"status\":\"unknown\",\"objects\":null}]"
        }
    };
    Some(member("check_results", raw(results)))
}
