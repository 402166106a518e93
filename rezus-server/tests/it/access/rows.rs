//! What each route answers to whom: the table that the matrix is checked against.

use rezus_server::kube::{self, discovery, openapi, review};
use rezus_server::prometheus;
use serde_json::json;

use super::people::OWN;
use crate::lock::{self, APPLY, state};

/// Everybody who is let in.
const SOMEBODY: &[&str] =
    &["view-all", "view-own", "edit-all", "edit-own", "admin-all", "admin-own", "backend-own", "no-grants"];
const VIEWERS: &[&str] = &["view-all", "view-own", "edit-all", "edit-own", "admin-all", "admin-own"];
const VIEWERS_EVERYWHERE: &[&str] = &["view-all", "edit-all", "admin-all"];
const EDITORS: &[&str] = &["edit-all", "edit-own", "admin-all", "admin-own"];
const EDITORS_EVERYWHERE: &[&str] = &["edit-all", "admin-all"];
const WRITERS: &[&str] = &["edit-all", "edit-own", "admin-all", "admin-own", "backend-own"];
const ADMINS: &[&str] = &["admin-all", "admin-own"];
const ADMINS_EVERYWHERE: &[&str] = &["admin-all"];

/// One kind of request.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) method: &'static str,
    pub(super) route: &'static str,
    /// What is sent, with `{tenant}` in it.
    pub(super) target: String,
    pub(super) body: String,
    /// Who may, in the tenant that some are bound to.
    pub(super) own: &'static [&'static str],
    /// Who may, in another one.
    pub(super) foreign: &'static [&'static str],
    /// How they are answered.
    pub(super) code: u16,
    /// How the others are.
    pub(super) denied: u16,
    /// What the trail calls it.
    pub(super) action: Option<&'static str>,
}

impl Row {
    pub(super) fn allowed(&self, tenant: &str) -> &'static [&'static str] {
        if tenant == OWN { self.own } else { self.foreign }
    }

    fn to(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    fn with(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    fn answers(self, code: u16) -> Self {
        Self { code, ..self }
    }

    fn denies(self, denied: u16) -> Self {
        Self { denied, ..self }
    }

    fn named(self, action: &'static str) -> Self {
        Self { action: Some(action), ..self }
    }
}

fn row(
    method: &'static str,
    route: &'static str,
    own: &'static [&'static str],
    foreign: &'static [&'static str],
) -> Row {
    let target = route.replace("{version}", "1").replace("{id}", "victim").replace("{name}", "victim");
    Row { method, route, target, body: String::new(), own, foreign, code: 200, denied: 403, action: None }
}

fn view(method: &'static str, route: &'static str) -> Row {
    row(method, route, VIEWERS, VIEWERS_EVERYWHERE)
}

fn edit(method: &'static str, route: &'static str) -> Row {
    row(method, route, EDITORS, EDITORS_EVERYWHERE)
}

fn admin(method: &'static str, route: &'static str) -> Row {
    row(method, route, ADMINS, ADMINS_EVERYWHERE)
}

fn anywhere(method: &'static str, route: &'static str, who: &'static [&'static str]) -> Row {
    row(method, route, who, who)
}

fn open(method: &'static str, route: &'static str) -> Row {
    anywhere(method, route, SOMEBODY)
}

