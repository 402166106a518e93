//! Random histories of many clients over the backend: what a refusal leaves alone, and what an accepted write cannot do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use rezus_core::base::TenantName;
use rezus_core::declared::backend::{BackendError, Caller, StateBackend, Unlock, Written, ingest};
use rezus_core::declared::compute::Inline;
use rezus_core::declared::mapping::{Mappings, MappingsInForce};
use rezus_core::declared::store::{Content, StateStore as _, TenantRecord};
use rezus_core::declared::{Encryption, Freeze, LockId, LockInfo, Serial, VersionNumber};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::FakeStateStore;
use rezus_testkit::sample::{NOON, tenant};

/// What a client asks for. Small numbers, so that clients meet.
#[derive(Clone, Debug)]
enum Request {
    Lock {
        tenant: usize,
        id: usize,
        push: bool,
    },
    Unlock {
        tenant: usize,
        id: Option<usize>,
        may_break: bool,
    },
    Post {
        tenant: usize,
        id: Option<usize>,
        serial: u64,
        lineage: usize,
        content: u8,
    },
    Delete {
        tenant: usize,
    },
    Rollback {
        tenant: usize,
        version: u64,
    },
    RequireLocks {
        tenant: usize,
        require: bool,
    },
    RequireEncryption {
        tenant: usize,
        require: bool,
    },
    /// For clients too, for runs alone, or let go.
    Freeze {
        tenant: usize,
        clients: Option<bool>,
    },
}

const TENANTS: [&str; 2] = ["left", "right"];
const LINEAGES: [&str; 3] = ["one", "two", ""];

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let tenant = || 0..TENANTS.len();
    let id = || 0..3_usize;
    let request = prop_oneof![
        3 => (tenant(), id(), any::<bool>()).prop_map(|(tenant, id, push)| Request::Lock { tenant, id, push }),
        3 => (tenant(), prop::option::weighted(0.8, id()), any::<bool>())
            .prop_map(|(tenant, id, may_break)| Request::Unlock { tenant, id, may_break }),
        6 => (tenant(), prop::option::of(id()), 0..6_u64, 0..LINEAGES.len(), any::<u8>())
            .prop_map(|(tenant, id, serial, lineage, content)| Request::Post { tenant, id, serial, lineage, content }),
        1 => tenant().prop_map(|tenant| Request::Delete { tenant }),
        2 => (tenant(), 1..6_u64).prop_map(|(tenant, version)| Request::Rollback { tenant, version }),
        1 => (tenant(), any::<bool>()).prop_map(|(tenant, require)| Request::RequireLocks { tenant, require }),
        1 => (tenant(), prop::bool::weighted(0.2))
            .prop_map(|(tenant, require)| Request::RequireEncryption { tenant, require }),
        1 => (tenant(), any::<Option<bool>>()).prop_map(|(tenant, clients)| Request::Freeze { tenant, clients }),
    ];
    prop::collection::vec(request, 1..60)
}

