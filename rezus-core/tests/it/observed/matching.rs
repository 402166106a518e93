//! Which machine that was seen is which that is looked for.

use std::collections::HashMap;

use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{Member, Node, NodeAddress, NodeInfo, Talos, TalosMachine};
use rezus_core::observed::{Claim, Found, Identity, Matches, Rule, matched};

const NODE_ID: &str = "sou7yy34ykX3n373Zw1DXKb8zD7UnyKT6HT3QDsGH6L";
const MACHINE_ID: &str = "be871ac0d0dd31fa4caca753b0f3f1b2";
const UUID: &str = "00112233-4455-6677-8899-aabbccddeeff";
const UUID_MIXED: &str = "33221100-5544-7766-8899-AABBCCDDEEFF";

fn node(name: &str, address: &str) -> Node {
    Node {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        addresses: vec![NodeAddress { kind: "InternalIP".to_owned(), address: address.to_owned() }],
        ..Node::default()
    }
}

fn with_provider(name: &str, id: &str) -> Node {
    Node { provider_id: Some(id.to_owned()), ..node(name, "") }
}

fn with_info(name: &str, machine_id: &str, system_uuid: &str) -> Node {
    let info = NodeInfo {
        machine_id: machine_id.to_owned(),
        system_uuid: system_uuid.to_owned(),
        ..NodeInfo::default()
    };
    Node { info, ..node(name, "") }
}

fn claim(name: &str) -> Claim {
    Claim { name: name.to_owned(), ..Claim::default() }
}

fn at_address(name: &str, address: &str) -> Claim {
    Claim { addresses: vec![address.to_owned()], ..claim(name) }
}

fn by_provider(name: &str, id: &str) -> Claim {
    Claim { provider_id: Some(id.to_owned()), ..claim(name) }
}

fn by_uuid(name: &str, uuid: &str) -> Claim {
    Claim { system_uuid: Some(uuid.to_owned()), ..claim(name) }
}

/// In words: `rule evidence node`, `?candidates` or `-`.
fn words(matches: &Matches<'_>) -> Vec<String> {
    let of = |found: &Found| match found {
        Found::Matched { seen, rule, evidence, .. } => {
            format!("{rule:?} {evidence} {}", matches.seen[*seen].name())
        }
        Found::Ambiguous { candidates } => format!("?{}", candidates.join(",")),
        Found::Missing => "-".to_owned(),
    };
    matches.found.iter().map(of).collect()
}

fn found(claims: &[Claim], nodes: &[Node]) -> Vec<String> {
    words(&matched(claims, nodes, None, &HashMap::new()))
}

#[test]
fn ids_of_providers_are_compared_in_each_of_their_forms() {
    for (claimed, seen, same) in [
        ("i-0abc", "aws:///eu-central-1a/i-0abc", true),
        ("aws:///eu-central-1a/i-0abc", "aws:///eu-central-1a/i-0abc", true),
        ("i-0ab", "aws:///eu-central-1a/i-0abc", false),
        ("42", "hcloud://42", true),
        ("4", "hcloud://42", false),
        ("A8B7", "openstack:///a8b7", true),
        ("ocid1.instance.oc1.phx.abc", "oci://ocid1.instance.oc1.phx.abc", true),
        ("fr-par-1/11-22", "scaleway://instance/fr-par-1/11-22", true),
        ("pve1/qemu/100", "proxmox://region/100", true),
        ("i-bp1", "cn-hangzhou.i-bp1", true),
        ("projects/p/zones/z/instances/n", "gce://p/z/n", true),
        ("projects/p/zones/y/instances/n", "gce://p/z/n", false),
        (
            "/subscriptions/S/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm",
            "azure:///subscriptions/s/resourcegroups/g/providers/microsoft.compute/virtualmachines/vm",
            true,
        ),
        ("vm", "azure:///subscriptions/s/virtualmachines/vm", false),
        ("", "hcloud://", false),
        ("", "", false),
    ] {
        let found = found(&[by_provider("a", claimed)], &[with_provider("b", seen)]);
        assert_eq!(found[0].starts_with("ProviderId "), same, "{claimed} {seen}: {found:?}");
    }
}

