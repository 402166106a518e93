//! What becomes a machine, and which of several values it gets.

use super::*;

const APPLY: &str = "talos_machine_configuration_apply.node[\"a\"]";

#[test]
fn an_apply_is_merged_into_the_machine_that_has_its_address() {
    for (machine, node) in [
        ("10.0.0.1", "10.0.0.1"),
        ("fd00:0:0::0001", "FD00::1"),
        ("198.51.100.7", "::ffff:198.51.100.7"),
        ("node-a.example", "Node-A.example."),
    ] {
        let state = State::default().machine("hcloud_server.a", &[(Field::Name, "a")], &[machine]).talos(
            APPLY,
            &[(Field::Role, "worker")],
            &[node],
        );
        let projection = state.project();
        let [one] = projection.machines.as_slice() else { panic!("{machine} {node}") };
        assert_eq!(one.also_known_as, [ResourceAddress::from_kept(APPLY)]);
        assert_eq!((one.role, one.name.as_deref()), (Some(Role::Worker), Some("a")));
        assert_eq!(one.provenance.get("role").unwrap().address.as_str(), APPLY);
        assert_eq!(one.provenance.get("alsoKnownAs[0]").unwrap().address.as_str(), APPLY);
        assert_eq!(one.addresses.len(), 1, "the node's address is there already");
        assert_eq!(one.fed_by.len(), 2);
    }
}

#[test]
fn an_apply_to_a_host_name_is_merged_into_the_host() {
    let state = State::default()
        .machine("hcloud_server.a", &[(Field::Hostname, "node-a")], &["10.0.0.1"])
        .talos(APPLY, &[], &["node-a"]);
    let projection = state.project();
    assert_eq!(projection.machines.len(), 1);
    assert_eq!(addresses(&projection.machines[0]), ["10.0.0.1", "node-a"]);
}

#[test]
fn applies_of_one_host_name_to_several_nodes_are_several_machines() {
    let named = [(Field::Hostname, "talos")];
    let state = State::default()
        .machine("hcloud_server.a", &named, &["10.0.0.1"])
        .talos("talos_machine.b", &named, &["10.0.0.2"])
        .talos("talos_machine.c", &named, &["10.0.0.3"]);
    assert_eq!(state.project().machines.len(), 3);
}

#[test]
fn an_apply_that_matches_none_is_a_machine_named_by_its_key() {
    let state = State::default()
        .machine("hcloud_server.a", &[(Field::Name, "a")], &["10.0.0.1"])
        .talos("talos_machine_configuration_apply.edge[\"edge-1\"]", &[], &["10.0.0.2"])
        .talos("talos_machine_configuration_apply.edge[3]", &[], &["10.0.0.3"]);
    let projection = state.project();
    assert_eq!(projection.machines.len(), 3);
    let edge = at(&projection, "talos_machine_configuration_apply.edge[\"edge-1\"]");
    assert_eq!((edge.name.as_deref(), &*edge.object_name), (Some("edge-1"), "edge-1"));
    assert_eq!(edge.provenance.get("name").unwrap().path, "$.resources[1].instances[0]");
    let numbered = at(&projection, "talos_machine_configuration_apply.edge[3]");
    assert_eq!(numbered.name, None);
    assert!(
        numbered.object_name.starts_with("talos-machine-configuration-apply-edge-3-"),
        "{}",
        numbered.object_name
    );
}

#[test]
fn applies_to_one_node_are_one_machine() {
    let state = State::default()
        .talos("talos_machine_configuration_apply.e[\"x\"]", &[(Field::Role, "worker")], &["10.0.0.2"])
        .precedence(Field::Role, 5)
        .talos("talos_machine.e[\"x\"]", &[(Field::Image, "img")], &["10.0.0.2"])
        .talos("talos_machine_configuration_apply.again", &[], &["10.0.0.2"]);
    let projection = state.project();
    let [one] = projection.machines.as_slice() else { panic!() };
    assert_eq!(one.address.as_str(), "talos_machine.e[\"x\"]");
    assert_eq!(one.also_known_as.len(), 2);
    assert_eq!((one.image.as_deref(), one.role), (Some("img"), Some(Role::Worker)));
}

#[test]
fn applies_of_one_node_are_merged_together() {
    let state = State::default()
        .machine("hcloud_server.a", &[], &["10.0.0.1"])
        .talos(APPLY, &[], &["10.0.0.1"])
        .talos("talos_machine.a", &[], &["10.0.0.1"]);
    let one = &state.project().machines[0];
    assert_eq!(
        one.also_known_as.iter().map(ResourceAddress::as_str).collect::<Vec<_>>(),
        ["talos_machine.a", APPLY]
    );
}

