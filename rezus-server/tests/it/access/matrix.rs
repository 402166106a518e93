//! Role by verb by kind by tenant: every route is asked by everybody, against one table. A route without a row fails.

use std::collections::BTreeSet;

use rezus_core::access::{AccountStore as _, AuditFilter};
use rezus_server::auth::{WINDOW, rights};
use rezus_server::{api, kube, prometheus, state_backend, telemetry};
use serde_json::json;

use super::people::{Closed, FOREIGN, LET_IN, OWN, STRANGERS, secret, token_id};
use super::rows::{Row, described_rows, kube_rows, rows, run_rows, series_rows};
use crate::in_process::local;

/// What anybody may ask without being somebody.
const OPEN: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Every method of every route.
fn routes() -> BTreeSet<(&'static str, &'static str)> {
    let health = telemetry::PATHS.into_iter().filter(|path| !OPEN.contains(path)).map(|path| ("GET", path));
    let json = api::PATHS.into_iter().chain(prometheus::PATHS);
    let json = json.flat_map(|(path, methods)| methods.iter().map(move |method| (*method, path)));
    let states = state_backend::PATHS.into_iter().flat_map(|path| {
        let methods: &[&str] = if path.ends_with("/lock") {
            &["LOCK", "UNLOCK", "POST", "PUT", "DELETE"]
        } else {
            &["GET", "POST", "PUT", "DELETE", "LOCK", "UNLOCK"]
        };
        methods.iter().map(move |method| (*method, path))
    });
    let kube = kube::PATHS.iter().copied().map(|path| ("GET", path));
    let described = kube::discovery::PATHS.into_iter().chain(kube::openapi::PATHS).map(|path| ("GET", path));
    let reviews = kube::review::PATHS.into_iter().map(|path| ("POST", path));
    let runs = std::iter::once(kube::RUNS).chain(kube::ACTS).map(|path| ("POST", path));
    health.chain(json).chain(kube).chain(runs).chain(described).chain(reviews).chain(states).collect()
}

fn table() -> Vec<Row> {
    let mut table = rows();
    table.extend(described_rows());
    table.extend(kube::PATHS.iter().copied().flat_map(kube_rows));
    table.extend(run_rows());
    table.extend(series_rows());
    table
}

fn at(text: &str, tenant: &str) -> String {
    text.replace("{tenant}", tenant)
}