#[test]
fn uuids_are_compared_in_both_orders_and_junk_is_no_evidence() {
    for (claimed, seen, same) in [
        (UUID, UUID, true),
        (UUID, &*UUID.to_uppercase(), true),
        (UUID, UUID_MIXED, true),
        (UUID_MIXED, UUID, true),
        (UUID, &*UUID.replace('-', ""), true),
        (UUID, "ff112233-4455-6677-8899-aabbccddeeff", false),
        ("03000200-0400-0500-0006-000700080009", "03000200-0400-0500-0006-000700080009", false),
        ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000", false),
        ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "ffffffff-ffff-ffff-ffff-ffffffffffff", false),
        ("", "", false),
    ] {
        let found = found(&[by_uuid("a", claimed)], &[with_info("b", "", seen)]);
        let expected = if same { format!("SystemUuid {} b", claimed.to_lowercase()) } else { "-".to_owned() };
        assert_eq!(found, [expected], "{claimed} {seen}");
    }
    // What two boards have says nothing of either.
    let twins = [with_info("b", "", UUID), with_info("c", "", UUID)];
    assert_eq!(found(&[by_uuid("a", UUID)], &twins), ["?b,c"]);
}

#[test]
fn addresses_are_compared_as_addresses_and_those_of_nobody_are_no_evidence() {
    for (claimed, seen, same) in [
        ("10.0.0.1", "10.0.0.1", true),
        ("::ffff:10.0.0.1", "10.0.0.1", true),
        ("10.0.0.1:50000", "10.0.0.1", true),
        ("[2001:db8::1]:50000", "2001:0db8:0::1", true),
        ("2001:db8::1%eth0", "2001:db8::1", true),
        ("Node.Example.org.", "node.example.org", true),
        ("10.0.0.1", "10.0.0.10", false),
        ("fe80::1", "fe80::1", false),
        ("169.254.1.1", "169.254.1.1", false),
        ("127.0.0.1", "127.0.0.1", false),
        ("::1", "::1", false),
        ("fdae:41e4:649b:9303::1", "fdae:41e4:649b:9303::1", false),
        ("localhost", "localhost", false),
    ] {
        let found = found(&[at_address("a", claimed)], &[node("b", seen)]);
        assert_eq!(found[0].starts_with("Address "), same, "{claimed} {seen}: {found:?}");
    }
}

#[test]
fn names_are_compared_as_talos_makes_them() {
    for (claimed, seen, same) in [
        ("worker-1", "worker-1", true),
        ("Worker_1", "worker1", true),
        ("worker-1.example.org", "worker-1", true),
        ("worker-1", "worker-1.other.org", true),
        ("worker-1", "worker-10", false),
        ("...", "---", false),
    ] {
        let found = found(&[claim(claimed)], &[node(seen, "")]);
        assert_eq!(found[0].starts_with("Hostname "), same, "{claimed} {seen}: {found:?}");
    }
    let named = Claim { hostname: Some("other".to_owned()), ..claim("b") };
    assert_eq!(found(&[named], &[node("b", ""), node("other", "")]), ["Hostname other other"]);
}