#[test]
fn an_apply_that_matches_two_machines_describes_neither() {
    let state = State::default()
        .machine("hcloud_server.a", &[], &["10.0.0.1", "10.9.9.9"])
        .machine("hcloud_server.b", &[], &["10.0.0.2", "10.9.9.9"])
        .machine("hcloud_server.c", &[], &["10.0.0.3", "10.9.9.9"])
        .talos(APPLY, &[(Field::Role, "worker")], &["10.9.9.9"]);
    let projection = state.project();
    assert_eq!(projection.machines.len(), 3, "nor is it one more machine");
    for (address, other) in [("hcloud_server.a", "hcloud_server.b"), ("hcloud_server.c", "hcloud_server.a")] {
        let machine = at(&projection, address);
        assert_eq!((&machine.role, machine.also_known_as.len(), machine.fed_by.len()), (&None, 0, 1));
        let reason = format!(
            "alsoKnownAs: {APPLY} has an address of this machine and of {other}: it is taken to describe neither"
        );
        assert_eq!(problems(machine), [reason]);
    }
}

#[test]
fn precedence_then_the_machine_then_the_address_decides() {
    let state = |machine, first, second| {
        State::default()
            .machine("hcloud_server.a", &[(Field::Image, "machine")], &["10.0.0.1"])
            .precedence(Field::Image, machine)
            .talos("talos_machine.a", &[(Field::Image, "first")], &["10.0.0.1"])
            .precedence(Field::Image, first)
            .talos("talos_machine.b", &[(Field::Image, "second")], &["10.0.0.1"])
            .precedence(Field::Image, second)
    };
    for (precedences, image) in
        [((0, 0, 0), "machine"), ((0, 1, 1), "first"), ((0, 1, 2), "second"), ((3, 1, 2), "machine")]
    {
        let projection = state(precedences.0, precedences.1, precedences.2).project();
        assert_eq!(projection.machines[0].image.as_deref(), Some(image));
    }
}

#[test]
fn a_conflict_of_roles_names_both_sources() {
    let state = State::default()
        .machine("hcloud_server.a", &[(Field::Role, "worker")], &["10.0.0.1"])
        .talos(APPLY, &[(Field::Role, "controlplane")], &["10.0.0.1"])
        .precedence(Field::Role, 10);
    let one = &state.project().machines[0];
    assert_eq!(one.role, Some(Role::ControlPlane));
    let reason = format!(
        "role: controlplane by {APPLY} (Role), which is believed, but worker by hcloud_server.a (Role)"
    );
    assert_eq!(problems(one), [reason]);
}

#[test]
fn an_odd_value_costs_its_field() {
    let fields = [
        (Field::Name, "a"),
        (Field::Role, "king"),
        (Field::Cpus, "many"),
        (Field::MemoryMib, "1.5"),
        (Field::Power, "on"),
        (Field::Region, ""),
    ];
    let one = &State::default().machine("hcloud_server.a", &fields, &[]).project().machines[0];
    assert_eq!((&one.role, &one.cpus, one.memory_mib, one.recorded_power), (&None, &None, None, None));
    assert_eq!((one.region.as_deref(), one.name.as_deref()), (None, Some("a")));
    assert_eq!(
        one.problems.iter().map(|problem| &*problem.field).collect::<Vec<_>>(),
        ["cpus", "memoryMiB", "recordedPower", "role"]
    );
    assert!(one.problems.iter().all(|problem| !problem.reason.contains("king")));
    assert!(one.provenance.get("role").is_none() && one.provenance.get("region").is_none());
}

#[test]
fn a_number_that_a_double_does_not_hold_is_odd() {
    let cpus = |text| {
        let one =
            &State::default().machine("hcloud_server.a", &[(Field::Cpus, text)], &[]).project().machines[0];
        (one.cpus.as_ref().map(ToString::to_string), problems(one))
    };
    for (text, digits) in
        [("123456789012345", "123456789012345"), ("0.5", "0.5"), ("1e14", "100000000000000")]
    {
        assert_eq!(cpus(text), (Some(digits.to_owned()), Vec::new()), "{text}");
    }
    for text in ["1e15", "1e400", "1234567890.123456", "1e-15"] {
        let (found, problems) = cpus(text);
        assert_eq!((found, problems.len()), (None, 1), "{text}");
        assert!(problems[0].starts_with("cpus: "), "{problems:?}");
    }
}

#[test]
fn problems_of_a_merged_resource_say_whose_they_are() {
    let problem = || Problem { field: "role".to_owned(), reason: "not a text".to_owned() };
    let state = State::default()
        .machine("hcloud_server.a", &[], &["10.0.0.1"])
        .change(|extract| extract.problems.push(problem()))
        .talos(APPLY, &[], &["10.0.0.1"])
        .change(|extract| extract.problems.push(problem()));
    let one = &state.project().machines[0];
    assert_eq!(problems(one), ["role: not a text".to_owned(), format!("role: {APPLY}: not a text")]);
}

