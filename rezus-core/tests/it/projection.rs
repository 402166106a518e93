//! Laws of the projection over whole documents: generated ones with machines in them, and the fixtures.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::Index;
use rezus_core::declared::VersionNumber;
use rezus_core::declared::document::{Document, PlainState, read_with};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projection::{diff, identified, project, project_machine};
use rezus_core::declared::resource::{AddressType, Machine, Projection, Provenance, Role, Source};
use rezus_testkit::fixture::{Accept, states};
use serde_json::{Value, json};

fn mappings() -> &'static Mappings {
    static MAPPINGS: OnceLock<Mappings> = OnceLock::new();
    MAPPINGS.get_or_init(Mappings::built_in)
}

/// A machine as it is declared, and how.
#[derive(Clone, Debug)]
struct Plan {
    /// By a resource of its own; by nothing but an apply otherwise.
    has_resource: bool,
    /// How many applies there are to it.
    applies: usize,
    role: Option<Role>,
    group: &'static str,
    external: bool,
    cpus: Option<u8>,
    tainted: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let role = prop::option::of(prop::sample::select(vec![Role::ControlPlane, Role::Worker]));
    let group = prop::sample::select(vec!["cp", "pool", "Pool B"]);
    (any::<bool>(), 0..3_usize, role, group, any::<bool>(), prop::option::of(1..9_u8), any::<bool>())
        .prop_map(|(has_resource, applies, role, group, external, cpus, tainted)| Plan {
            has_resource,
            applies: if has_resource { applies } else { applies.max(1) },
            role,
            group,
            external,
            cpus,
            tainted,
        })
}

fn block(resource_type: &str, name: &str, provider: &str, instances: &[Value]) -> Value {
    json!({
        "mode": "managed",
        "type": resource_type,
        "name": name,
        "provider": format!("provider[\"{provider}\"]"),
        "instances": instances,
    })
}

fn instance(key: &str, attributes: &Value) -> Value {
    json!({"index_key": key, "schema_version": 0, "attributes": attributes, "sensitive_attributes": []})
}

/// Returns the blocks that declare the machines.
fn blocks(plans: &[Plan]) -> Vec<Value> {
    let (mut machines, mut applies) = (Vec::new(), Vec::new());
    for (number, plan) in plans.iter().enumerate() {
        let node = format!("10.0.0.{}", number + 1);
        if plan.has_resource {
            let mut input = json!({
                "rezus_kind": "Machine",
                "name": format!("n{number}"),
                "node_group": plan.group,
                "internal_ips": [node],
            });
            if let Some(role) = plan.role {
                input["role"] = json!(role.as_str());
            }
            if plan.external {
                input["external_ips"] = json!([format!("198.51.100.{}", number + 1)]);
            }
            if let Some(cpus) = plan.cpus {
                input["cpus"] = json!(cpus.to_string());
            }
            let mut machine =
                instance(&format!("m{number}"), &json!({"id": format!("id-{number}"), "input": input}));
            if plan.tainted {
                machine["status"] = json!("tainted");
            }
            machines.push(machine);
        }
        for place in 0..plan.applies {
            let attributes = json!({"node": node, "endpoint": "203.0.113.9", "apply_mode": "auto"});
            applies.push(instance(&format!("a{number}-{place}"), &attributes));
        }
    }
    let other = instance("x", &json!({"id": "7", "triggers": {"node": "10.0.0.1"}}));
    vec![
        block("terraform_data", "node", "terraform.io/builtin/terraform", &machines),
        block(
            "talos_machine_configuration_apply",
            "node",
            "registry.opentofu.org/siderolabs/talos",
            &applies,
        ),
        block("null_resource", "other", "registry.opentofu.org/hashicorp/null", &[other]),
    ]
}

/// A state with its rows.
struct State {
    body: Vec<u8>,
    plain: PlainState,
}

impl State {
    fn of(mappings: &Mappings, blocks: &[Value]) -> Self {
        let document = json!({
            "version": 4, "terraform_version": "1.12.6", "serial": 1, "lineage": "l", "outputs": {},
            "resources": blocks,
        });
        Self::read(mappings, document.to_string().into_bytes()).unwrap()
    }

    fn read(mappings: &Mappings, body: Vec<u8>) -> Option<Self> {
        match read_with(&body, &|resource_type| mappings.secret_rules(resource_type)) {
            Ok(Document::Plain(plain)) => Some(Self { body, plain }),
            Ok(Document::Encrypted(_)) | Err(_) => None,
        }
    }

    fn project(&self, mappings: &Mappings) -> Projection {
        project(mappings, VersionNumber::FIRST, &self.body, &self.plain.rows)
    }

    /// Projects a machine from the objects that feed it.
    fn alone(&self, mappings: &Mappings, machine: &Machine) -> Option<Machine> {
        let mut objects = Vec::new();
        for (address, deposed) in &machine.fed_by {
            let row =
                self.plain.rows.iter().find(|row| row.address == *address && row.deposed == *deposed)?;
            let span = usize::try_from(row.span.start).ok()?..usize::try_from(row.span.end).ok()?;
            objects.push((row.clone(), self.body.get(span)?));
        }
        project_machine(mappings, &machine.key(), &objects)
    }
}

