//! Names of objects, and node groups.

use super::*;
use crate::declared::projection::names::{Wish, assign, is_label};

fn names<const N: usize>(wishes: [(Option<&str>, &str); N]) -> Vec<String> {
    assign(&wishes.map(|(name, address)| Wish { name, fallback: address, identity: address.to_owned() }))
}

#[test]
fn labels_are_kept_and_all_else_is_hashed() {
    let names = names([
        (Some("node-1"), "a.a"),
        (Some("Node_1"), "a.b"),
        (None, "module.x[\"eu/a\"].hcloud_server.node[0]"),
        (Some("-"), "a.c"),
        (Some(&"x".repeat(64)), "a.d"),
        (Some("ä"), ""),
    ]);
    assert_eq!(names[0], "node-1");
    assert!(names[1].starts_with("node-1-") && names[1].len() == "node-1-".len() + 8, "{}", names[1]);
    assert!(names[2].starts_with("module-x-eu-a-hcloud-server-node-0-"), "{}", names[2]);
    assert!(names[3].starts_with("a-c-"), "{}", names[3]);
    assert_eq!(names[4].len(), 63);
    assert_eq!(names[5].len(), 8);
    assert!(names.iter().all(|name| is_label(name)), "{names:?}");
}

#[test]
fn all_that_wish_one_name_get_a_hash_and_others_keep_theirs() {
    let before = names([(Some("a"), "x.1"), (Some("A"), "x.3")]);
    let after = names([(Some("a"), "x.1"), (Some("a"), "x.2"), (Some("A"), "x.3")]);
    assert_eq!(before[0], "a");
    assert!(after[0].starts_with("a-") && after[1].starts_with("a-") && after[0] != after[1], "{after:?}");
    assert_eq!(after[2], before[1]);
}

#[test]
fn who_wishes_a_name_that_another_got_yields() {
    let taken = names([(Some("A"), "x.1")]).remove(0);
    let names = names([(Some("A"), "x.1"), (Some(&taken), "x.2")]);
    assert_eq!(names[0], taken);
    assert!(names[1].starts_with(&taken) && names[1] != taken, "{names:?}");
}

#[test]
fn what_cannot_be_told_apart_is_numbered() {
    let names = names([(Some("a"), "x.1"), (Some("a"), "x.1")]);
    assert!(names[0] != names[1] && names.iter().all(|name| is_label(name)), "{names:?}");
}

#[test]
fn groups_are_what_all_machines_have_in_common() {
    let machine = |state: State, address: &str, group: &str, role: &str, region: &str| {
        let fields = [
            (Field::Name, address),
            (Field::NodeGroup, group),
            (Field::Role, role),
            (Field::Region, region),
            (Field::InstanceType, "t"),
        ];
        state.machine(address, &fields, &[])
    };
    let mut state = machine(State::default(), "hcloud_server.a", "pool", "worker", "r1");
    state = machine(state, "hcloud_server.b", "pool", "worker", "r2");
    state = machine(state, "aws_instance.c", "Pool", "worker", "r1");
    state = machine(state, "hcloud_server.d", "Pool", "controlplane", "r1");
    state = state.machine("hcloud_server.e", &[(Field::Name, "e")], &[]);
    let projection = state.project();
    let [pool, mixed] = projection.node_groups.as_slice() else { panic!("{:?}", projection.node_groups) };
    assert_eq!(
        (&*pool.object_name, pool.role, pool.provider.as_deref()),
        ("pool", Some(Role::Worker), Some("hcloud"))
    );
    assert_eq!((pool.count, &*pool.source), (2, "NodeGroup"));
    assert_eq!((pool.regions.join(" "), pool.instance_types.join(" ")), ("r1 r2".to_owned(), "t".to_owned()));
    assert!(mixed.object_name.starts_with("pool-"));
    assert_eq!((mixed.role, &mixed.provider), (None, &None));
    for group in &projection.node_groups {
        for name in &group.machines {
            let machine = projection.machines.iter().find(|machine| machine.object_name == *name).unwrap();
            assert_eq!(machine.node_group.as_deref(), Some(&*group.object_name));
        }
    }
    assert_eq!(at(&projection, "hcloud_server.e").node_group, None);
}

#[test]
fn a_group_is_derived_by_the_rule_that_most_machines_have() {
    let state = |rules: &[&str]| {
        let mut state = State::default();
        for (number, rule) in rules.iter().enumerate() {
            state = state.machine(&format!("hcloud_server.n[{number}]"), &[(Field::NodeGroup, "g")], &[]);
            state = state.change(|extract| {
                let place = Place { rule: (*rule).into(), ..Place::default() };
                extract.fields.get_mut(&Field::NodeGroup).unwrap().source.place = Arc::new(place);
            });
        }
        state
    };
    assert_eq!(state(&["label", "block", "label"]).project().node_groups[0].source, "label");
    assert_eq!(state(&["label", "block"]).project().node_groups[0].source, "block");
}
