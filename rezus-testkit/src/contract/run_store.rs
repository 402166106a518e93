//! The laws of `RunStore`.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::declared::VersionNumber;
use rezus_core::runs::store::RunStore;
use rezus_core::runs::workspace::{ConfigurationSource, DriftMode, SecretSource, TenantSettings, Workspace};
use rezus_core::runs::{
    Approval, Cause, Pending, PendingEnd, PlanEnd, Run, RunName, RunRecord, VariableName,
};

use crate::sample::{noon_plus, random_bytes, run_facts, tenant};

/// Storage of its own for one law.
#[async_trait]
pub trait RunStoreFixture: Send + Sync {
    /// Opens the port on that storage, anew each time.
    async fn open(&self) -> Arc<dyn RunStore>;
}

/// Makes a test of each law of `RunStore`, in a module `run_store_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! run_store_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            run_store_laws,
            $crate::contract::run_store,
            $fixture,
            a_run_is_replaced_where_it_stands,
            a_run_that_is_none_is_not_put,
            a_taken_name_is_refused_and_changes_nothing,
            an_archive_is_kept_while_settings_name_it,
            another_tenant_is_left_alone,
            everything_is_found_when_it_is_opened_again,
            removed_runs_are_gone,
            settings_come_back_as_they_were_set,
            those_that_have_not_ended_are_listed,
            what_is_set_of_nobody_is_not_listed,
            what_is_removed_of_a_tenant_is_all_of_it,
        );
    };
}

fn name(text: &str) -> RunName {
    RunName::parse(text).unwrap()
}

fn pending(in_tenant: &str, run: &str) -> Pending {
    Pending::new(run_facts(&tenant(in_tenant), run))
}

fn added(in_tenant: &str, run: &str) -> RunRecord {
    Run::Pending(pending(in_tenant, run)).record()
}

fn planning(in_tenant: &str, run: &str) -> RunRecord {
    Run::Planning(pending(in_tenant, run).plan(noon_plus(5), Some(VersionNumber::FIRST))).record()
}

fn planned(in_tenant: &str, run: &str) -> RunRecord {
    let planning = pending(in_tenant, run).plan(noon_plus(5), None);
    let cause = Cause::new("Planned", "nothing \"else\"");
    Run::Ended(planning.end(PlanEnd::Planned, cause, noon_plus(9))).record()
}

fn cancelled(in_tenant: &str, run: &str) -> RunRecord {
    let end = PendingEnd::Cancelled("ana".to_owned());
    Run::Ended(pending(in_tenant, run).end(end, Cause::new("Cancelled", ""), noon_plus(9))).record()
}

fn names(runs: &[RunRecord]) -> Vec<String> {
    runs.iter().map(|run| format!("{}/{}", run.tenant(), run.facts().name)).collect()
}

fn archived(digest: &str) -> TenantSettings {
    let source = ConfigurationSource::Archive(digest.to_owned());
    TenantSettings { workspace: Some(Workspace::of(source)), ..TenantSettings::default() }
}

fn labelled(value: &str) -> TenantSettings {
    TenantSettings { labels: [("env".to_owned(), value.to_owned())].into(), ..TenantSettings::default() }
}

/// Returns settings none of whose members is as it is by default.
pub fn full_settings() -> TenantSettings {
    let variable = |name: &str| VariableName::parse(name).unwrap();
    TenantSettings {
        workspace: Some(Workspace {
            source: ConfigurationSource::Directory("/srv/a b/\u{e9}".into()),
            revision: Some("v1.2".to_owned()),
            variables: [(variable("count"), "3".to_owned()), (variable("text"), "a\n\"b\"".to_owned())]
                .into(),
            secret_variables: [
                (variable("token"), SecretSource::File("/run/token".into())),
                (variable("key"), SecretSource::Environment("KEY".to_owned())),
            ]
            .into(),
            secret_environment: [("TF_ENCRYPTION".to_owned(), SecretSource::File("/run/enc".into()))].into(),
            environment: ["LANG".to_owned(), "HTTPS_PROXY".to_owned()].into(),
            binary: Some("/opt/tofu".into()),
            approval: Approval::Auto,
            protect_destroy: true,
            drift_every: Some(Duration::from_millis(3_600_001)),
            drift_mode: DriftMode::Full,
            plan_timeout: Duration::from_secs(7),
            apply_timeout: Duration::from_secs(8),
            grace: Duration::from_millis(9),
        }),
        labels: [("env".to_owned(), "prod".to_owned()), ("a.example/b".to_owned(), String::new())].into(),
        kubeconfig_file: Some("/run/kubeconfig".into()),
        talosconfig_file: Some("/run/talosconfig".into()),
        collect: Some(false),
        destinations: [std::net::IpAddr::from([127, 0, 0, 1])].into(),
        recording: Some("/srv/recording".into()),
        node_metrics: Some(9_100),
    }
}

