//! What holds of every projection, whatever was found in a state.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// An object, from small pools: values meet each other often.
#[derive(Clone, Debug)]
struct Plan {
    kind: Kind,
    deposed: bool,
    element: Option<u8>,
    ips: Vec<&'static str>,
    shared: Option<&'static str>,
    fields: Vec<(Field, &'static str, i32)>,
    reads: Vec<prop::sample::Index>,
    provider: &'static str,
}

const IPS: [&str; 9] = [
    "10.0.0.1",
    "10.0.0.2",
    "10.0.0.100",
    "198.51.100.1",
    "::ffff:198.51.100.1",
    "fd00::1",
    "fd00:0::1",
    "host-1",
    "HOST-1.",
];

fn field() -> impl Strategy<Value = (Field, &'static str, i32)> {
    let choices = |field: Field, values: &'static [&'static str]| (Just(field), prop::sample::select(values));
    let pair = prop_oneof![
        choices(Field::Name, &["a", "b", "A", "a-1", "ä", "", "-"]),
        choices(Field::Hostname, &["host-1", "host-2", "10.0.0.1"]),
        choices(Field::Role, &["controlplane", "worker", "king"]),
        choices(Field::NodeGroup, &["g", "G", "g h", ""]),
        choices(Field::ProviderId, &["1", "2"]),
        choices(Field::MemoryMib, &["1024", "1e3", "0.5", "-1", "99999999999999999999"]),
        choices(Field::Cpus, &["2", "1.50", "x"]),
        choices(Field::Power, &["running", "on"]),
        choices(
            Field::Endpoint,
            &["https://10.0.0.100:6443", "https://[fd00::1]:6443", "https://x", "://", "["]
        ),
        choices(Field::KubernetesVersion, &["v1", "v2"]),
    ];
    (pair, 0..3).prop_map(|((field, value), precedence)| (field, value, precedence))
}

fn plan() -> impl Strategy<Value = Plan> {
    let kind = prop_oneof![
        4 => Just(Kind::Machine),
        4 => Just(Kind::TalosMachine),
        1 => Just(Kind::Cluster),
    ];
    (
        (kind, prop::bool::weighted(0.1), prop::option::weighted(0.2, 0..3_u8)),
        prop::collection::vec(prop::sample::select(IPS.as_slice()), 0..4),
        prop::option::weighted(0.1, prop::sample::select(IPS.as_slice())),
        prop::collection::vec(field(), 0..6),
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        prop::sample::select(
            ["provider[\"a\"]", "provider[\"a\"].x", "module.m.provider.aws", "odd", ""].as_slice(),
        ),
    )
        .prop_map(|((kind, deposed, element), ips, shared, fields, reads, provider)| Plan {
            kind,
            deposed,
            element,
            ips,
            shared,
            fields,
            reads,
            provider,
        })
}

fn state_of(plans: &[Plan]) -> State {
    let mut state = State::default();
    for (number, plan) in plans.iter().enumerate() {
        let address = match plan.kind {
            Kind::Machine => format!("hcloud_server.n[{number}]"),
            Kind::TalosMachine => format!("talos_machine.n[\"k/{number}\"]"),
            Kind::Cluster => format!("data.talos_machine_configuration.c[{number}]"),
        };
        let fields: Vec<_> = plan.fields.iter().map(|(field, value, _)| (*field, *value)).collect();
        state = state.with(plan.kind, &address, &fields, &plan.ips).change(|extract| {
            extract.element = plan.element.map(|element| element.to_string());
            extract.shared_addresses.extend(plan.shared.map(ToOwned::to_owned));
            extract.read.extend(plan.reads.iter().map(|index| index.index(plans.len())));
            for (field, _, precedence) in &plan.fields {
                extract.fields.get_mut(field).unwrap().precedence = *precedence;
            }
        });
        state = state.change_row(|row| {
            plan.provider.clone_into(&mut row.provider);
            row.deposed = plan.deposed.then(|| "00000001".to_owned());
        });
        // A second element of the same object.
        if plan.element == Some(2) {
            let other = state.extracts.last().unwrap().clone();
            state.extracts.push(Extract { element: Some("other".to_owned()), ..other });
        }
    }
    state
}

fn known(_row: &IndexRow) -> Known {
    Known::Mapped
}