#[test]
fn every_route_has_a_row_and_every_row_a_route() {
    let routes = routes();
    let rows: BTreeSet<_> = table().iter().map(|row| (row.method, row.route)).collect();
    let holes: Vec<_> = routes.difference(&rows).collect();
    assert!(holes.is_empty(), "without a row: {holes:?}");
    // Of the Kubernetes API also writes have one, which nobody may.
    let strays: Vec<_> = rows
        .difference(&routes)
        .filter(|(method, path)| *method == "GET" || !kube::PATHS.contains(path))
        .collect();
    assert!(strays.is_empty(), "without a route: {strays:?}");
    let ruled: BTreeSet<_> = rights::RULES.iter().map(|(method, path, ..)| (*method, *path)).collect();
    // What is described, anybody may ask who is somebody; resources have their rule by their path.
    let is_described =
        |method: &str, path: &str| rights::of(method, path, path).right == rights::Right::Anybody;
    let unruled: Vec<_> = routes
        .difference(&ruled)
        .filter(|(method, path)| {
            !kube::PATHS.contains(path) && !kube::ACTS.contains(path) && !is_described(method, path)
        })
        .collect();
    assert!(unruled.is_empty(), "without a rule, and so open to nobody: {unruled:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_may_do_what_the_table_says_and_nothing_else() {
    let mut asked = 0;
    let untouched = Closed::new().await;
    for row in table() {
        for tenant in [OWN, FOREIGN] {
            for who in LET_IN {
                let changes = row.method != "GET" && row.allowed(tenant).contains(&who);
                // What is removed or revoked for one is there for the next; who may not changes nothing.
                let own = if changes { Some(Closed::new().await) } else { None };
                let closed = own.as_ref().unwrap_or(&untouched);
                let (target, body) = (at(&row.target, tenant), at(&row.body, tenant));
                let target =
                    if row.action == Some("tenant.remove") { format!("{target}?force=true") } else { target };
                let answer = closed.ask(who, row.method, &target, body).await;
                let may = row.allowed(tenant).contains(&who);
                let expected = if may { row.code } else { row.denied };
                let answer = answer.expect(expected, &format!("{} {target} by {who}", row.method));
                if expected == 403 {
                    let status = answer.json();
                    let said = [&status["kind"], &status["reason"], &status["status"], &status["errorType"]];
                    if is_as_prometheus(&row) {
                        assert_eq!(said[2..], [&json!("error"), &json!("forbidden")]);
                    } else {
                        assert_eq!(said[..2], [&json!("Status"), &json!("Forbidden")]);
                    }
                }
                on_record(closed, &row, who, tenant, expected).await;
                asked += 1;
            }
        }
    }
    assert!(asked > 1_000, "{asked}");
}

/// Whether a route words refusals as Prometheus does.
fn is_as_prometheus(row: &Row) -> bool {
    row.route.starts_with("/prometheus/")
}

/// What writes, locks or shows a secret is on record, once and truly; what does not is not.
async fn on_record(closed: &Closed, row: &Row, who: &str, tenant: &str, code: u16) {
    closed.plane.plane().auth.trail().flush().await;
    let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    let found = closed.accounts.audit(&filter).await.unwrap();
    closed.accounts.prune_audit(closed.plane.plane().clock.now(), 0).await.unwrap();
    let what = format!("{} {} by {who}", row.method, row.target);
    let Some(action) = row.action else {
        assert!(found.is_empty(), "{what}: {found:?}");
        return;
    };
    let [found] = found.as_slice() else { panic!("{what}: {found:?}") };
    let name = if who == "backend-own" { format!("backend:{OWN}:{}", token_id(who)) } else { who.to_owned() };
    assert_eq!((&found.who, found.code, found.from.as_str()), (&name, code, "192.0.2.7"), "{what}");
    // Who may not break locks at all is refused before it is known that the body is empty.
    let expected = if code == 403 && action == "lock.break" && row.route.starts_with("/state") {
        "unlock"
    } else {
        action
    };
    assert_eq!(found.action, expected, "{what}");
    if row.target.contains("/{tenant}") {
        assert_eq!(found.tenant.as_ref().map(ToString::to_string).as_deref(), Some(tenant), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_let_in_to_nothing_but_the_servers_health() {
    let closed = Closed::new().await;
    for who in STRANGERS {
        for row in table() {
            // So that none is told to wait.
            closed.plane.clock.advance(WINDOW);
            let target = at(&row.target, OWN);
            let answer = closed.ask(who, row.method, &target, at(&row.body, OWN)).await;
            let answer = answer.expect(401, &format!("{} {target} by {who}", row.method));
            if is_as_prometheus(&row) {
                assert_eq!(answer.json()["errorType"], "unauthorized");
            } else {
                assert_eq!(answer.message(), "Unauthorized");
                assert_eq!(answer.json()["reason"], "Unauthorized");
            }
            let scheme = if row.route.starts_with("/state") { "Basic" } else { "Bearer" };
            let challenge = format!("{scheme} realm=\"rezus\"");
            assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
        }
        closed.plane.clock.advance(WINDOW);
        for target in ["/nowhere", "/apis/other/v1", "/state/own/other"] {
            closed.ask(who, "GET", target, "").await.expect(401, target);
        }
        for path in OPEN {
            closed.ask(who, "GET", path, "").await.expect(200, path);
        }
    }
}

#[tokio::test]
async fn lists_show_what_is_of_the_callers_tenants() {
    let closed = Closed::new().await;
    for tenant in [OWN, FOREIGN] {
        let info = crate::lock::info(&crate::lock::id(if tenant == OWN { 1 } else { 2 }), "apply");
        closed.ask("admin-all", "LOCK", &format!("/state/{tenant}"), info).await.expect(200, "LOCK");
    }
    for (who, expected) in [("view-own", &[OWN][..]), ("view-all", &[FOREIGN, OWN])] {
        for (path, field) in [("/rezus/v1/tenants", "name"), ("/rezus/v1/locks", "tenant")] {
            let listed = closed.ask(who, "GET", path, "").await.expect(200, path).items();
            let names: Vec<&str> = listed.iter().map(|item| item[field].as_str().unwrap()).collect();
            assert_eq!(names, expected, "{path} by {who}");
        }
    }
    let ids = async |who: &str| -> BTreeSet<String> {
        let listed = closed.ask(who, "GET", "/rezus/v1/tokens", "").await.expect(200, "tokens").items();
        listed.iter().map(|token| token["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("view-own").await, [token_id("view-own")].into());
    assert_eq!(ids("admin-own").await, [token_id("admin-own"), token_id("backend-own")].into());
    assert_eq!(ids("backend-own").await, [token_id("backend-own")].into());
    assert_eq!(ids("admin-all").await.len(), 11);
}

#[tokio::test]
async fn everybody_sees_themselves_and_revokes_their_own_token() {
    for who in LET_IN {
        let closed = Closed::new().await;
        if who != "backend-own" {
            let seen = closed.ask(who, "GET", &format!("/rezus/v1/users/{who}"), "").await.expect(200, who);
            assert_eq!(seen.json()["name"], who);
        }
        let path = format!("/rezus/v1/tokens/{}", token_id(who));
        let path = if who == "admin-all" { format!("{path}?force=true") } else { path };
        closed.ask(who, "DELETE", &path, "").await.expect(204, who);
        closed.ask(who, "GET", "/rezus/v1/server", "").await.expect(401, who);
    }
}

#[tokio::test]
async fn a_backend_token_opens_its_tenants_state_by_any_name_of_it() {
    let closed = Closed::new().await;
    let lock = |id: u16| crate::lock::info(&crate::lock::id(id), "apply");
    let (own, foreign) = (crate::lock::id(1), crate::lock::id(2));
    closed.ask("backend-own", "LOCK", "/state?ID=own", lock(1)).await.expect(200, "LOCK");
    closed.ask("admin-all", "LOCK", "/state/foreign", lock(2)).await.expect(200, "LOCK of the other");
    let write = async |id: &str| {
        closed.ask("backend-own", "POST", &format!("/state?ID={id}"), crate::lock::state("l", 2)).await
    };
    write(&own).await.expect(200, "by its lock's ID");
    write(&foreign).await.expect(403, "by the ID of another's lock");
    closed.ask("backend-own", "POST", "/state?ID=elsewhere", "{}").await.expect(403, "what is no tenant");
    closed.ask("backend-own", "UNLOCK", "/state/own", lock(1)).await.expect(200, "UNLOCK");
}

#[tokio::test]
async fn tenants_are_created_by_writing_by_those_who_may_create_them() {
    for (who, code) in [("edit-all", 404), ("admin-all", 200), ("admin-own", 403), ("backend-own", 403)] {
        let closed = Closed::new().await;
        let answer = closed.ask(who, "POST", "/state/new", crate::lock::state("l", 1)).await;
        answer.expect(code, who);
    }
    let closed = Closed::new().await;
    let gone = "/rezus/v1/tenants/own?force=true";
    closed.ask("admin-own", "DELETE", gone, "").await.expect(204, "its own");
    closed
        .ask("backend-own", "POST", "/state/own", crate::lock::state("l", 1))
        .await
        .expect(401, "its token went along");
    closed.ask("admin-own", "POST", "/state/own", crate::lock::state("l", 1)).await.expect(200, "its own");
}

#[tokio::test]
async fn nobody_is_impersonated() {
    let closed = Closed::new().await;
    let bearer = format!("Bearer {}", secret("admin-all").reveal());
    for header in ["impersonate-user", "Impersonate-Group", "impersonate-uid", "impersonate-extra-scopes"] {
        let headers = [("authorization", bearer.as_str()), (header, "view-own")];
        for target in ["/rezus/v1/tenants", "/apis/rezuscloud.io/v1alpha1/tenants", "/state/own"] {
            let answer = closed.plane.send_as(local(), "GET", target, &headers, "").await;
            assert!(answer.expect(403, header).message().contains("impersonated"));
        }
    }
}

#[tokio::test]
async fn a_refusal_of_kubernetes_is_worded_as_kubernetes_does() {
    let closed = Closed::new().await;
    let path = "/apis/rezuscloud.io/v1alpha1/namespaces/foreign/machines";
    let list = closed.ask("view-own", "GET", path, "").await.expect(403, "list").message();
    let expected = "machines.rezuscloud.io is forbidden: User \"view-own\" cannot list resource \"machines\" in API group \"rezuscloud.io\" in the namespace \"foreign\"";
    assert_eq!(list, expected);
    let other =
        closed.ask("view-own", "POST", "/rezus/v1/tenants/own/rollback", json!({ "version": 1 }).to_string());
    assert_eq!(
        other.await.expect(403, "rollback").message(),
        "User \"view-own\" needs the role edit in tenant own"
    );
}
