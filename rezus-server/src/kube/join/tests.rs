//! Laws of what is put together: what is observed and what is declared never move one another.

use std::time::Duration;

use proptest::prelude::*;
use rezus_core::observed::facts::{Facts, Holds, Kubernetes, NodeCondition};
use rezus_core::observed::{Failure, Pace, Reading, Source};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::*;
use crate::kube::hub::{Hub, Part};
use crate::kube::item::{Draft, Item, Row};
use crate::kube::object::Object;

const PACES: Paces = Paces {
    kubernetes: Pace(Duration::from_secs(30)),
    talos: Pace(Duration::from_mins(1)),
    node_metrics: Pace(Duration::from_mins(1)),
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_796_065_837_000 + seconds * 1_000)
}

fn node(name: &str, ready: Holds) -> Node {
    let ready = NodeCondition {
        kind: "Ready".to_owned(),
        status: ready,
        reason: "Said".to_owned(),
        message: String::new(),
        since: None,
    };
    Node { name: name.to_owned(), conditions: vec![ready], ..Node::default() }
}

fn reading(nodes: Vec<Node>, now: Timestamp) -> Reading {
    reading_of(0, nodes, now)
}

/// The same of one of several clusters, the clock of each of which is another one's.
fn reading_of(cluster: u8, nodes: Vec<Node>, now: Timestamp) -> Reading {
    let cluster_uid = Some(format!("uid-{cluster}"));
    let skew_ms = Some(i64::from(cluster) * 4_000);
    let facts = Kubernetes { nodes: Some(nodes), cluster_uid, skew_ms, ..Kubernetes::default() };
    Reading { started: now, finished: now, facts: Some(Facts::Kubernetes(facts)), failures: Vec::new() }
}

fn machine(name: &str) -> (String, MachineSpec) {
    (name.to_owned(), MachineSpec { hostname: Some(name.to_owned()), ..MachineSpec::default() })
}

/// What is declared of a machine, as it is shown.
fn draft(name: &str, zone: u8) -> Draft {
    let object = Object::new(&MACHINE, name, vec![("zone", format!("\"{zone}\""))])
        .within("web")
        .created(format!("uid-of-{name}"), at(0))
        .of_generation(u64::from(zone));
    let row = Row::default().text(Some(name)).observed().observed();
    Draft::new(&MACHINE, object, Vec::new(), row).until_observed(observed::machine_not_observed(at(0)))
}

#[derive(Deserialize)]
struct Whole {
    metadata: Box<RawValue>,
    spec: Box<RawValue>,
    status: Box<RawValue>,
}

/// The bytes of an object: those that are declared, but for the resource version, and those of its status.
fn bytes(item: &Item) -> (String, (String, String)) {
    let whole: Whole = serde_json::from_slice(item.shown().json()).unwrap();
    let version = format!("{:016}", item.version());
    let metadata = whole.metadata.get().replacen(&version, "", 1);
    (item.name().to_owned(), (metadata + whole.spec.get(), whole.status.get().to_owned()))
}

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    /// Nodes are read: which are there, and what they say.
    Reads(BTreeMap<u8, u8>),
    /// They cannot be read.
    Fails,
    /// Another cluster answers from now on.
    Rebuilds(u8),
    /// Another state: which machines, and in which zones.
    Declares(BTreeMap<u8, u8>),
    /// Nothing, for so many seconds.
    Passes(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let machines = || proptest::collection::btree_map(0..5_u8, 0..3_u8, 0..5);
    prop_oneof![
        machines().prop_map(Step::Reads),
        Just(Step::Fails),
        (0..3_u8).prop_map(Step::Rebuilds),
        machines().prop_map(Step::Declares),
        (1..400_i64).prop_map(Step::Passes),
    ]
}

/// All that is shown, and what it comes from.
struct World {
    hub: Hub,
    picture: Picture,
    memory: Memory,
    declared: Declared,
    cluster: u8,
    now: i64,
}

impl World {
    fn shown(&self) -> BTreeMap<String, (String, String)> {
        self.hub.snapshot(&MACHINE).items.iter().map(|item| bytes(item)).collect()
    }

    fn join(&mut self) -> Joined {
        join(&self.declared, Some(&self.picture), &mut self.memory, PACES, at(self.now))
    }

