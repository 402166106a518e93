//! What is kept of a state goes by the mappings in force, and what cannot be kept costs no answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rezus_core::base::TenantName;
use rezus_core::declared::ResourceAddress;
use rezus_core::declared::backend::{Caller, StateBackend, Written, ingest};
use rezus_core::declared::compute::{Compute, Inline};
use rezus_core::declared::mapping::{MappingFile, Mappings, MappingsInForce};
use rezus_core::declared::masked::show;
use rezus_core::declared::projector::{Declared, Notices, Projector};
use rezus_core::declared::reader::StateReader;
use rezus_core::declared::store::{HistoryStore as _, IndexStore as _, StateStore, StoreError};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::{FakeStateStore, Fault};
use rezus_testkit::sample::{NOON, tenant};

const SECRET: &str = "hunter-2-hunter";

/// All that works on one store, with the mappings that it shares.
struct Plane {
    store: FakeStateStore,
    mappings: MappingsInForce,
    backend: StateBackend,
    reader: StateReader,
    projector: Projector,
    notices: Arc<Told>,
}

/// What was told.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<TenantName>>, AtomicU64);

impl Notices for Told {
    fn history_not_kept(&self, tenant: &TenantName, _error: &StoreError) {
        self.0.lock().unwrap().push(tenant.clone());
    }

    fn projected(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

/// A mapping of one type, whose secrets are these paths.
fn mappings(secrets: &str) -> Mappings {
    let text = format!(
        "mapping: acme\ntypes:\n  acme_server:\n    kind: Machine\n    fields: {{name: $.name, zone: $.zone}}\n    secrets: [$.unused, {secrets}]\n"
    );
    Mappings::compile(&[MappingFile { name: "acme.yaml".to_owned(), text }]).unwrap()
}

fn state(serial: u64, zone: &str) -> String {
    format!(
        r#"{{"version":4,"serial":{serial},"lineage":"l","outputs":{{}},"resources":[{{"mode":"managed","type":"acme_server",
        "name":"n","provider":"provider[\"r/acme/acme\"]","instances":[{{"schema_version":0,"attributes":
        {{"name":"node","zone":"{zone}","pin":"{SECRET}"}}}}]}}]}}"#
    )
}

impl Plane {
    fn new() -> Self {
        let store = FakeStateStore::new();
        let mappings = MappingsInForce::new(mappings(""));
        let (states, clock): (Arc<dyn StateStore>, _) =
            (Arc::new(store.handle()), Arc::new(ManualClock::at(NOON)));
        let notices = Arc::new(Told::default());
        let (inline, index): (Arc<dyn Compute>, _) = (Arc::new(Inline), Arc::new(store.handle()));
        let told: Arc<dyn Notices> = Arc::<Told>::clone(&notices);
        let reader = StateReader::new(Arc::clone(&states), index, Arc::clone(&inline), mappings.clone());
        Self {
            backend: StateBackend::new(Arc::clone(&states), clock, Arc::clone(&inline), mappings.clone()),
            projector: Projector::new(
                states,
                reader.clone(),
                Arc::new(store.handle()),
                inline,
                mappings.clone(),
            )
            .with_notices(told),
            reader,
            store,
            mappings,
            notices,
        }
    }

    async fn post(&self, serial: u64, zone: &str) {
        let state = ingest(state(serial, zone).into(), None, &self.mappings.get()).unwrap();
        let caller = Caller { name: "client".to_owned(), may_break_locks: false, may_create_tenants: true };
        let written = self.backend.post(&tenant("prod"), None, &state, &caller).await.unwrap();
        assert!(matches!(written, Written::Version(_)));
    }

    /// Returns what `state show` does.
    async fn shown(&self) -> String {
        let address = ResourceAddress::parse("acme_server.n").unwrap();
        let object = self.reader.object(&tenant("prod"), &address, None).await.unwrap();
        show(&object.bytes, &object.row.masked).unwrap()
    }

    async fn declared(&self) -> Arc<Declared> {
        self.projector.current(&tenant("prod")).await.unwrap()
    }

    /// Returns what the index in the store was masked by.
    async fn masked_by(&self) -> [u8; 32] {
        self.store.head(&tenant("prod")).await.unwrap().unwrap().secret_rules
    }
}

