//! States that were too large for somebody else.

use bytes::Bytes;
use rezus_testkit::strategy::large_state;
use serde_json::Value;

use crate::lock::state_with;
use crate::server::{Server, Settings};

/// An 844 kB state was refused by a limit of 1 MB that nobody had chosen.
#[tokio::test]
async fn large_states_are_accepted_by_default_and_a_chosen_limit_is_named() {
    let server = Server::start().await;
    for (tenant, megabytes) in [("a", 3), ("b", 6), ("c", 20), ("d", 128)] {
        // Half a megabyte each.
        let content = "x".repeat(megabytes * 500_000);
        let body = Bytes::from(state_with("l", 1, &content));
        let target = format!("/state/{tenant}");
        server.send("POST", &target, body.clone()).await.expect(200, &format!("{megabytes} half megabytes"));
        assert!(server.get(&target).await.expect(200, &target).body == body);
    }

    let settings =
        Settings { variables: vec![("REZUS_STATE__MAX_BODY", "1MiB".to_owned())], ..Settings::default() };
    let server = Server::start_with(settings).await;
    let body = state_with("l", 1, &"x".repeat(1 << 20));
    let refused = server.send("POST", "/state/a", body).await.expect(413, "over the chosen limit").message();
    assert!(refused.contains("1048576") && refused.contains("errored.tfstate"), "{refused}");
}

fn high_water_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes << 10
}

/// A few states of 20 MB exhausted a server's memory.
#[tokio::test]
async fn ten_tenants_write_25_megabytes_each_at_once_in_half_a_gigabyte() {
    const TENANTS: usize = 10;
    let state = String::from_utf8(large_state(10_500, 7)).unwrap();
    assert!(state.len() > 25_000_000, "{} bytes", state.len());
    let lineage = serde_json::from_str::<Value>(&state).unwrap()["lineage"].as_str().unwrap().to_owned();
    let bodies: Vec<Bytes> =
        (0..TENANTS).map(|number| state.replacen(&lineage, &format!("lineage-{number}"), 1).into()).collect();
    drop(state);

    let server = Server::start().await;
    let target = |number: usize| format!("/state/t{number}");
    server.send("POST", "/state/other", state_with("l", 1, "small")).await.expect(200, "a small state");
    let writes = bodies.iter().enumerate().map(|(number, body)| {
        let (server, target) = (&server, target(number));
        async move { server.send("POST", &target, body.clone()).await.expect(200, &target) }
    });
    let reads = async {
        for _ in 0..20 {
            server.get("/state/other").await.expect(200, "another tenant's state, meanwhile");
        }
    };
    tokio::join!(futures_util::future::join_all(writes), reads);
    let checks = bodies.iter().enumerate().map(|(number, body)| {
        let (server, target) = (&server, target(number));
        async move { assert!(server.get(&target).await.expect(200, &target).body == *body, "{target}") }
    });
    futures_util::future::join_all(checks).await;
    let high_water = high_water_bytes(server.pid());
    assert!(high_water < 512 << 20, "{} MiB were in use at once", high_water >> 20);
}
