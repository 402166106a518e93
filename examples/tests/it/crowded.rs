//! More machines than a page or a chunk holds, while they change.

use std::time::Duration;

use futures_util::{StreamExt as _, pin_mut};
use kube::api::ListParams;
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{Config, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use tokio::sync::watch;

use crate::followed::{Held, held};
use crate::server::{Machine, PATIENCE, Server, kind, state};

const TENANTS: u64 = 3;
const MACHINES: u64 = 400;
const SERIALS: u64 = 20;

/// The state of a tenant: from one serial to the next, a third of the machines change, some go, some come.
fn crowd(serial: u64) -> Vec<u8> {
    let machines: Vec<(String, String)> = (0..MACHINES)
        .filter(|number| !(number + serial).is_multiple_of(10))
        .map(|number| {
            let zone = if number % 3 == serial % 3 { format!("zone-{serial}") } else { "zone".to_owned() };
            (format!("m-{number}"), zone)
        })
        .collect();
    let machines: Vec<_> =
        machines.iter().map(|(name, zone)| (name.as_str(), "worker", zone.as_str())).collect();
    state(serial, &machines)
}

/// Waits until a store holds what a list says.
async fn converges(way: &str, store: &Store<Machine>, mut told: watch::Receiver<u64>, list: &Held) {
    let converged = async {
        while held(store.state().iter().map(|machine| &**machine)) != *list {
            told.changed().await.unwrap();
        }
    };
    let ended = tokio::time::timeout(PATIENCE, converged).await;
    assert!(ended.is_ok(), "{way}: {} machines are held, {} are listed", store.len(), list.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_changes_is_followed_to_the_end() {
    let mut server = Server::start().await;
    for tenant in 0..TENANTS {
        server.post(&format!("crowd-{tenant}"), crowd(1)).await;
    }
    let ways = [
        ("list and watch", Config::default()),
        ("list and watch by small pages", Config::default().page_size(7)),
        ("list and short watches", Config::default().timeout(1)),
        ("streaming list", Config::default().streaming_lists()),
        ("streaming list and short watches", Config::default().streaming_lists().timeout(1)),
    ];
    let followers = ways.map(|(way, config)| {
        let writer = Writer::<Machine>::new(kind());
        let (store, events) = (writer.as_reader(), watcher(server.machines(), config));
        let (tell, told) = watch::channel(0);
        let task = tokio::spawn(async move {
            let events = reflector(writer, events.default_backoff());
            pin_mut!(events);
            while events.next().await.is_some() {
                tell.send_modify(|count| *count += 1);
            }
        });
        (way, store, told, task)
    });
    // While they begin, while they follow, and while they come back.
    for serial in 2..=SERIALS {
        if serial == SERIALS / 2 {
            server.restart().await;
        }
        for tenant in 0..TENANTS {
            server.post(&format!("crowd-{tenant}"), crowd(serial)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let list = held(&server.machines().list(&ListParams::default()).await.unwrap().items);
    assert_eq!(u64::try_from(list.len()).unwrap(), TENANTS * MACHINES * 9 / 10);
    for (way, store, told, task) in followers {
        converges(way, &store, told, &list).await;
        task.abort();
    }
}
