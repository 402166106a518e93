//! Over states that declare machines: the projection is that of the model, whatever the order, and whatever else is odd.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestError, TestRunner};
use rezus_core::declared::VersionNumber;
use rezus_core::declared::document::{Document, PlainState, read_with};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projection::{diff, identified, project, project_machine};
use rezus_core::declared::resource::{Machine, Projection};
use rezus_testkit::canary::Canary;
use rezus_testkit::strategy::machines::{DeclaredState, MachineModel, declared_states};
use serde_json::{Value, json};

use super::object_of;

/// How many cases there are of each law by default.
const CASES: u32 = 64;
/// How many there are of all of them together with `DRILLS=full`.
const DRILL: u32 = 1_000_000;

type Law = fn(&Case) -> Result<(), TestCaseError>;

const LAWS: [(&str, Law); 6] = [
    ("it is that of the model", it_is_that_of_the_model),
    ("order does not matter", order_does_not_matter),
    ("it is always the same", it_is_always_the_same),
    ("an odd attribute costs nothing else", an_odd_attribute_costs_nothing_else),
    ("a machine by itself is the same", a_machine_by_itself_is_the_same),
    ("no secret is told", no_secret_is_told),
];

/// A state, and what is done to it.
#[derive(Clone, Debug)]
struct Case {
    state: DeclaredState,
    order: u64,
    way: Vec<usize>,
    odd: Value,
}

fn cases() -> impl Strategy<Value = Case> {
    let odd = select(vec![
        Value::Null,
        json!(true),
        json!(-0.5e300),
        json!(""),
        json!("dhcp"),
        json!("\u{0}\u{e4}\n"),
        json!("999.999.999.999"),
        json!([]),
        json!([[["x"]]]),
        json!({}),
        // Too short to be looked for elsewhere, wherever it is that secrets are.
        json!(["a", {"role": ["cp"]}]),
        json!({"value": {"value": 1, "type": "number"}, "type": "string"}),
    ]);
    let way = prop::collection::vec(0..1_000_usize, 1..5);
    (declared_states(), any::<u64>(), way, odd).prop_map(|(state, order, way, odd)| Case {
        state,
        order,
        way,
        odd,
    })
}

fn mappings() -> &'static Mappings {
    static MAPPINGS: OnceLock<Mappings> = OnceLock::new();
    MAPPINGS.get_or_init(Mappings::built_in)
}

/// A state with its rows and its projection.
struct Projected {
    body: Vec<u8>,
    plain: PlainState,
    projection: Projection,
}

impl Projected {
    fn of(body: Vec<u8>) -> Result<Self, TestCaseError> {
        let mappings = mappings();
        match read_with(&body, &|resource_type| mappings.secret_rules(resource_type)) {
            Ok(Document::Plain(plain)) => {
                let projection = project(mappings, VersionNumber::FIRST, &body, &plain.rows);
                Ok(Self { body, plain, projection })
            }
            other => Err(TestCaseError::fail(format!("no state: {other:?}"))),
        }
    }

    /// Projects a machine from the objects that feed it, copied out of the state.
    fn alone(&self, machine: &Machine) -> Option<Machine> {
        let mut objects = Vec::new();
        for (address, deposed) in &machine.fed_by {
            let is_it = |row: &&_| {
                let row: &rezus_core::declared::index::IndexRow = row;
                row.address == *address && row.deposed == *deposed
            };
            let row = self.plain.rows.iter().find(is_it)?;
            objects.push((row.clone(), object_of(&self.body, row).to_vec()));
        }
        project_machine(mappings(), &machine.key(), &objects)
    }

    fn machine(&self, address: &str) -> Option<&Machine> {
        self.projection.machines.iter().find(|machine| machine.address.as_str() == address)
    }
}