#[test]
fn the_strongest_rule_that_decides_wins() {
    // The address moved to another machine, whose own claim is found by its id.
    let claims = [
        Claim { addresses: vec!["10.0.0.2".to_owned()], ..by_provider("a", "1") },
        Claim { addresses: vec!["10.0.0.2".to_owned()], ..by_provider("b", "2") },
    ];
    let nodes = [
        Node { provider_id: Some("hcloud://1".to_owned()), ..node("x", "10.0.0.1") },
        Node { provider_id: Some("hcloud://2".to_owned()), ..node("y", "10.0.0.2") },
    ];
    assert_eq!(found(&claims, &nodes), ["ProviderId 1 x", "ProviderId 2 y"]);
    // One address for two claims: another rule tells, or nobody does.
    let both = [at_address("x", "10.0.0.1"), at_address("z", "10.0.0.1")];
    assert_eq!(found(&both, &[node("x", "10.0.0.1")]), ["Hostname x x", "-"]);
    assert_eq!(found(&both, &[node("y", "10.0.0.1")]), ["?y", "?y"]);
    // One address on two nodes is none of theirs; the other one still tells.
    let two = Claim { addresses: vec!["10.0.0.9".to_owned(), "10.0.0.1".to_owned()], ..claim("a") };
    let mut nodes = [node("x", "10.0.0.1"), node("y", "10.0.0.2")];
    for one in &mut nodes {
        one.addresses.push(node("", "10.0.0.9").addresses.remove(0));
    }
    assert_eq!(found(&[two], &nodes), ["Address 10.0.0.1 x"]);
    // The same address and name, and another UUID: another machine.
    let rebuilt = Claim { addresses: vec!["10.0.0.1".to_owned()], ..by_uuid("x", UUID) };
    let other = "11111111-4455-6677-8899-aabbccddeeff";
    let node = Node { info: with_info("", "", other).info, ..node("x", "10.0.0.1") };
    assert_eq!(found(&[rebuilt], &[node]), ["-"]);
}

#[test]
fn what_nobody_declares_is_told_and_what_may_be_somebodys_is_not() {
    let nodes = [node("a", ""), node("b", ""), node("c", "10.0.0.1")];
    let claims = [claim("a"), claim("gone"), at_address("x", "10.0.0.1"), at_address("y", "10.0.0.1")];
    let matches = matched(&claims, &nodes, None, &HashMap::new());
    assert_eq!(words(&matches), ["Hostname a a", "-", "?c", "?c"]);
    let undeclared = matches.undeclared.iter().map(|at| matches.seen[*at].name()).collect::<Vec<_>>();
    assert_eq!(undeclared, ["b"]);
}

#[test]
fn a_machine_with_a_new_name_leaves_its_old_node_behind() {
    let of = |name: &str, created: i64, lease: Option<i64>| Node {
        created_at: Some(Timestamp::from_millis(created)),
        lease_renewed_at: lease.map(Timestamp::from_millis),
        ..with_info(name, MACHINE_ID, UUID)
    };
    for (lease, left_behind) in [(Some(900_000), true), (None, true), (Some(990_000), false)] {
        let nodes = [of("old", 1, lease), of("new", 2, Some(1_020_001))];
        let matches = matched(&[by_uuid("a", UUID)], &nodes, None, &HashMap::new());
        let stale = matches.stale.iter().map(|node| &*node.name).collect::<Vec<_>>();
        assert_eq!(stale, if left_behind { vec!["old"] } else { vec![] });
        assert_eq!(words(&matches)[0].ends_with(" new"), left_behind);
    }
}

#[test]
fn what_kubernetes_and_talos_tell_is_joined_first() {
    let member = |node_id: &str, name: &str| Member {
        node_id: node_id.to_owned(),
        node_name: name.to_owned(),
        ..Member::default()
    };
    let machine = |asked: &str, node_id: Option<&str>, name: Option<&str>| TalosMachine {
        asked: asked.to_owned(),
        node_id: node_id.map(str::to_owned),
        node_name: name.map(str::to_owned),
        ..TalosMachine::default()
    };
    for (what, node, member, machine, together) in [
        (
            "all by id",
            with_info("n", MACHINE_ID, ""),
            member(NODE_ID, "m"),
            machine("10.0.0.1", Some(NODE_ID), None),
            1,
        ),
        ("by name", node("n", ""), member("", "n"), machine("10.0.0.1", None, Some("n")), 1),
        ("by address", node("n", "10.0.0.1"), member("", "n"), machine("10.0.0.1", None, None), 2),
        ("none", node("n", "10.0.0.2"), member("", "m"), machine("10.0.0.1", None, None), 3),
    ] {
        let talos = Talos { members: Some(vec![member]), machines: vec![machine], ..Talos::default() };
        let nodes = [node];
        let matches = matched(&[at_address("a", "10.0.0.1")], &nodes, Some(&talos), &HashMap::new());
        assert_eq!(matches.seen.len(), together, "{what}");
        assert!(words(&matches)[0].starts_with("Address 10.0.0.1 "), "{what}");
    }
}