/// A state; every fourth content is the empty state.
fn state(serial: u64, lineage: usize, content: u8) -> Bytes {
    let outputs = if content.is_multiple_of(4) {
        String::new()
    } else {
        format!(r#""o":{{"value":"{}","type":"string"}}"#, content % 4)
    };
    let lineage = LINEAGES[lineage];
    format!(
        r#"{{"version":4,"serial":{serial},"lineage":"{lineage}","outputs":{{{outputs}}},"resources":[]}}"#
    )
    .into()
}

fn lock_info(id: usize, push: bool) -> LockInfo {
    let operation = if push { "state-push" } else { "OperationTypeApply" };
    let body = format!(r#"{{"ID":"177fbbaf-774b-3a8b-0000-00000000000{id}","Operation":"{operation}"}}"#);
    LockInfo::from_json(body.as_bytes(), NOON).unwrap()
}

fn lock_id(id: usize) -> LockId {
    lock_info(id, false).id
}

fn freeze(clients: bool) -> Freeze {
    Freeze { by: "ops".to_owned(), reason: "audit".to_owned(), at: NOON, clients }
}

fn caller(may_break_locks: bool) -> Caller {
    Caller { name: "client".to_owned(), may_break_locks, may_create_tenants: true }
}

/// All that a store tells of a tenant, but for the revision.
type Snapshot = Option<(TenantRecord, Vec<(VersionNumber, Bytes)>)>;

async fn snapshot(store: &FakeStateStore, name: &TenantName) -> Snapshot {
    let (record, _) = store.tenant(name).await.unwrap()?;
    let mut bodies = Vec::new();
    for meta in store.versions(name).await.unwrap() {
        let body = store.read(name, meta.version, 0..meta.size_bytes).await.unwrap().unwrap();
        bodies.push((meta.version, body));
    }
    Some((record, bodies))
}

/// Carries a request out; the bytes that an accepted write made current, if any.
async fn carry_out(backend: &StateBackend, request: &Request) -> Result<Option<Bytes>, BackendError> {
    let name = |tenant: usize| tenant_name(tenant);
    match request.clone() {
        Request::Lock { tenant, id, push } => {
            backend.lock(&name(tenant), &lock_info(id, push), &caller(false)).await?;
            Ok(None)
        }
        Request::Unlock { tenant, id, may_break } => {
            let which = id.map_or(Unlock::Any, |id| Unlock::Id(lock_id(id)));
            backend.unlock(&name(tenant), &which, &caller(may_break)).await?;
            Ok(None)
        }
        Request::Post { tenant, id, serial, lineage, content } => {
            let body = state(serial, lineage, content);
            let state = ingest(body.clone(), None, &Mappings::default()).unwrap();
            backend.post(&name(tenant), id.map(lock_id).as_ref(), &state, &caller(false)).await?;
            Ok(Some(body))
        }
        Request::Delete { tenant } => {
            backend.delete(&name(tenant), &caller(false)).await?;
            Ok(None)
        }
        Request::Rollback { tenant, version } => {
            let version = VersionNumber::new(version).unwrap();
            backend.rollback(&name(tenant), version, &caller(false)).await?;
            Ok(None)
        }
        Request::RequireLocks { tenant, require } => {
            backend.require_locks(&name(tenant), require).await?;
            Ok(None)
        }
        Request::RequireEncryption { tenant, require } => {
            let encryption = if require { Encryption::Required } else { Encryption::Optional };
            backend.set_encryption(&name(tenant), Some(encryption)).await?;
            Ok(None)
        }
        Request::Freeze { tenant, clients } => {
            backend.set_freeze(&name(tenant), clients.map(freeze)).await?;
            Ok(None)
        }
    }
}

fn tenant_name(index: usize) -> TenantName {
    tenant(TENANTS[index])
}

/// What must hold of a tenant after any history.
fn check(before: &Snapshot, after: &Snapshot, request: &Request, done: bool) {
    if !done {
        assert_eq!(before, after, "a refusal changed something: {request:?}");
        return;
    }
    let Some((record, bodies)) = after else {
        let versions = before.as_ref().map_or(0, |(_, bodies)| bodies.len());
        assert_eq!(versions, 0, "a tenant with versions vanished: {request:?}");
        return;
    };
    let numbers: Vec<u64> = bodies.iter().map(|(number, _)| number.get()).collect();
    assert_eq!(numbers, (1..).take(bodies.len()).collect::<Vec<u64>>(), "versions are counted without a gap");
    let Some((old, old_bodies)) = before else { return };
    assert_eq!(&bodies[..old_bodies.len()], old_bodies, "a version that was accepted changed: {request:?}");
    assert!(record.highest_serial >= old.highest_serial, "the highest serial went back: {request:?}");
    let head = record.head.as_ref();
    assert!(head.and_then(|head| head.serial) <= record.highest_serial);
    let appended = bodies.len() > old_bodies.len();
    let is_state = head.is_some_and(|head| head.content != Content::Tombstone);
    assert!(!(appended && is_state && old.encryption == Some(Encryption::Required)), "a state in clear");
    let holder = old.lock.as_ref().map(|lock| lock.info.clone());
    let is_frozen = old.freeze.as_ref().is_some_and(|freeze| freeze.clients);
    match request {
        Request::Post { id, .. } if appended => {
            let head = head.unwrap();
            let holder_id = holder.as_ref().map(|info| info.id.clone());
            assert_eq!(id.map(lock_id), holder_id, "a write past the lock: {request:?}");
            assert!(holder_id.is_some() || !old.require_locks, "a write without the lock that is required");
            assert!(holder_id.is_some() || !is_frozen, "a write past the freeze");
            assert_eq!(head.unlocked, holder_id.is_none());
            assert!(
                !head.forced || holder.is_some_and(|info| info.is_state_push()),
                "forced without state push"
            );
            let current = old.head.as_ref().filter(|head| head.content != Content::Tombstone);
            let ordered = current.is_none_or(|old| {
                let empty = matches!(old.content, Content::Plain { empty: true, .. });
                let (was, is) = (old.lineage.as_ref().unwrap(), head.lineage.as_ref().unwrap());
                empty || was.is_empty() || is.is_empty() || (was == is && head.serial > old.serial)
            });
            assert_eq!(head.forced, !ordered, "forced says that the order was broken: {request:?}");
        }
        Request::Rollback { version, .. } => {
            assert!(holder.is_none(), "a rollback past the lock");
            let head = head.unwrap();
            assert!(head.serial > old.highest_serial, "a serial was used twice");
            let (_, source) = &old_bodies[usize::try_from(*version).unwrap() - 1];
            let (_, written) = bodies.last().unwrap();
            let text = |body: &Bytes| {
                let (start, rest) = std::str::from_utf8(body).unwrap().split_once("\"serial\":").unwrap();
                format!("{start}{}", rest.trim_start_matches(|digit: char| digit.is_ascii_digit()))
            };
            assert_eq!(text(source), text(written), "more than the serial changed");
        }
        Request::Delete { .. } => assert!(holder.is_none() && !is_frozen, "a deletion past the lock"),
        Request::Lock { id, .. } => {
            assert_eq!(record.lock.as_ref().unwrap().info.id, lock_id(*id));
            assert!(old.lock == record.lock || !is_frozen, "a lock past the freeze");
        }
        Request::Unlock { id: None, may_break, .. } => assert!(*may_break || holder.is_none()),
        Request::Freeze { clients, .. } => assert_eq!(record.freeze, clients.map(freeze)),
        Request::Post { .. }
        | Request::Unlock { .. }
        | Request::RequireLocks { .. }
        | Request::RequireEncryption { .. } => {}
    }
    if !matches!(request, Request::Freeze { .. }) {
        assert_eq!(record.freeze, old.freeze, "a client cleared a freeze: {request:?}");
    }
}

proptest! {
    #[test]
    fn no_history_of_requests_breaks_the_rules(requests in requests()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = FakeStateStore::new();
            let backend = StateBackend::new(Arc::new(store.handle()), Arc::new(ManualClock::at(NOON)), Arc::new(Inline), MappingsInForce::default());
            let mut holders: BTreeMap<LockId, TenantName> = BTreeMap::new();
            for request in requests {
                let mut before = Vec::new();
                for index in 0..TENANTS.len() {
                    before.push(snapshot(&store, &tenant_name(index)).await);
                }
                let outcome = carry_out(&backend, &request).await;
                holders.clear();
                for (index, before) in before.iter().enumerate() {
                    let after = snapshot(&store, &tenant_name(index)).await;
                    check(before, &after, &request, outcome.is_ok() && index == tenant_of(&request));
                    if let Some(lock) = after.and_then(|(record, _)| record.lock) {
                        let other = holders.insert(lock.info.id, tenant_name(index));
                        assert_eq!(other, None, "one lock ID is held in two tenants");
                    }
                }
                match outcome {
                    Ok(Some(body)) => {
                        let name = tenant_name(tenant_of(&request));
                        let head = backend.current(&name).await.unwrap().unwrap();
                        assert_eq!(backend.body(&name, head.version).await.unwrap(), body);
                    }
                    Ok(None) => {}
                    Err(BackendError::Refused(refusal)) => {
                        let name = tenant_name(tenant_of(&request));
                        let kept = store.refusals(&name).await.unwrap();
                        let quiet = matches!(request, Request::RequireLocks { .. } | Request::RequireEncryption { .. } | Request::Freeze { .. });
                        assert!(quiet || kept[0].reason == refusal.to_string(), "{refusal} was not kept");
                        assert!((400..500).contains(&refusal.status()));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
}

fn tenant_of(request: &Request) -> usize {
    match request {
        Request::Lock { tenant, .. }
        | Request::Unlock { tenant, .. }
        | Request::Post { tenant, .. }
        | Request::Delete { tenant }
        | Request::Rollback { tenant, .. }
        | Request::Freeze { tenant, .. }
        | Request::RequireLocks { tenant, .. }
        | Request::RequireEncryption { tenant, .. } => *tenant,
    }
}

#[tokio::test]
async fn many_writers_at_once_make_a_line_of_versions() {
    let store = FakeStateStore::new();
    let backend = StateBackend::new(
        Arc::new(store.handle()),
        Arc::new(ManualClock::at(NOON)),
        Arc::new(Inline),
        MappingsInForce::default(),
    );
    let writers: Vec<_> = (1..=20_u64)
        .map(|serial| {
            let backend = backend.clone();
            tokio::spawn(async move {
                let state = ingest(state(serial, 0, 1), None, &Mappings::default()).unwrap();
                backend.post(&tenant("left"), None, &state, &caller(false)).await
            })
        })
        .collect();
    let mut accepted = Vec::new();
    for writer in writers {
        match writer.await.unwrap() {
            Ok(Written::Version(version)) => {
                accepted.push((version.version, version.serial.map(Serial::get)));
            }
            Ok(Written::Unchanged) | Err(BackendError::Refused(_) | BackendError::Contended) => {}
            Err(error) => panic!("{error}"),
        }
    }
    accepted.sort_unstable();
    assert!(accepted.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{accepted:?}");
    let kept: Vec<_> = store.versions(&tenant("left")).await.unwrap();
    assert_eq!(kept.len(), accepted.len());
}