    fn version(&self) -> u64 {
        self.hub.newest() + 1
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Reads(nodes) => {
                let word = |said: &u8| [Holds::True, Holds::False, Holds::Unknown][usize::from(*said)];
                let nodes = nodes.iter().map(|(name, said)| node(&format!("m{name}"), word(said))).collect();
                self.picture.take(Source::Kubernetes, reading_of(self.cluster, nodes, at(self.now)));
            }
            Step::Fails => {
                let failures = vec![("all".to_owned(), Failure::CredentialMissing)];
                let now = at(self.now);
                let reading = Reading { started: now, finished: now, facts: None, failures };
                self.picture.take(Source::Kubernetes, reading);
            }
            Step::Declares(machines) => {
                let named = |(name, zone): (&u8, &u8)| (format!("m{name}"), *zone);
                let machines: Vec<_> = machines.iter().map(named).collect();
                let drafts = machines.iter().map(|(name, zone)| draft(name, *zone)).collect();
                self.hub.publish(&MACHINE, Part::Namespace("web"), drafts, self.version());
                let names = machines.iter().map(|(name, _)| name.clone()).collect();
                let group = NodeGroupSpec { machines: names, ..NodeGroupSpec::default() };
                self.declared.groups = vec![("all".to_owned(), group)];
                self.declared.machines = machines.iter().map(|(name, _)| machine(name)).collect();
            }
            Step::Rebuilds(cluster) => self.cluster = cluster,
            Step::Passes(seconds) => self.now += seconds,
        }
    }
}

proptest! {
    /// Whatever is read, no byte of what is declared moves; whatever is declared, no byte of what is observed; and what is
    /// shown already is not shown again.
    #[test]
    fn neither_plane_moves_the_other(steps in proptest::collection::vec(step(), 1..24)) {
        let mut world = World {
            hub: Hub::new(1_000),
            picture: Picture::default(),
            memory: Memory::default(),
            declared: Declared::default(),
            cluster: 0,
            now: 0,
        };
        for step in steps {
            let before = world.shown();
            let picture = world.picture.clone();
            let declares = matches!(step, Step::Declares(_));
            world.take(step.clone());
            if declares {
                prop_assert_eq!(&world.picture, &picture, "{:?}", step);
                for (name, (_, status)) in world.shown() {
                    if let Some((_, earlier)) = before.get(&name) {
                        prop_assert_eq!(earlier, &status, "{}: {:?}", name, step);
                    }
                }
            }
            let before = world.shown();
            let joined = world.join();
            world.hub.observe(&MACHINE, "web", &joined.machines, world.version());
            let after = world.shown();
            prop_assert_eq!(before.len(), after.len());
            for (name, (declared, _)) in &after {
                prop_assert_eq!(&before[name].0, declared, "{}: {:?}", name, step);
            }
            let again = world.join();
            prop_assert!(again.machines.is_empty() && again.groups.is_empty() && again.tenant.is_none(), "{:?}", again);
            prop_assert!(again.events.is_empty(), "{:?}", again);
        }
    }
}

#[test]
fn ten_thousand_machines_that_stay_as_they_are_make_fewer_changes_than_there_are_machines() {
    const MACHINES: usize = 10_000;

    let names: Vec<String> = (0..MACHINES).map(|number| format!("m{number:05}")).collect();
    let declared =
        Declared { machines: names.iter().map(|name| machine(name)).collect(), groups: Vec::new() };
    let nodes: Vec<Node> = names.iter().map(|name| node(name, Holds::True)).collect();
    let (mut picture, mut memory) = (Picture::default(), Memory::default());
    let mut cycle = |number: i64| {
        // A turn takes a second beside the 30 from one to the next.
        let now = at(number * 31);
        picture.take(Source::Kubernetes, reading(nodes.clone(), now));
        let joined = join(&declared, Some(&picture), &mut memory, PACES, now);
        joined.machines.len()
            + joined.groups.len()
            + usize::from(joined.tenant.is_some())
            + joined.events.len()
    };
    assert!(cycle(0) > MACHINES);
    let changes: usize = (1..=10).map(&mut cycle).sum();
    assert!(changes < MACHINES, "{changes}");
}

#[test]
fn what_is_gone_is_shown_for_a_day_and_then_forgotten() {
    let declared = Declared { machines: vec![machine("a")], groups: Vec::new() };
    let (mut picture, mut memory) = (Picture::default(), Memory::default());
    let mut turn = |seconds: i64, nodes: &[&str]| {
        let nodes = nodes.iter().map(|name| node(name, Holds::True)).collect();
        picture.take(Source::Kubernetes, reading(nodes, at(seconds)));
        join(&declared, Some(&picture), &mut memory, PACES, at(seconds))
    };
    let gone = |joined: &Joined| {
        let reasons = joined.events.iter().map(|event| event.reason.as_str());
        reasons.filter(|reason| *reason == "Gone").count()
    };
    assert_eq!(gone(&turn(0, &["a", "old"])), 0);
    let joined = turn(30, &["a"]);
    assert_eq!((gone(&joined), joined.tenant.is_some()), (1, true));
    let day = 24 * 3_600;
    // Nothing else comes to pass then: it is looked at because of that.
    let joined = turn(day, &["a"]);
    assert_eq!((gone(&joined), joined.tenant.is_some()), (0, true));
    let joined = turn(day + 29, &["a"]);
    assert_eq!((joined.tenant.is_some(), joined.next_turn), (false, Some(at(day + 30))));
    assert!(turn(day + 30, &["a"]).tenant.is_some());
    assert!(turn(day + 31, &["a"]).tenant.is_none());
}