fn agree(found: &Machine, model: &MachineModel) -> Result<(), TestCaseError> {
    let address = &model.address;
    let addresses: BTreeSet<_> =
        found.addresses.iter().map(|address| (address.kind, address.address.clone())).collect();
    let known_as: BTreeSet<_> = found.also_known_as.iter().map(ToString::to_string).collect();
    let problems: BTreeSet<_> = found.problems.iter().map(|problem| problem.field.as_str()).collect();
    prop_assert_eq!(&*found.provider, model.provider, "{}", address);
    prop_assert_eq!(&found.name, &model.name, "name of {}", address);
    prop_assert_eq!(&found.hostname, &model.hostname, "hostname of {}", address);
    prop_assert_eq!(found.role, model.role, "role of {}", address);
    prop_assert_eq!(&found.provider_id, &model.provider_id, "ID of {}", address);
    prop_assert_eq!(found.cpus.as_ref().map(ToString::to_string), model.cpus.clone(), "CPUs of {}", address);
    prop_assert_eq!(addresses, model.addresses.clone(), "addresses of {}", address);
    prop_assert_eq!(found.addresses.len(), model.addresses.len(), "addresses of {}", address);
    prop_assert_eq!(known_as, model.also_known_as.clone(), "other names of {}", address);
    prop_assert_eq!(found.tainted, model.tainted, "{}", address);
    prop_assert_eq!(found.node_group.is_some(), model.group.is_some(), "group of {}", address);
    prop_assert_eq!(problems, model.problems.clone(), "problems of {}: {:?}", address, found.problems);
    let fields: BTreeSet<_> = found.provenance.iter().map(|(field, _)| field.to_owned()).collect();
    for (field, is_there) in [
        ("name", model.name.is_some()),
        ("hostname", model.hostname.is_some()),
        ("role", model.role.is_some()),
        ("providerID", model.provider_id.is_some()),
        ("nodeGroup", model.group.is_some()),
        ("addresses[0].address", !model.addresses.is_empty()),
        ("alsoKnownAs[0]", !model.also_known_as.is_empty()),
    ] {
        prop_assert_eq!(fields.contains(field), is_there, "provenance of {} of {}", field, address);
    }
    Ok(())
}

fn it_is_that_of_the_model(case: &Case) -> Result<(), TestCaseError> {
    let found = Projected::of(case.state.body())?;
    let model = &case.state.model;
    let machines = &found.projection.machines;
    let names: Vec<_> = machines.iter().map(|machine| machine.address.as_str()).collect();
    prop_assert_eq!(machines.len(), model.machines.len(), "{:?}", names);
    for model in &model.machines {
        let machine = found.machine(&model.address);
        let Some(machine) = machine else {
            return Err(TestCaseError::fail(format!("{} is not among {names:?}", model.address)));
        };
        agree(machine, model)?;
    }
    let unmapped: BTreeMap<_, _> = found.projection.cluster.unmapped.iter().cloned().collect();
    prop_assert_eq!(&unmapped, &model.unmapped);

    // Groups are those of the model, and named after it.
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for machine in &model.machines {
        let name = found.machine(&machine.address).and_then(|found| found.node_group.as_deref());
        if let (Some(group), Some(name)) = (&machine.group, name) {
            groups.entry(group).or_default().insert(name);
        }
    }
    for (group, names) in &groups {
        prop_assert_eq!(names.len(), 1, "{} is {:?}", group, names);
        let is_label = group.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        prop_assert!(!is_label || names.contains(group), "{group} is {names:?}");
    }
    prop_assert_eq!(groups.len(), found.projection.node_groups.len());
    let counted: u64 = found.projection.node_groups.iter().map(|group| group.count).sum();
    prop_assert_eq!(usize::try_from(counted), Ok(machines.len()));
    let names: BTreeSet<_> = machines.iter().map(|machine| &machine.object_name).collect();
    prop_assert_eq!(names.len(), machines.len(), "names are unique");
    Ok(())
}

fn order_does_not_matter(case: &Case) -> Result<(), TestCaseError> {
    let found = Projected::of(case.state.body())?;
    let other = Projected::of(case.state.shuffled(case.order))?;
    prop_assert!(diff(&found.projection, &other.projection).is_empty());
    prop_assert_eq!(identified(&found.projection), identified(&other.projection));
    for (machine, other) in found.projection.machines.iter().zip(&other.projection.machines) {
        prop_assert_eq!(machine.spec_fields(), other.spec_fields());
        prop_assert_eq!(machine.key(), other.key());
        prop_assert_eq!(&machine.fed_by, &other.fed_by);
        let places = |machine: &Machine| -> Vec<_> {
            let found = machine.provenance.iter();
            found.map(|(field, source)| (field.to_owned(), source.address, source.rule)).collect()
        };
        prop_assert_eq!(places(machine), places(other));
    }
    prop_assert_eq!(&found.projection.node_groups, &other.projection.node_groups);
    Ok(())
}