#[test]
fn another_machine_in_the_place_of_one_is_told() {
    let before = |machine_id: &str, boot_id: &str| {
        let identity = Identity {
            machine_id: machine_id.to_owned(),
            boot_id: boot_id.to_owned(),
            ..Identity::default()
        };
        HashMap::from([("a".to_owned(), identity)])
    };
    let nodes = [Node { info: with_info("", MACHINE_ID, UUID).info, ..node("x", "10.0.0.1") }];
    for (earlier, expected) in [
        (before("another", ""), true),
        (before(MACHINE_ID, "another boot"), false),
        (before("", ""), false),
        (HashMap::new(), false),
    ] {
        let matches = matched(&[at_address("a", "10.0.0.1")], &nodes, None, &earlier);
        let Found::Matched { rule: Rule::Address, replaced, .. } = &matches.found[0] else {
            panic!("no match")
        };
        assert_eq!(replaced.is_some(), expected);
    }
    // A link holds over a change of what weak rules go by.
    let matches = matched(&[at_address("a", "10.0.0.7")], &nodes, None, &before(MACHINE_ID, ""));
    assert_eq!(words(&matches), [format!("Earlier {MACHINE_ID} x")]);
}

#[derive(Clone, Debug)]
struct Drawn {
    id: Option<u8>,
    uuid: Option<u8>,
    address: Option<u8>,
    name: u8,
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let some = || prop::option::of(0_u8..6);
    let one = (some(), some(), some(), 0_u8..8);
    prop::collection::vec(one.prop_map(|(id, uuid, address, name)| Drawn { id, uuid, address, name }), 0..8)
}

proptest! {
    #[test]
    fn what_is_found_does_not_hang_on_the_order_and_nothing_is_found_twice(
        claims in drawn(), nodes in drawn(), turn in any::<prop::sample::Index>()
    ) {
        let uuid = |number: u8| format!("{number:02x}112233-4455-6677-8899-aabbccddeeff");
        let claims = claims.iter().enumerate().map(|(at, drawn)| Claim {
            name: format!("c{at}"),
            provider_id: drawn.id.map(|id| format!("i-{id}")),
            system_uuid: drawn.uuid.map(uuid),
            addresses: drawn.address.map(|address| format!("10.0.0.{address}")).into_iter().collect(),
            hostname: Some(format!("n{}", drawn.name)),
        }).collect::<Vec<_>>();
        // Names of Nodes are unique.
        let nodes = nodes.iter().enumerate().map(|(at, drawn)| Node {
            provider_id: drawn.id.map(|id| format!("aws:///z/i-{id}")),
            info: with_info("", "", &drawn.uuid.map(uuid).unwrap_or_default()).info,
            ..node(&format!("n{at}"), &drawn.address.map(|address| format!("10.0.0.{address}")).unwrap_or_default())
        }).collect::<Vec<_>>();
        let (mut turned_claims, mut turned_nodes) = (claims.clone(), nodes.clone());
        turned_claims.reverse();
        if !nodes.is_empty() {
            turned_nodes.rotate_left(turn.index(nodes.len()));
        }
        let none = HashMap::new();
        let matches = matched(&claims, &nodes, None, &none);
        let turned = matched(&turned_claims, &turned_nodes, None, &none);
        let mut of_turned = words(&turned);
        of_turned.reverse();
        prop_assert_eq!(words(&matches), of_turned);
        let undeclared = |matches: &Matches<'_>| {
            matches.undeclared.iter().map(|at| matches.seen[*at].name().to_owned()).collect::<Vec<_>>()
        };
        prop_assert_eq!(undeclared(&matches), undeclared(&turned));
        let mut taken = matches.found.iter().filter_map(|found| match found {
            Found::Matched { seen, .. } => Some(*seen),
            Found::Ambiguous { .. } | Found::Missing => None,
        }).chain(matches.undeclared.iter().copied()).collect::<Vec<_>>();
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        prop_assert_eq!(taken.len(), count);
    }
}