/// Has the places in a state that a projection tells of be the same for every order of its objects.
fn without_places(mut projection: Projection) -> (Projection, Vec<(String, Source)>) {
    let mut sources = Vec::new();
    let mut cut = |provenance: &mut Provenance| {
        sources.extend(std::mem::take(provenance).iter().map(|(field, source)| {
            let inside = source.path.match_indices(']').nth(1).and_then(|(at, _)| source.path.get(at + 1..));
            (field.to_owned(), Source { path: inside.unwrap_or_default().to_owned(), ..source })
        }));
    };
    cut(&mut projection.cluster.provenance);
    for machine in &mut projection.machines {
        cut(&mut machine.provenance);
    }
    (projection, sources)
}

/// Puts blocks, and the instances of each, in another order.
fn turned(blocks: &[Value], order: &[Index]) -> Vec<Value> {
    let shuffled = |items: &[Value]| {
        let mut items = items.to_vec();
        for (place, index) in (1..items.len()).zip(order.iter().cycle()) {
            items.swap(place, index.index(place + 1));
        }
        items
    };
    let mut blocks = shuffled(blocks);
    for block in &mut blocks {
        let instances =
            block["instances"].as_array().map(|instances| shuffled(instances)).unwrap_or_default();
        block["instances"] = Value::Array(instances);
    }
    blocks
}

/// Replaces one value of a tree by another.
fn spoil(tree: &mut Value, way: &[Index], odd: &Value) {
    let Some((step, rest)) = way.split_first() else {
        *tree = odd.clone();
        return;
    };
    let below = match tree {
        Value::Object(members) if !members.is_empty() => {
            let place = step.index(members.len());
            members.values_mut().nth(place)
        }
        Value::Array(items) if !items.is_empty() => {
            let place = step.index(items.len());
            items.get_mut(place)
        }
        _ => None,
    };
    match below {
        Some(below) => spoil(below, rest, odd),
        None => *tree = odd.clone(),
    }
}

fn odd() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        Value::Null,
        json!(true),
        json!(-0.5e300),
        json!(""),
        json!("dhcp"),
        json!("\u{0}ä\n"),
        json!("999.999.999.999"),
        json!([]),
        json!([[["x"]]]),
        json!({}),
        json!({"value": {"value": 1, "type": "number"}, "type": "string"}),
    ])
}

fn plain_fixtures() -> &'static BTreeMap<String, State> {
    static FIXTURES: OnceLock<BTreeMap<String, State>> = OnceLock::new();
    FIXTURES.get_or_init(|| {
        let fixtures = states().into_iter().filter(|fixture| fixture.expect.accept() == Accept::Project);
        fixtures
            .map(|fixture| (fixture.name.clone(), State::read(mappings(), fixture.body.clone()).unwrap()))
            .collect()
    })
}