#[test]
fn data_sources_and_old_generations_are_no_machines() {
    let state = State::default()
        .machine("data.hcloud_server.a", &[], &["10.0.0.1"])
        .talos("data.talos_machine.a", &[], &["10.0.0.1"])
        .machine("hcloud_server.b", &[], &["10.0.0.2"])
        .change_row(|row| row.deposed = Some("00000001".to_owned()))
        .machine("hcloud_server.b", &[], &["10.0.0.3"])
        .change_row(|row| row.tainted = true);
    let projection = state.project();
    let [one] = projection.machines.as_slice() else { panic!() };
    assert!(one.tainted);
    assert_eq!(addresses(one), ["10.0.0.3"]);
    assert_eq!(one.fed_by, [(ResourceAddress::from_kept("hcloud_server.b"), None)]);
}

#[test]
fn equal_ids_of_one_provider_are_a_problem_of_both() {
    let same = [(Field::ProviderId, "7")];
    let state = State::default()
        .machine("hcloud_server.b", &same, &[])
        .machine("hcloud_server.a", &same, &[])
        .machine("hcloud_server.c", &same, &[])
        .machine("aws_instance.a", &same, &[])
        .machine("hcloud_server.other", &same, &[])
        .change_row(|row| row.provider.push_str(".other"));
    let projection = state.project();
    for (address, other) in [
        ("hcloud_server.a", "hcloud_server.b"),
        ("hcloud_server.b", "hcloud_server.a"),
        ("hcloud_server.c", "hcloud_server.a"),
    ] {
        assert_eq!(problems(at(&projection, address)), [format!("providerID: {other} has the same one")]);
    }
    assert!(at(&projection, "aws_instance.a").problems.is_empty());
    assert!(at(&projection, "hcloud_server.other").problems.is_empty());
}

#[test]
fn the_elements_of_an_object_are_machines_of_their_own() {
    let mut state =
        State::default().machine("digitalocean_kubernetes_node_pool.p", &[(Field::Name, "n-1")], &[]);
    state.extracts[0].element = Some("one".to_owned());
    let mut second = state.extracts[0].clone();
    second.element = Some("two".to_owned());
    second.fields.get_mut(&Field::Name).unwrap().value = "n-2".to_owned();
    state.extracts.push(second);
    let projection = state.project();
    assert_eq!(projection.machines.iter().map(|m| &*m.object_name).collect::<Vec<_>>(), ["n-1", "n-2"]);
    assert_ne!(projection.machines[0].identity(), projection.machines[1].identity());
}

#[test]
fn all_that_is_present_says_where_it_comes_from() {
    let fields = [
        (Field::Name, "a"),
        (Field::Hostname, "h"),
        (Field::Role, "worker"),
        (Field::NodeGroup, "pool"),
        (Field::ProviderId, "1"),
        (Field::InstanceType, "t"),
        (Field::Region, "r"),
        (Field::Zone, "z"),
        (Field::Image, "i"),
        (Field::Cpus, "2.0"),
        (Field::MemoryMib, "8.192e3"),
        (Field::Power, "running"),
    ];
    let state = State::default()
        .machine("hcloud_server.a", &fields, &["10.0.0.1", "198.51.100.1"])
        .object("hcloud_floating_ip.a")
        .change(|extract| extract.read.push(1))
        .talos(APPLY, &[], &["10.0.0.1"]);
    let one = &state.project().machines[0];
    assert_eq!(
        (one.cpus.as_ref().map(ToString::to_string).as_deref(), one.memory_mib),
        (Some("2"), Some(8192))
    );
    assert_eq!(
        one.fed_by.iter().map(|(address, _)| address.as_str()).collect::<Vec<_>>(),
        ["hcloud_server.a", "hcloud_floating_ip.a", APPLY]
    );
    let sources: Vec<&str> = one.provenance.iter().map(|(field, _)| field).collect();
    let spec = one.spec_fields();
    let present =
        spec.iter().map(|(field, _)| *field).filter(|field| !["addresses", "alsoKnownAs"].contains(field));
    let mut present: Vec<&str> = present.collect();
    present.extend(["addresses[0].address", "addresses[1].address", "alsoKnownAs[0]"]);
    present.sort_unstable();
    assert_eq!(sources, present);
}

#[test]
fn what_names_a_row_that_there_is_not_is_left_out() {
    let state = State::default().machine("hcloud_server.a", &[], &[]);
    let mut extracts = state.extracts.clone();
    extracts[0].read.push(99);
    extracts.push(Extract { row: 7, ..extracts[0].clone() });
    let projection = from_extracts(VersionNumber::FIRST, &state.rows, &extracts, |_| Known::Mapped);
    assert_eq!(projection.machines.len(), 1);
}