fn it_is_always_the_same(case: &Case) -> Result<(), TestCaseError> {
    let found = Projected::of(case.state.body())?;
    let again = Projected::of(case.state.body())?;
    prop_assert_eq!(found.projection, again.projection);
    Ok(())
}

fn an_odd_attribute_costs_nothing_else(case: &Case) -> Result<(), TestCaseError> {
    let spoilt = case.state.spoilt(&case.way, &case.odd);
    let before = Projected::of(case.state.body())?;
    let after = Projected::of(spoilt.body)?;
    let Some(spoilt) = spoilt.spoilt else { return Ok(()) };
    for model in &case.state.model.machines {
        // What holds a copy of another object's secret may be shown when that is none any more.
        if model.described_by.contains(&spoilt) || spoilt == "random_password.shared" {
            continue;
        }
        let was = before.machine(&model.address).map(Machine::spec_fields);
        let is = after.machine(&model.address).map(Machine::spec_fields);
        prop_assert!(is.is_some(), "{} went with {}", model.address, spoilt);
        prop_assert_eq!(was, is, "{} changed with {}", &model.address, &spoilt);
    }
    // Whatever became of it, it is a whole projection.
    for machine in &after.projection.machines {
        prop_assert_eq!(after.alone(machine), Some(machine.clone()));
    }
    Ok(())
}

fn a_machine_by_itself_is_the_same(case: &Case) -> Result<(), TestCaseError> {
    let found = Projected::of(case.state.shuffled(case.order))?;
    for machine in &found.projection.machines {
        prop_assert_eq!(found.alone(machine), Some(machine.clone()));
    }
    Ok(())
}

fn no_secret_is_told(case: &Case) -> Result<(), TestCaseError> {
    let found = Projected::of(case.state.body())?;
    let secrets = &case.state.model.secrets;
    if secrets.is_empty() {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&found.body);
    prop_assert!(secrets.iter().all(|secret| body.contains(secret.as_str())), "the law is about something");
    let mut told = format!("{:?}", found.projection);
    for machine in &found.projection.machines {
        let _ = write!(told, "{:?}{:?}", machine.spec_fields(), machine.key());
    }
    if let Some(leak) = Canary::new(secrets).leaks(told.as_bytes()).first() {
        let secret = secrets.get(leak.secret);
        return Err(TestCaseError::fail(format!("{leak}, {secret:?}, in {told}")));
    }
    Ok(())
}

/// Runs a law over so many states, and returns over how many it did.
fn run(name: &str, law: Law, count: u32) -> Result<u32, String> {
    let done = AtomicU32::new(0);
    let config = ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&cases(), |case| {
        done.fetch_add(1, Ordering::Relaxed);
        law(&case)
    });
    match outcome {
        Ok(()) => Ok(done.into_inner()),
        Err(TestError::Fail(reason, case)) => Err(format!("{name}: {reason}\n{case:?}")),
        Err(TestError::Abort(reason)) => Err(format!("{name}: {reason}")),
    }
}

#[test]
fn projections_keep_their_laws() {
    let is_full = std::env::var("DRILLS").as_deref() == Ok("full");
    if !is_full {
        for (name, law) in LAWS {
            assert_eq!(run(name, law, CASES), Ok(CASES));
        }
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap());
    let shares = threads * u32::try_from(LAWS.len()).unwrap();
    let started = std::time::Instant::now();
    let done: u32 = std::thread::scope(|scope| {
        let each = || {
            let done = LAWS.iter().map(|(name, law)| run(name, *law, DRILL.div_ceil(shares)));
            done.sum::<Result<u32, String>>()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(each)).collect();
        running.into_iter().map(|thread| thread.join().unwrap().unwrap()).sum()
    });
    let seconds = started.elapsed().as_secs_f64();
    // Past the harness, which keeps to itself what a test that succeeds prints.
    let line = format!("drill: {done} cases of {} laws of the projection in {seconds:.0} s\n", LAWS.len());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert!(done >= DRILL);
}