/// Large enough to be gone through on several cores: each machine is as it is when made by itself.
#[test]
fn what_several_cores_make_is_what_one_makes() {
    let mappings = mappings();
    let plan = |number: u8| Plan {
        has_resource: true,
        applies: usize::from(number % 3),
        role: None,
        group: "pool",
        external: number.is_multiple_of(2),
        cpus: Some(number),
        tainted: false,
    };
    let mut all = Vec::new();
    // Names and addresses are told apart by the module.
    for module in 0..12 {
        for mut block in blocks(&(1..=200).map(plan).collect::<Vec<_>>()) {
            let text = block.to_string().replace("10.0.0.", &format!("10.0.{module}."));
            block = serde_json::from_str(&text).unwrap();
            block["module"] = json!(format!("module.m[{module}]"));
            all.push(block);
        }
    }
    let state = State::of(mappings, &all);
    assert!(state.plain.rows.len() > 4_000);
    let projection = state.project(mappings);
    assert_eq!(projection.machines.len(), 12 * 200);
    for machine in projection.machines.iter().step_by(37) {
        assert_eq!(state.alone(mappings, machine).as_ref(), Some(machine));
    }
    assert_eq!(state.project(mappings), projection);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_declared_machine_comes_out_once(
        plans in prop::collection::vec(plan(), 0..9),
        order in prop::collection::vec(any::<Index>(), 1..20),
    ) {
        let mappings = mappings();
        let state = State::of(mappings, &turned(&blocks(&plans), &order));
        let projection = state.project(mappings);
        prop_assert_eq!(projection.machines.len(), plans.len());
        for (number, plan) in plans.iter().enumerate() {
            let address = if plan.has_resource {
                format!("terraform_data.node[\"m{number}\"]")
            } else {
                format!("talos_machine_configuration_apply.node[\"a{number}-0\"]")
            };
            let machine = projection.machines.iter().find(|machine| machine.address.as_str() == address);
            let machine = machine.unwrap();
            let merged = if plan.has_resource { plan.applies } else { plan.applies - 1 };
            prop_assert_eq!(machine.also_known_as.len(), merged);
            let of_kind = |kind| machine.addresses.iter().filter(|address| address.kind == kind).count();
            prop_assert_eq!(of_kind(AddressType::InternalIp), 1);
            if plan.has_resource {
                prop_assert_eq!(&machine.object_name, &format!("n{number}"));
                prop_assert_eq!((machine.role, machine.tainted), (plan.role, plan.tainted));
                prop_assert_eq!(of_kind(AddressType::ExternalIp), usize::from(plan.external));
                let cpus = machine.cpus.as_ref().map(ToString::to_string);
                prop_assert_eq!(cpus, plan.cpus.map(|cpus| cpus.to_string()));
                let group = projection.node_groups.iter().find(|group| Some(&*group.object_name) == machine.node_group.as_deref());
                prop_assert!(group.unwrap().machines.contains(&machine.object_name));
            }
        }
    }

    #[test]
    fn order_does_not_matter_and_a_single_read_is_the_same(
        plans in prop::collection::vec(plan(), 0..9),
        order in prop::collection::vec(any::<Index>(), 1..20),
    ) {
        let mappings = mappings();
        let blocks = blocks(&plans);
        let (state, other) = (State::of(mappings, &blocks), State::of(mappings, &turned(&blocks, &order)));
        let (projection, turned) = (state.project(mappings), other.project(mappings));
        for machine in &turned.machines {
            prop_assert_eq!(other.alone(mappings, machine), Some(machine.clone()));
        }
        prop_assert!(diff(&projection, &turned).is_empty());
        prop_assert_eq!(identified(&projection), identified(&turned));
        prop_assert_eq!(without_places(projection), without_places(turned));
    }

    #[test]
    fn an_odd_attribute_costs_no_other_object(
        plans in prop::collection::vec(plan(), 1..9),
        (victim, way) in (any::<Index>(), prop::collection::vec(any::<Index>(), 0..4)),
        odd in odd(),
    ) {
        let mappings = mappings();
        let mut blocks = blocks(&plans);
        let before = State::of(mappings, &blocks).project(mappings);
        let instances: Vec<&mut Value> =
            blocks.iter_mut().filter_map(|block| block["instances"].as_array_mut()).flatten().collect();
        let count = instances.len();
        let key = instances.into_iter().nth(victim.index(count)).map(|instance| {
            spoil(&mut instance["attributes"], &way, &odd);
            instance["index_key"].as_str().map(ToOwned::to_owned).unwrap_or_default()
        });
        let number = |text: &str| text.trim_start_matches(['m', 'a']).split('-').next().map(ToOwned::to_owned);
        let number = key.and_then(|key| number(&key)).unwrap_or_default();
        let state = State::of(mappings, &blocks);
        let after = state.project(mappings);
        for machine in &before.machines {
            let is_untouched = !machine.address.as_str().contains(&format!("[\"m{number}\"]"))
                && !machine.address.as_str().contains(&format!("[\"a{number}-"));
            if is_untouched {
                let now = after.machines.iter().find(|now| now.address == machine.address);
                prop_assert_eq!(now.map(Machine::spec_fields), Some(machine.spec_fields()));
            }
        }
        for machine in &after.machines {
            prop_assert_eq!(state.alone(mappings, machine), Some(machine.clone()));
        }
    }

    #[test]
    fn spoilt_fixtures_are_projected_all_the_same(
        which in any::<Index>(),
        way in prop::collection::vec(any::<Index>(), 1..6),
        odd in odd(),
    ) {
        let mappings = mappings();
        let fixtures: Vec<_> = plain_fixtures().values().collect();
        let mut document: Value = serde_json::from_slice(&which.get(&fixtures).body).unwrap();
        let instances = document["resources"].as_array_mut().into_iter().flatten();
        let mut attributes: Vec<&mut Value> = instances
            .filter_map(|block| block["instances"].as_array_mut())
            .flatten()
            .map(|instance| &mut instance["attributes"])
            .collect();
        if let (Some(first), false) = (way.first(), attributes.is_empty()) {
            let place = first.index(attributes.len());
            spoil(attributes[place], &way[1..], &odd);
        }
        let state = State::read(mappings, document.to_string().into_bytes()).unwrap();
        for machine in &state.project(mappings).machines {
            prop_assert_eq!(state.alone(mappings, machine), Some(machine.clone()));
        }
    }
}

#[test]
fn fixtures_in_any_order_are_projected_to_the_same() {
    let mappings = mappings();
    for (name, state) in plain_fixtures() {
        let mut document: Value = serde_json::from_slice(&state.body).unwrap();
        for block in document["resources"].as_array_mut().into_iter().flatten() {
            block["instances"].as_array_mut().into_iter().for_each(|instances| instances.reverse());
        }
        document["resources"].as_array_mut().into_iter().for_each(|blocks| blocks.reverse());
        let turned = State::read(mappings, document.to_string().into_bytes()).unwrap();
        let (projection, turned) = (state.project(mappings), turned.project(mappings));
        assert_eq!(without_places(projection), without_places(turned), "{name}");
    }
}
