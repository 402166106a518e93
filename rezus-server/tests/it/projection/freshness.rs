//! C16: who was told that a state is written reads what it declares, and nothing older, from then on.

use serde_json::{Value, json};

use super::{API, block, by_hand, names, state_of};
use crate::server::Server;
use crate::tools;

/// In the short form a fifth of it.
const WRITES: u64 = 1_000;

/// How many machines a state has at most: then each write takes the oldest away with it.
const MACHINES: usize = 150;

/// After so many writes the server goes: in turn it is asked to, and it is killed.
const RESTART_EVERY: u64 = 40;

/// The version that an object was read off.
fn version_of(object: &Value) -> u64 {
    object["metadata"]["annotations"]["rezuscloud.io/state-version"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_what_is_read_is_never_older_than_the_acknowledged_serial() {
    let writes = if tools::drills_are_full() { WRITES } else { WRITES / 5 };
    let mut server = Server::start().await;
    let list = format!("{API}/namespaces/fresh/machines");
    let mut instances = Vec::new();
    for serial in 1..=writes {
        let name = format!("m-{serial:04}");
        instances.push(by_hand(&name, &json!({ "name": name, "memory_mib": serial })));
        if instances.len() > MACHINES {
            instances.remove(0);
        }
        let state = state_of("fresh", serial, &[block("edge", &instances)]);
        server.send("POST", "/state/fresh", state).await.expect(200, "POST");
        if serial.is_multiple_of(RESTART_EVERY) {
            if serial.is_multiple_of(2 * RESTART_EVERY) {
                server.kill().await;
            } else {
                assert!(server.terminate().await.success());
            }
            server.start_again().await;
        }
        // In turn the list and the one machine are what is asked for first.
        for ask_list in [serial.is_multiple_of(2), !serial.is_multiple_of(2)] {
            if ask_list {
                let listed = server.get(&list).await.expect(200, "list").items();
                assert_eq!(listed.len(), instances.len(), "serial {serial}");
                assert_eq!(*names(&listed).last().unwrap(), name);
                // Each came in the version of its own number, and has not changed since.
                let is_of_its_version = |machine: &Value| machine["spec"]["memoryMiB"] == version_of(machine);
                assert!(listed.iter().all(is_of_its_version), "serial {serial}");
            } else {
                let machine = server.get(&format!("{list}/{name}")).await.expect(200, &name).json();
                assert_eq!(machine["spec"]["memoryMiB"], serial);
                assert_eq!(version_of(&machine), serial);
            }
        }
        if serial.is_multiple_of(10) {
            let tenant = server.get(&format!("{API}/tenants/fresh")).await.expect(200, "tenant").json();
            let spec = &tenant["spec"];
            let told = (&spec["state"]["serial"], &spec["machines"]);
            assert_eq!(told, (&json!(serial), &json!(instances.len())));
            let all = server.get(&format!("{API}/machines")).await.expect(200, "all machines").items();
            assert_eq!(all.len(), instances.len());
        }
    }
    // Each came in a version of its own, whatever happened to the server in between.
    for machine in server.get(&list).await.items() {
        let generation = machine["metadata"]["generation"].as_u64().unwrap();
        assert_eq!(machine["spec"]["memoryMiB"], generation, "{machine}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_beside_a_writer_never_see_a_version_older_than_one_they_or_the_writer_knew() {
    let server = std::sync::Arc::new(Server::start().await);
    let acknowledged = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let order = std::sync::atomic::Ordering::SeqCst;
    let reader = |_| {
        let (server, acknowledged) = (std::sync::Arc::clone(&server), std::sync::Arc::clone(&acknowledged));
        tokio::spawn(async move {
            let (mut seen, mut reads) = (0, 0);
            while seen < 60 {
                let at_least = acknowledged.load(order).max(seen);
                let answer = server.get(&format!("{API}/namespaces/busy/machines")).await;
                let listed = answer.expect(200, "list").items();
                let count = u64::try_from(listed.len()).unwrap();
                assert!(count >= at_least, "{count} machines where {at_least} were known");
                let newest = listed.iter().map(version_of).max();
                assert_eq!(newest.unwrap_or(0), count);
                (seen, reads) = (count, reads + 1);
            }
            assert!(reads > 0);
        })
    };
    let readers: Vec<_> = (0..3).map(reader).collect();
    let mut instances = Vec::new();
    for serial in 1..=60 {
        instances.push(by_hand(&format!("m-{serial:04}"), &json!({})));
        let state = state_of("busy", serial, &[block("edge", &instances)]);
        server.send("POST", "/state/busy", state).await.expect(200, "POST");
        acknowledged.store(serial, order);
    }
    for reader in readers {
        reader.await.unwrap();
    }
}
