//! What only a file can show: loss and damage of the index, space that is given back, backups, other formats.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rezus_adapters::sqlite::{Depth, OpenError, SqliteStore, backup, check};
use rezus_core::base::{Clock, TenantName};
use rezus_core::declared::backend::{Caller, StateBackend, ingest};
use rezus_core::declared::compute::Inline;
use rezus_core::declared::mapping::{Mappings, MappingsInForce};
use rezus_core::declared::reader::{ReadError, StateReader};
use rezus_core::declared::store::{IndexStore, StateStore};
use rezus_core::declared::{ResourceAddress, VersionNumber};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::sample::{NOON, random_bytes, tenant};
use rezus_testkit::strategy::large_state;
use tempfile::TempDir;

/// A file with the backend and the reader over it.
struct Plane {
    directory: TempDir,
    store: SqliteStore,
    backend: StateBackend,
    reader: StateReader,
}

impl Plane {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("rezus.db")).unwrap();
        let states: Arc<dyn StateStore> = Arc::new(store.clone());
        let index: Arc<dyn IndexStore> = Arc::new(store.clone());
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOON));
        Self {
            directory,
            store,
            backend: StateBackend::new(
                Arc::clone(&states),
                clock,
                Arc::new(Inline),
                MappingsInForce::default(),
            ),
            reader: StateReader::new(states, index, Arc::new(Inline), MappingsInForce::default()),
        }
    }

    async fn post(&self, tenant: &TenantName, body: Vec<u8>) {
        let caller = Caller { name: "test".to_owned(), may_break_locks: true, may_create_tenants: true };
        let state = ingest(body.into(), None, &Mappings::default()).unwrap();
        self.backend.post(tenant, None, &state, &caller).await.unwrap();
    }

    /// Changes the file behind the store's back.
    fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.directory.path().join("rezus.db")).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// All that reads answer: every row, and every object's bytes by its address.
    async fn answers(&self, tenant: &TenantName) -> Vec<(String, Vec<u8>)> {
        let mut answers = Vec::new();
        for row in self.reader.list(tenant).await.unwrap().rows {
            let object = self.reader.object(tenant, &row.address, row.deposed.as_deref()).await.unwrap();
            assert_eq!(object.row, row);
            answers.push((format!("{row:?}"), object.bytes.to_vec()));
        }
        answers
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_are_read_together_are_those_that_are_read_one_by_one() {
    let plane = Plane::new();
    let prod = tenant("prod");
    let body = state(800, 1);
    assert!(body.len() > 1 << 20, "more than is read at a time");
    plane.post(&prod, body).await;
    let rows = plane.reader.list(&prod).await.unwrap().rows;
    let current = rows.iter().filter(|row| row.deposed.is_none());
    let mut wanted: BTreeSet<ResourceAddress> = current.step_by(2).map(|row| row.address.clone()).collect();
    for damage in
        ["SELECT 1;", "UPDATE index_rows SET span_start = span_start + 1;", "DELETE FROM index_heads;"]
    {
        plane.tamper(damage);
        let objects = plane.reader.objects_at(&prod, &wanted).await.unwrap();
        assert_eq!(objects.len(), wanted.len(), "{damage}");
        for object in objects {
            let alone = plane.reader.object(&prod, &object.row.address, None).await.unwrap();
            assert!(
                alone.bytes == object.bytes && alone.row == object.row,
                "{damage}: {}",
                alone.row.address
            );
        }
    }
    wanted.clear();
    assert!(plane.reader.objects_at(&prod, &wanted).await.unwrap().is_empty());
    wanted.insert(ResourceAddress::parse("null_resource.absent").unwrap());
    assert!(plane.reader.objects_at(&prod, &wanted).await.unwrap().is_empty());
}

/// A state with this serial: the generator's, renumbered.
fn state(instances: usize, serial: u64) -> Vec<u8> {
    let state: serde_json::Value = serde_json::from_slice(&large_state(instances, 7)).unwrap();
    let mut state = state;
    state["serial"] = serial.into();
    serde_json::to_vec(&state).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_is_absent_damaged_or_behind_is_rebuilt_and_changes_no_answer() {
    let plane = Plane::new();
    let prod = tenant("prod");
    plane.post(&prod, state(60, 1)).await;
    plane.post(&prod, state(60, 2)).await;
    let answers = plane.answers(&prod).await;
    assert!(answers.len() >= 60);
    let address = ResourceAddress::parse("null_resource.absent").unwrap();
    for damage in [
        "DELETE FROM index_rows; DELETE FROM index_heads;",
        "DELETE FROM index_heads;",
        "DELETE FROM index_rows WHERE instance = 0;",
        "UPDATE index_rows SET span_start = span_start + 1;",
        "UPDATE index_rows SET span_end = 99999999999;",
        "UPDATE index_rows SET span_start = 0, span_end = 40;",
        "UPDATE index_rows SET masked = 'no JSON';",
        "UPDATE index_rows SET masked = '[]' WHERE instance = 0;",
        "UPDATE index_rows SET tainted = NOT tainted;",
        "UPDATE index_rows SET name = name || 'x';",
        "UPDATE index_rows SET instance_key = 1.5;",
        "UPDATE index_rows SET checksum = 0;",
        "UPDATE index_rows SET mode = 'else';",
        "UPDATE index_heads SET format = 99;",
        "UPDATE index_heads SET version = 1;",
        "UPDATE index_heads SET version = 99;",
        "UPDATE index_heads SET sha256 = zeroblob(32);",
        "UPDATE index_heads SET row_count = row_count + 1;",
    ] {
        plane.tamper(damage);
        let absent = plane.reader.object(&prod, &address, None).await;
        assert!(matches!(absent, Err(ReadError::NoObject { .. })), "{damage}: {absent:?}");
        assert!(plane.answers(&prod).await == answers, "{damage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn space_of_removed_versions_goes_back_to_the_file_system() {
    let plane = Plane::new();
    let prod = tenant("prod");
    for serial in 1..=6 {
        let mut body = state(3, serial);
        // Half a megabyte that does not compress.
        let digit = |byte: &u8| char::from_digit(u32::from(byte & 15), 16).unwrap();
        let noise: String = random_bytes(500_000, serial).iter().map(digit).collect();
        body.pop();
        body.extend_from_slice(format!(",\"noise\":\"{noise}\"}}").as_bytes());
        plane.post(&prod, body).await;
    }
    plane.store.tidy(NOON).await.unwrap();
    let before = plane.store.space().await.unwrap();
    let old: Vec<VersionNumber> = (1..=5).filter_map(VersionNumber::new).collect();
    assert_eq!(plane.store.remove_versions(&prod, &old).await.unwrap(), 5);
    plane.store.tidy(NOON).await.unwrap();
    let after = plane.store.space().await.unwrap();
    assert!(after.total_bytes * 3 < before.total_bytes, "{before:?} {after:?}");
    assert_eq!(after.free_bytes, 0);
    assert!(plane.answers(&prod).await.len() >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_taken_while_others_write_is_whole_and_of_one_moment() {
    let plane = Plane::new();
    let (database, copy) = (plane.directory.path().join("rezus.db"), plane.directory.path().join("copy.db"));
    let (left, right) = (tenant("left"), tenant("right"));
    plane.post(&left, state(40, 1)).await;
    plane.post(&right, state(40, 1)).await;
    let writing = async {
        for serial in 2..30 {
            plane.post(&left, state(40, serial)).await;
            plane.post(&right, state(40, serial)).await;
        }
    };
    let copying = tokio::task::spawn_blocking({
        let copy = copy.clone();
        move || backup(&database, &copy, |_, _| ())
    });
    let ((), copied) = tokio::join!(writing, copying);
    copied.unwrap().unwrap();

    check(&copy, Depth::Whole).unwrap();
    let copied = SqliteStore::open(&copy).unwrap();
    let serials: Vec<u64> = copied
        .tenants()
        .await
        .unwrap()
        .into_iter()
        .map(|record| record.head.unwrap().serial.unwrap().get())
        .collect();
    let [left_serial, right_serial] = serials.try_into().unwrap();
    assert!(left_serial - right_serial <= 1, "{left_serial} {right_serial}");
    for name in [&left, &right] {
        for meta in copied.versions(name).await.unwrap() {
            let body = copied.read(name, meta.version, 0..meta.size_bytes).await.unwrap().unwrap();
            assert_eq!(rezus_core::declared::Fingerprint::of(&body), meta.fingerprint);
        }
    }
}

#[test]
fn a_backup_overwrites_nothing() {
    let plane = Plane::new();
    let taken = plane.directory.path().join("taken");
    std::fs::write(&taken, "precious").unwrap();
    let refused = backup(&plane.directory.path().join("rezus.db"), &taken, |_, _| ());
    assert!(matches!(refused, Err(OpenError::Copy { .. })), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "precious");
    let left_over = taken.with_added_extension("partial");
    assert!(!left_over.exists());
}

fn refused(path: &Path) -> OpenError {
    let opened = SqliteStore::open(path).map(drop).unwrap_err();
    let checked = check(path, Depth::Marks).unwrap_err();
    assert_eq!(opened.to_string(), checked.to_string());
    opened
}

#[test]
fn files_of_others_and_of_later_releases_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);

    let foreign = rusqlite::Connection::open(path("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(foreign);
    assert!(matches!(refused(&path("foreign")), OpenError::Foreign { .. }));

    drop(SqliteStore::open(&path("later")).unwrap());
    let later = rusqlite::Connection::open(path("later")).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    let error = refused(&path("later"));
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");

    std::fs::write(path("empty"), "").unwrap();
    let error = SqliteStore::open(&path("empty")).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::Empty { .. }), "{error}");

    std::fs::write(path("text"), "no database at all, but longer than a header of one would be ".repeat(20))
        .unwrap();
    assert!(matches!(refused(&path("text")), OpenError::Sqlite { .. }));
    assert!(std::fs::read_to_string(path("text")).unwrap().starts_with("no database"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_last_handle_goes_the_file_alone_holds_everything() {
    let plane = Plane::new();
    let prod = tenant("prod");
    for serial in 1..=20 {
        plane.post(&prod, state(3, serial)).await;
    }
    let Plane { directory, store, backend, reader } = plane;
    drop((store, backend, reader));
    let copy = directory.path().join("copy.db");
    std::fs::copy(directory.path().join("rezus.db"), &copy).unwrap();
    let copied = SqliteStore::open(&copy).unwrap();
    assert_eq!(copied.versions(&prod).await.unwrap().len(), 20);
}
