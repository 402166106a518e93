//! Addresses of the cluster among those of machines.

use super::*;

const CONTROL: [(Field, &str); 1] = [(Field::Role, "controlplane")];
const ENDPOINT: [(Field, &str); 1] = [(Field::Endpoint, "https://10.0.0.100:6443")];

fn two_control_planes(first: &[&str], second: &[&str]) -> State {
    State::default().machine("hcloud_server.a", &CONTROL, first).machine("hcloud_server.b", &CONTROL, second)
}

#[test]
fn a_shared_address_is_dropped_unless_it_is_the_only_one() {
    for (ips, kept) in [
        (vec!["10.0.0.1", "10.0.0.100"], vec!["10.0.0.1"]),
        (vec!["10.0.0.100"], vec!["10.0.0.100"]),
        (vec!["10.0.0.100", "198.51.100.1"], vec!["198.51.100.1"]),
    ] {
        let state = State::default()
            .machine("hcloud_server.a", &[], &ips)
            .cluster("talos_cluster.this", &[])
            .change(|extract| extract.shared_addresses.push("10.0.0.100".to_owned()));
        assert_eq!(addresses(&state.project().machines[0]), kept);
    }
}

#[test]
fn an_endpoint_beside_another_address_of_its_kind_is_the_clusters() {
    let state = two_control_planes(&["10.0.0.1", "10.0.0.100"], &["10.0.0.2"]);
    let projection = state.cluster("data.talos_machine_configuration.cp", &ENDPOINT).project();
    assert_eq!(addresses(at(&projection, "hcloud_server.a")), ["10.0.0.1"]);
    assert!(at(&projection, "hcloud_server.a").provenance.get("addresses[1].address").is_none());
}

#[test]
fn an_endpoint_that_is_a_machines_own_address_stays() {
    let cluster = "data.talos_machine_configuration.cp";
    let alone = State::default().machine("hcloud_server.a", &CONTROL, &["10.0.0.1", "10.0.0.100"]);
    let other_kind = two_control_planes(&["198.51.100.1", "10.0.0.100"], &["10.0.0.2"]);
    let applied = two_control_planes(&["10.0.0.1", "10.0.0.100"], &["10.0.0.2"]).talos(
        "talos_machine.a",
        &[],
        &["10.0.0.100"],
    );
    for state in [alone, other_kind, applied] {
        let projection = state.cluster(cluster, &ENDPOINT).project();
        assert!(addresses(at(&projection, "hcloud_server.a")).contains(&"10.0.0.100"));
    }
}

#[test]
fn an_endpoint_that_several_machines_have_is_the_clusters() {
    let state = State::default()
        .machine("hcloud_server.a", &[], &["10.0.0.100", "198.51.100.1"])
        .machine("hcloud_server.b", &[], &["10.0.0.100", "198.51.100.2"])
        .cluster("data.talos_machine_configuration.cp", &ENDPOINT);
    let projection = state.project();
    assert_eq!(addresses(&projection.machines[0]).len(), 1);
    assert_eq!(addresses(&projection.machines[1]).len(), 1);
}

#[test]
fn a_shared_address_merges_nothing() {
    let state = State::default()
        .machine("hcloud_server.a", &[], &["10.0.0.1", "10.0.0.100"])
        .machine("hcloud_server.b", &[], &["10.0.0.2", "10.0.0.100"])
        .talos("talos_machine.a", &[], &["10.0.0.1", "10.0.0.100"])
        .change(|extract| extract.shared_addresses.push("10.0.0.100".to_owned()));
    let projection = state.project();
    assert_eq!(projection.machines.len(), 2);
    assert_eq!(at(&projection, "hcloud_server.a").also_known_as.len(), 1);
    assert_eq!(addresses(at(&projection, "hcloud_server.a")), ["10.0.0.1"]);
    assert!(at(&projection, "hcloud_server.b").problems.is_empty());
}

#[test]
fn endpoints_are_read_in_all_spellings() {
    for endpoint in ["https://[fd00::100]:6443/", "[fd00:0::100]:6443", "fd00::100", "https://[fd00::100]"] {
        let state = two_control_planes(&["fd00::1", "fd00::100"], &["fd00::2"]);
        let projection = state.cluster("talos_cluster.this", &[(Field::Endpoint, endpoint)]).project();
        assert_eq!(addresses(at(&projection, "hcloud_server.a")), ["fd00::1"], "{endpoint}");
    }
}