/// All rows but those of the Kubernetes API.
pub(super) fn rows() -> Vec<Row> {
    let tenant = "/rezus/v1/tenants/{tenant}";
    assert!(tenant.ends_with("{tenant}"));
    let mut rows = vec![
        anywhere("GET", "/metrics", VIEWERS_EVERYWHERE),
        open("GET", "/rezus/v1/server"),
        anywhere("POST", "/rezus/v1/prune", ADMINS_EVERYWHERE)
            .with(r#"{"dryRun":true}"#)
            .named("version.prune"),
        anywhere("GET", "/rezus/v1/locks", VIEWERS),
        anywhere("GET", "/rezus/v1/tenants", VIEWERS),
        admin("POST", "/rezus/v1/tenants").with(r#"{"name":"{tenant}"}"#).answers(409).named("tenant.create"),
        view("GET", "/rezus/v1/tenants/{tenant}"),
        admin("PATCH", "/rezus/v1/tenants/{tenant}")
            .with(r#"{"requireLocks":true}"#)
            .named("tenant.configure"),
        // What is the server's, only who is its admin names.
        row("PATCH", "/rezus/v1/tenants/{tenant}", ADMINS_EVERYWHERE, ADMINS_EVERYWHERE)
            .with(r#"{"dir":"/"}"#)
            .named("tenant.configure"),
        // It is no file.
        row("PATCH", "/rezus/v1/tenants/{tenant}", ADMINS_EVERYWHERE, ADMINS_EVERYWHERE)
            .with(r#"{"kubeconfigFile":"/"}"#)
            .answers(422)
            .named("tenant.configure"),
        row("PATCH", "/rezus/v1/tenants/{tenant}", ADMINS_EVERYWHERE, ADMINS_EVERYWHERE)
            .with(r#"{"recording":"/"}"#)
            .named("tenant.configure"),
        // Where it connects to that others do not reach.
        row("PATCH", "/rezus/v1/tenants/{tenant}", ADMINS_EVERYWHERE, ADMINS_EVERYWHERE)
            .with(r#"{"destinations":["127.0.0.1"]}"#)
            .named("tenant.configure"),
        admin("PATCH", "/rezus/v1/tenants/{tenant}")
            .with(r#"{"collect":false,"nodeMetrics":9100}"#)
            .named("tenant.configure"),
        admin("PATCH", "/rezus/v1/tenants/{tenant}")
            .with(r#"{"encryption":"optional"}"#)
            .named("tenant.configure"),
        admin("DELETE", "/rezus/v1/tenants/{tenant}").answers(204).named("tenant.remove"),
        // What is sent is no archive.
        admin("PUT", "/rezus/v1/tenants/{tenant}/configuration").answers(415).named("tenant.configuration"),
        edit("PUT", "/rezus/v1/tenants/{tenant}/freeze")
            .with(r#"{"reason":"audit","clients":true}"#)
            .named("tenant.freeze"),
        edit("DELETE", "/rezus/v1/tenants/{tenant}/freeze").named("tenant.unfreeze"),
        view("GET", "/rezus/v1/tenants/{tenant}/locks"),
        edit("DELETE", "/rezus/v1/tenants/{tenant}/locks").named("lock.break"),
        view("GET", "/rezus/v1/tenants/{tenant}/refusals"),
        view("GET", "/rezus/v1/tenants/{tenant}/versions"),
        view("GET", "/rezus/v1/tenants/{tenant}/versions/{version}"),
        edit("PATCH", "/rezus/v1/tenants/{tenant}/versions/{version}")
            .with(r#"{"pinned":true}"#)
            .named("version.pin"),
        edit("GET", "/rezus/v1/tenants/{tenant}/versions/{version}/body").named("version.read"),
        edit("POST", "/rezus/v1/tenants/{tenant}/rollback")
            .with(r#"{"version":1}"#)
            .answers(409)
            .named("state.rollback"),
        view("GET", "/rezus/v1/tenants/{tenant}/diff").to("/rezus/v1/tenants/{tenant}/diff?from=1&to=1"),
        view("GET", "/rezus/v1/tenants/{tenant}/resources"),
        view("GET", "/rezus/v1/tenants/{tenant}/readings"),
        edit("POST", "/rezus/v1/tenants/{tenant}/index").with("{}").named("index.rebuild"),
    ];
    rows.extend(accounts());
    rows.extend(states());
    rows
}

fn accounts() -> Vec<Row> {
    let grants = json!({ "group": "ops", "grants": [{ "role": "view" }] }).to_string();
    vec![
        open("GET", "/rezus/v1/tokens"),
        admin("POST", "/rezus/v1/tokens").with(r#"{"tenant":"{tenant}"}"#).answers(201).named("token.create"),
        anywhere("POST", "/rezus/v1/tokens", ADMINS_EVERYWHERE)
            .with(r#"{"user":"victim"}"#)
            .answers(201)
            .named("token.create"),
        // Who may not see it is told what they are told of any other ID.
        anywhere("DELETE", "/rezus/v1/tokens/{id}", ADMINS_EVERYWHERE)
            .answers(204)
            .denies(404)
            .named("token.revoke"),
        anywhere("GET", "/rezus/v1/users", ADMINS_EVERYWHERE),
        anywhere("POST", "/rezus/v1/users", ADMINS_EVERYWHERE)
            .with(r#"{"name":"ana"}"#)
            .answers(201)
            .named("user.create"),
        anywhere("GET", "/rezus/v1/users/{name}", ADMINS_EVERYWHERE),
        anywhere("PATCH", "/rezus/v1/users/{name}", ADMINS_EVERYWHERE)
            .with(r#"{"groups":["ops"]}"#)
            .named("user.change"),
        anywhere("DELETE", "/rezus/v1/users/{name}", ADMINS_EVERYWHERE).answers(204).named("user.remove"),
        anywhere("GET", "/rezus/v1/grants", ADMINS_EVERYWHERE),
        anywhere("PUT", "/rezus/v1/grants", ADMINS_EVERYWHERE).with(grants).named("group.grant"),
        admin("GET", "/rezus/v1/audit").to("/rezus/v1/audit?tenant={tenant}"),
        anywhere("GET", "/rezus/v1/audit", ADMINS_EVERYWHERE),
    ]
}

fn states() -> Vec<Row> {
    let work = |method, route| row(method, route, WRITERS, EDITORS_EVERYWHERE);
    let info = lock::info(&lock::id(1), APPLY);
    let mut rows = Vec::new();
    for (route, target) in [("/state/{tenant}", "/state/{tenant}"), ("/state", "/state?ID={tenant}")] {
        rows.extend([
            work("GET", route).named("state.read").to(target),
            work("POST", route).with(state("l", 2)).named("state.write").to(target),
            work("PUT", route).with(state("l", 2)).named("state.write").to(target),
            admin("DELETE", route).named("state.delete").to(target),
            work("LOCK", route).with(info.clone()).named("lock").to(target),
            // There is none to be released.
            work("UNLOCK", route).with(info.clone()).answers(409).named("unlock").to(target),
        ]);
    }
    let route = "/state/{tenant}/lock";
    rows.extend([
        work("LOCK", route).with(info.clone()).named("lock"),
        work("POST", route).with(info.clone()).named("lock"),
        work("PUT", route).with(info.clone()).named("lock"),
        work("UNLOCK", route).with(info).answers(409).named("unlock"),
        work("DELETE", route).named("lock.break"),
    ]);
    rows
}

/// The rows of a path of the Kubernetes API: reads, and writes that nobody may.
pub(super) fn kube_rows(route: &'static str) -> Vec<Row> {
    if !["/apis/rezuscloud.io/v1alpha1/", "/api/v1/"].iter().any(|base| route.starts_with(base)) {
        return Vec::new();
    }
    let is_credential = route.ends_with("/kubeconfig") || route.ends_with("/talosconfig");
    // What is asked for by a name that nothing has is not there; nor is a credential in these states.
    let code = if route.contains("{name}") || is_credential { 404 } else { 200 };
    let (own, foreign) = match (is_credential, route.contains("{tenant}")) {
        (true, _) => (EDITORS, EDITORS_EVERYWHERE),
        (false, true) => (VIEWERS, VIEWERS_EVERYWHERE),
        (false, false) => (VIEWERS, VIEWERS),
    };
    let writes = ["POST", "PUT", "PATCH", "DELETE"].map(|method| (method, 405));
    let rows = [("GET", code)].into_iter().chain(writes).map(|(method, code)| {
        let row = row(method, route, own, foreign).answers(code);
        if is_credential { row.named("credential.read") } else { row }
    });
    // Runs alone can be made.
    rows.filter(|row| (row.method, row.route) != ("POST", kube::RUNS)).collect()
}

/// The rows of what is done with runs. The tenants have nothing to run, and so no run.
pub(super) fn run_rows() -> Vec<Row> {
    let run =
        json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Run", "spec": { "operation": "plan" } });
    let mut rows = vec![edit("POST", kube::RUNS).with(run.to_string()).answers(409).named("run.create")];
    for (route, action) in kube::ACTS.into_iter().zip(["run.approve", "run.cancel", "run.dismiss"]) {
        rows.push(edit("POST", route).answers(404).named(action));
    }
    rows
}

/// The rows of series: whoever views some tenant asks, and is shown what is of theirs.
pub(super) fn series_rows() -> Vec<Row> {
    let row = |(route, methods): (&'static str, &'static [&'static str])| {
        let query = if route.ends_with("/series") { "match[]=up" } else { "query=up&start=0&end=1&step=1" };
        let target = format!("{}?{query}", route.replace("{name}", "tenant"));
        methods.iter().map(move |method| anywhere(method, route, VIEWERS).to(&target)).collect::<Vec<_>>()
    };
    prometheus::PATHS.into_iter().flat_map(row).collect()
}

/// The rows of what whoever is somebody may ask: what is served, how it is described, what they may do.
pub(super) fn described_rows() -> Vec<Row> {
    let described = discovery::PATHS.into_iter().chain(openapi::PATHS);
    let reads = described.map(|route| {
        // The second version is none that is offered.
        let code = if route == "/openapi/v2" { 406 } else { 200 };
        row("GET", route, SOMEBODY, SOMEBODY).answers(code)
    });
    let review = json!({ "spec": { "resourceAttributes": { "verb": "list", "resource": "machines" } } });
    let reviews = review::PATHS.into_iter();
    let reviews =
        reviews.map(|route| row("POST", route, SOMEBODY, SOMEBODY).with(review.to_string()).answers(201));
    reads.chain(reviews).collect()
}