proptest! {
    #[test]
    fn order_does_not_matter_and_a_single_read_is_the_same(
        (plans, order) in prop::collection::vec(plan(), 0..14)
            .prop_flat_map(|plans| (Just((0..plans.len()).collect::<Vec<_>>()).prop_shuffle(), Just(plans)))
            .prop_map(|(order, plans)| (plans, order)),
    ) {
        let state = state_of(&plans);
        let projection = state.project();
        let mut shuffled = State::default();
        shuffled.rows.extend(order.iter().map(|row| state.rows[*row].clone()));
        let place = |row: usize| order.iter().position(|old| *old == row).unwrap();
        for extract in state.extracts.iter().rev() {
            let mut extract = extract.clone();
            extract.row = place(extract.row);
            extract.read.iter_mut().for_each(|row| *row = place(*row));
            extract.addresses.reverse();
            shuffled.extracts.push(extract);
        }
        prop_assert_eq!(from_extracts(VersionNumber::FIRST, &shuffled.rows, &shuffled.extracts, known), projection);
    }

    #[test]
    fn every_machine_is_counted_once_and_all_refer_to_each_other(plans in prop::collection::vec(plan(), 0..14)) {
        let state = state_of(&plans);
        let projection = state.project();
        let names: BTreeSet<_> = projection.machines.iter().map(|machine| &machine.object_name).collect();
        prop_assert_eq!(names.len(), projection.machines.len());
        prop_assert!(projection.machines.is_sorted_by(|a, b| a.object_name < b.object_name));
        let machines: BTreeSet<_> = projection.machines.iter().map(Machine::identity).collect();
        prop_assert_eq!(machines.len(), projection.machines.len());
        let current = state.extracts.iter().filter(|extract| state.rows[extract.row].deposed.is_none());
        for extract in current {
            let address = &state.rows[extract.row].address;
            let is_one = machines.contains(&identity(address, extract.element.as_deref()));
            let merged = (address.clone(), extract.element.clone());
            let mergers = projection.machines.iter().filter(|one| one.context.merged.contains(&merged)).count();
            match extract.kind {
                Kind::Machine => prop_assert!(is_one && mergers == 0),
                Kind::TalosMachine => prop_assert!(usize::from(is_one) + mergers <= 1),
                Kind::Cluster => prop_assert!(!is_one && mergers == 0),
            }
        }
        let grouped: u64 = projection.node_groups.iter().map(|group| group.count).sum();
        let members = projection.machines.iter().filter(|machine| machine.node_group.is_some()).count();
        prop_assert_eq!(usize::try_from(grouped).unwrap(), members);
        for machine in &projection.machines {
            prop_assert!(machine.problems.is_sorted() && machine.also_known_as.is_sorted());
            prop_assert!(machine.addresses.is_sorted_by(|a, b| a < b));
            for place in 0..machine.addresses.len() {
                let field = format!("addresses[{place}].address");
                prop_assert!(machine.provenance.get(&field).is_some());
            }
            for (_, source) in machine.provenance.iter() {
                let object = (source.address.clone(), source.deposed.clone());
                prop_assert!(machine.fed_by.contains(&object), "{} does not feed it", source.address);
            }
        }
        prop_assert!(diff(&projection, &projection).is_empty());
        prop_assert_eq!(identified(&projection).len(), 1 + projection.node_groups.len() + projection.machines.len());
    }

    #[test]
    fn names_of_others_stay_when_a_machine_goes(plans in prop::collection::vec(plan(), 1..14)) {
        // Each by itself: what merges is another question.
        let alone = |plan: &Plan| Plan { kind: Kind::Machine, element: None, deposed: false, ips: Vec::new(), ..plan.clone() };
        let plans: Vec<_> = plans.iter().map(alone).collect();
        let state = state_of(&plans);
        let before = state.project();
        let mut fewer = state;
        let gone = fewer.extracts.pop().unwrap();
        let name = gone.fields.get(&Field::Name).map(|found| &found.value);
        let after = fewer.project();
        for machine in &after.machines {
            let earlier = at(&before, machine.address.as_str());
            prop_assert!(earlier.object_name == machine.object_name || machine.name.as_ref() == name);
        }
    }

    #[test]
    fn no_text_is_too_odd_for_an_address(text in "\\PC{0,30}", parts in prop::collection::vec(
        prop::sample::select(["module", "provider", ".", "[", "]", "\"", "\\", "\\u00e4", "x", "0", "$${"].as_slice()), 0..12)) {
        for text in [text, parts.concat()] {
            super::super::providers::parse(&text);
            let state = State::default().cluster("talos_cluster.a", &[(Field::Endpoint, &text)]).machine(
                "hcloud_server.a", &[(Field::Name, &text), (Field::NodeGroup, &text)], &[&text]);
            state.project();
        }
    }
}