/// A second run of a name is none; one of the same name in another tenant is another.
pub async fn a_taken_name_is_refused_and_changes_nothing(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    assert!(store.add(&planning("prod", "a")).await.unwrap());
    assert!(!store.add(&added("prod", "a")).await.unwrap());
    assert!(store.add(&added("test", "a")).await.unwrap());
    let expected = [planning("prod", "a"), added("test", "a")];
    assert_eq!(store.runs(None).await.unwrap(), expected);
    assert_eq!(store.run(&tenant("prod"), &name("a")).await.unwrap(), Some(planning("prod", "a")));
}

/// What a run has become is seen under its name, and the order stays that of adding.
pub async fn a_run_is_replaced_where_it_stands(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    for run in ["b", "c", "a"] {
        assert!(store.add(&added("prod", run)).await.unwrap());
    }
    assert!(store.put(&planning("prod", "b")).await.unwrap());
    assert!(store.put(&planned("prod", "b")).await.unwrap());
    let expected = [planned("prod", "b"), added("prod", "c"), added("prod", "a")];
    assert_eq!(store.runs(Some(&tenant("prod"))).await.unwrap(), expected);
    assert_eq!(store.run(&tenant("prod"), &name("b")).await.unwrap(), Some(planned("prod", "b")));
}

/// A run that was not added is not put, nor is one of another tenant.
pub async fn a_run_that_is_none_is_not_put(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    assert!(!store.put(&added("prod", "a")).await.unwrap());
    store.add(&added("prod", "a")).await.unwrap();
    assert!(!store.put(&planning("test", "a")).await.unwrap());
    assert_eq!(store.runs(None).await.unwrap(), [added("prod", "a")]);
    assert_eq!(store.run(&tenant("test"), &name("a")).await.unwrap(), None);
}

/// Exactly those, whatever their tenant, in the order they were added.
pub async fn those_that_have_not_ended_are_listed(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    assert_eq!(store.unended().await.unwrap(), []);
    for run in [planned("prod", "a"), added("test", "b"), added("prod", "c"), added("prod", "d")] {
        store.add(&run).await.unwrap();
    }
    assert_eq!(names(&store.unended().await.unwrap()), ["test/b", "prod/c", "prod/d"]);
    store.put(&cancelled("prod", "c")).await.unwrap();
    store.put(&planning("prod", "d")).await.unwrap();
    assert_eq!(store.unended().await.unwrap(), [added("test", "b"), planning("prod", "d")]);
}

/// A run that was removed is in no list, and its name is free.
pub async fn removed_runs_are_gone(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    store.add(&added("prod", "a")).await.unwrap();
    store.add(&added("prod", "b")).await.unwrap();
    assert!(store.remove(&tenant("prod"), &name("a")).await.unwrap());
    assert!(!store.remove(&tenant("prod"), &name("a")).await.unwrap());
    assert!(!store.remove(&tenant("test"), &name("b")).await.unwrap());
    assert_eq!(names(&store.unended().await.unwrap()), ["prod/b"]);
    assert!(store.add(&planned("prod", "a")).await.unwrap());
    assert_eq!(names(&store.runs(None).await.unwrap()), ["prod/b", "prod/a"]);
}

/// Each member comes back; a later setting replaces all of them.
pub async fn settings_come_back_as_they_were_set(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    assert_eq!(store.settings(&prod).await.unwrap(), TenantSettings::default());
    store.set_settings(&prod, &full_settings(), None).await.unwrap();
    assert_eq!(store.settings(&prod).await.unwrap(), full_settings());
    store.set_settings(&prod, &labelled("test"), None).await.unwrap();
    assert_eq!(store.settings(&prod).await.unwrap(), labelled("test"));
}