#[tokio::test]
async fn what_mappings_call_a_secret_is_hidden_from_their_coming_into_force() {
    let plane = Plane::new();
    plane.post(1, SECRET).await;
    let by_none = plane.masked_by().await;
    assert_eq!(plane.shown().await.matches(SECRET).count(), 2);
    assert_eq!(plane.declared().await.projection.machines[0].zone.as_deref(), Some(SECRET));

    plane.projector.use_mappings(mappings("$.pin"));
    let shown = plane.shown().await;
    assert!(!shown.contains(SECRET) && shown.contains("node"), "{shown}");
    let rows = plane.reader.list(&tenant("prod")).await.unwrap().rows;
    assert_eq!(rows[0].masked, ["/attributes/pin", "/attributes/zone"]);
    assert_eq!(plane.declared().await.projection.machines[0].zone, None);
    assert_ne!(plane.masked_by().await, by_none);

    // A list alone is brought up to date as well, and what is posted from then on needs no second look.
    plane.projector.use_mappings(mappings("$.name"));
    let rows = plane.reader.list(&tenant("prod")).await.unwrap().rows;
    assert_eq!(rows[0].masked, ["/attributes/name"]);
    plane.projector.use_mappings(mappings("$.pin"));
    plane.post(2, "b").await;
    assert_eq!(plane.masked_by().await, plane.mappings.get().secrets_digest());
    assert!(!plane.shown().await.contains(SECRET));
}

#[tokio::test]
async fn mappings_that_hide_the_same_have_the_same_digest() {
    let digest = |secrets: &str| mappings(secrets).secrets_digest();
    assert_eq!(digest("$.a, $.b"), digest("$.b, $.a, $.a"));
    let all = [digest(""), digest("$.a"), digest("$.b"), digest("$.a.b"), digest("$.a, $.b")];
    assert_eq!(std::collections::BTreeSet::from(all).len(), all.len());
    // Nothing of what is built in is missing where there are no mappings at all.
    assert_ne!(Mappings::default().secrets_digest(), [0; 32]);
}

#[tokio::test]
async fn the_newest_version_is_projected_from_its_index_unless_that_is_not_of_its_bytes() {
    let plane = Plane::new();
    plane.post(1, "a").await;
    let (head, rows) = plane.store.rows(&tenant("prod")).await.unwrap().unwrap();
    let mut hidden = rows.clone();
    hidden[0].masked = vec!["/attributes/zone".to_owned()];
    let mut odd = hidden.clone();
    odd[0].checksum ^= 1;
    let of_other_rules = rezus_core::declared::index::IndexHead { secret_rules: [1; 32], ..head };
    for (head, rows, zone) in
        [(head, hidden.clone(), None), (head, odd, Some("a")), (of_other_rules, hidden, Some("a"))]
    {
        plane.store.replace(&tenant("prod"), head, rows.into()).await.unwrap();
        // The same mappings again are others: what was projected by those before is not believed.
        plane.projector.use_mappings(mappings(""));
        assert_eq!(plane.declared().await.projection.machines[0].zone.as_deref(), zone);
    }
}

#[tokio::test]
async fn a_version_is_projected_once_and_that_is_told() {
    let plane = Plane::new();
    let projected = || plane.notices.1.load(Ordering::Relaxed);
    plane.post(1, "a").await;
    assert_eq!(projected(), 0, "nobody asked");
    for _ in 0..3 {
        plane.declared().await;
        assert_eq!(projected(), 1);
    }
    plane.post(2, "b").await;
    plane.declared().await;
    assert_eq!(projected(), 2);
    plane.projector.use_mappings(mappings("$.pin"));
    plane.declared().await;
    assert_eq!(projected(), 3, "other mappings read it otherwise");
}

#[tokio::test]
async fn a_history_that_cannot_be_kept_is_told_once_and_costs_no_answer() {
    let plane = Plane::new();
    let told = || plane.notices.0.lock().unwrap().len();
    for (serial, kept, count) in [(1, 1, 0), (2, 1, 1), (3, 1, 1), (4, 4, 1), (5, 4, 2)] {
        plane.post(serial, &format!("zone-{serial}")).await;
        if kept < serial {
            plane.store.fail_next(Fault::BeforeWrite);
        }
        let declared = plane.declared().await;
        assert_eq!(declared.version.version.get(), serial);
        let lifetime = declared.objects.values().last().unwrap();
        assert_eq!(lifetime.history.first_version.get(), 1);
        assert_eq!(told(), count, "{serial}");
        let stored = plane.store.history(&tenant("prod")).await.unwrap().map(|(head, _)| head.version.get());
        assert_eq!(stored, Some(kept));
    }
}