/// All of which something is set, sorted; nothing set is nothing.
pub async fn what_is_set_of_nobody_is_not_listed(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    assert_eq!(store.all_settings().await.unwrap(), []);
    for (of, settings) in [("z", full_settings()), ("a", labelled("x")), ("m", TenantSettings::default())] {
        store.set_settings(&tenant(of), &settings, None).await.unwrap();
    }
    let expected = [(tenant("a"), labelled("x")), (tenant("z"), full_settings())];
    assert_eq!(store.all_settings().await.unwrap(), expected);
    store.set_settings(&tenant("a"), &TenantSettings::default(), None).await.unwrap();
    assert_eq!(store.all_settings().await.unwrap(), [(tenant("z"), full_settings())]);
}

/// Two may name the same; once nobody does, it is forgotten. One that nobody names is not kept at all.
pub async fn an_archive_is_kept_while_settings_name_it(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    let (left, right) = (tenant("left"), tenant("right"));
    let bytes = random_bytes(300_000, 7);
    let upload = |digest: &str| Some((digest.to_owned(), bytes.clone()));
    let kept = async |digest: &str| store.archive(digest).await.unwrap();
    assert_eq!(kept("d1").await, None);
    store.set_settings(&left, &archived("d1"), upload("d1")).await.unwrap();
    store.set_settings(&right, &archived("d1"), upload("d1")).await.unwrap();
    assert_eq!(kept("d1").await, Some(bytes.clone()));
    // Settings that go on naming it keep it without its bytes.
    let changed = TenantSettings { labels: labelled("x").labels, ..archived("d1") };
    store.set_settings(&left, &changed, None).await.unwrap();
    store.set_settings(&right, &archived("d2"), Some(("d2".to_owned(), Bytes::new()))).await.unwrap();
    assert_eq!((kept("d1").await, kept("d2").await), (Some(bytes.clone()), Some(Bytes::new())));
    store.set_settings(&left, &labelled("x"), upload("d3")).await.unwrap();
    assert_eq!((kept("d1").await, kept("d2").await, kept("d3").await), (None, Some(Bytes::new()), None));
}

/// Runs, settings and what only these named; the names are those of its runs, in the order they were added.
pub async fn what_is_removed_of_a_tenant_is_all_of_it(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    for run in [planned("prod", "b"), added("prod", "a")] {
        store.add(&run).await.unwrap();
    }
    let archive = Some(("d".to_owned(), Bytes::from_static(b"tar")));
    store.set_settings(&prod, &archived("d"), archive).await.unwrap();
    assert_eq!(store.remove_tenant(&prod).await.unwrap(), [name("b"), name("a")]);
    assert_eq!(store.remove_tenant(&prod).await.unwrap(), []);
    assert_eq!(store.runs(None).await.unwrap(), []);
    assert_eq!(store.settings(&prod).await.unwrap(), TenantSettings::default());
    assert_eq!(store.archive("d").await.unwrap(), None);
}

/// Whatever is done to one tenant, the others keep what they have.
pub async fn another_tenant_is_left_alone(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    let (prod, test) = (tenant("prod"), tenant("test"));
    for of in ["prod", "test"] {
        store.add(&added(of, "a")).await.unwrap();
        let archive = Some((of.to_owned(), Bytes::from(of)));
        store.set_settings(&tenant(of), &archived(of), archive).await.unwrap();
    }
    store.put(&planned("prod", "a")).await.unwrap();
    assert_eq!(store.runs(Some(&test)).await.unwrap(), [added("test", "a")]);
    store.remove_tenant(&prod).await.unwrap();
    assert_eq!(store.runs(None).await.unwrap(), [added("test", "a")]);
    assert_eq!(store.settings(&test).await.unwrap(), archived("test"));
    assert_eq!(store.archive("test").await.unwrap(), Some(Bytes::from_static(b"test")));
}

/// Another handle sees all of it.
pub async fn everything_is_found_when_it_is_opened_again(fixture: &dyn RunStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    store.add(&planned("prod", "b")).await.unwrap();
    store.add(&added("prod", "a")).await.unwrap();
    let settings = TenantSettings { labels: full_settings().labels, ..archived("d") };
    store.set_settings(&prod, &settings, Some(("d".to_owned(), Bytes::from_static(b"tar")))).await.unwrap();
    drop(store);
    let store = fixture.open().await;
    assert_eq!(store.runs(Some(&prod)).await.unwrap(), [planned("prod", "b"), added("prod", "a")]);
    assert_eq!(store.unended().await.unwrap(), [added("prod", "a")]);
    assert_eq!(store.settings(&prod).await.unwrap(), settings);
    assert_eq!(store.archive("d").await.unwrap(), Some(Bytes::from_static(b"tar")));
    assert!(!store.add(&added("prod", "a")).await.unwrap());
}
