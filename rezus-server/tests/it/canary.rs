//! No secret of a state is in anything that rezus shows of it: every route, every command, the log, the metrics, and what
//! is stored beside the states themselves. A route or command without a case here fails the test.

mod commands;

use rezus_core::declared::backend::ingest;
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::reader::StateReader;
use rezus_server::{api, kube, prometheus, state_backend, telemetry};
use rezus_testkit::canary::Canary;
use rezus_testkit::fixture;
use serde_json::{Value, json};

use crate::server::{Server, Settings};

const TENANT: &str = "canary";
const ADDRESS: &str = "terraform_data.one";
/// A Machine, and the node group it is in.
const MACHINE: &str = "edge-1";
const NODE_GROUP: &str = "edge";

/// Secrets with characters that every encoding treats in its own way.
const SECRETS: [&str; 4] = [
    "canary-plain-7f3a9c2e51",
    "canary \"quoted\" \\ back\nline & <tag> \u{e9}",
    "canary+slash/equals==percent%41",
    "-----BEGIN CANARY KEY-----\nTUlJRXZRSUJBREFOQmdrcWhraUc5dzBCQVFFRkFBU0M=\n-----END CANARY KEY-----\n",
];

fn canary() -> Canary {
    Canary::new(SECRETS)
}

/// A Machine that has, in plain fields of its own, what is marked elsewhere.
fn machine(note: &str) -> Value {
    let input = json!({
        "rezus_kind": "Machine", "name": MACHINE, "zone": note, "hostname": SECRETS[0], "provider_id": SECRETS[3],
        "node_group": SECRETS[0], "role": SECRETS[1], "region": format!("eu {}", SECRETS[0]), "image": SECRETS[2],
        "memory_mib": SECRETS[0], "internal_ips": [SECRETS[0], "10.0.0.1"],
    });
    json!({
        "mode": "managed", "type": "terraform_data", "name": NODE_GROUP,
        "provider": "provider[\"terraform.io/builtin/terraform\"]",
        "instances": [{
            "schema_version": 0,
            "attributes": { "id": "m", "input": { "value": input, "type": ["object", {}] } },
            "sensitive_attributes": [],
        }],
    })
}

/// A state whose secrets are marked in one place, and stand in others: in a longer text, in Base64, in an output, in a
/// Machine.
fn state(serial: u64, note: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("user:{}", SECRETS[0]));
    let input = json!({ "token": SECRETS[0], "note": SECRETS[1], "url": SECRETS[2], "key": SECRETS[3], "open": note });
    let path =
        |name: &str| json!([{"type": "get_attr", "value": "input"}, {"type": "get_attr", "value": name}]);
    let object = |marks: Value| {
        json!({
            "schema_version": 0,
            "attributes": {
                "id": "0c2a3f6e",
                "input": { "value": input, "type": ["object", {}] },
                "output": { "value": input, "type": ["object", {}] },
                "copy": format!("exec --token={} --verbose", SECRETS[0]),
                "header": format!("Basic {encoded}"),
                "triggers_replace": null,
            },
            "sensitive_attributes": marks,
            "private": "Y2FuYXJ5LXBsYWluLTdmM2E5YzJlNTE=",
        })
    };
    json!({
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": "6f1ed002-ab5c-4a1e-8f1b-8f1d2c3b4a59",
        "outputs": { "token": { "value": SECRETS[0], "type": "string", "sensitive": true } },
        "resources": [
            {
                "mode": "managed", "type": "terraform_data", "name": "one",
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [object(json!([path("token"), path("note"), path("url"), path("key")]))],
            },
            {
                "mode": "managed", "type": "terraform_data", "name": "unmarked",
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [object(json!([]))],
            },
            machine(note),
        ],
        "check_results": [{
            "object_kind": "resource", "config_addr": ADDRESS, "status": "fail",
            "objects": [{ "object_addr": ADDRESS, "status": "fail", "failure_messages": [SECRETS[0]] }],
        }],
    })
    .to_string()
}

/// A server with two versions of such a state, a held lock and refusals, its log as talkative as it gets.
async fn server() -> Server {
    let variables = vec![("REZUS_LOG__LEVEL", "trace".to_owned())];
    let server = Server::start_with(Settings { variables, ..Settings::default() }).await;
    let path = format!("/state/{TENANT}");
    server.send("POST", &path, state(1, "first")).await.expect(200, "the first state");
    server.send("POST", &path, state(2, "second")).await.expect(200, "the second state");
    server
}

fn check(bytes: &[u8], what: &str) {
    let leaks = canary().leaks(bytes);
    assert!(leaks.is_empty(), "{what}: {leaks:?}");
}

/// Requests to each route by method: target and body.
#[expect(clippy::match_same_arms, reason = "a row for each kind of route")]
fn cases(method: &str, route: &str) -> Option<Vec<(String, String)>> {
    let target = route.replace("{tenant}", TENANT).replace("{version}", "1");
    let plain = || Some(vec![(target.clone(), String::new())]);
    if kube::ACTS.contains(&route) {
        return Some(vec![(target.replace("{name}", "nothing"), String::new())]);
    }
    if (method, route) == ("POST", kube::RUNS) {
        let run = |metadata: Value, spec: Value| {
            json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Run", "metadata": metadata, "spec": spec }).to_string()
        };
        let bodies = [
            SECRETS.concat(),
            json!(SECRETS).to_string(),
            run(json!({ "name": SECRETS[2], SECRETS[1]: 1 }), json!({ "operation": SECRETS[2] })),
            run(
                json!({ "generateName": SECRETS[1], "labels": { SECRETS[0]: SECRETS[1] } }),
                json!({ SECRETS[3]: 1 }),
            ),
            run(json!({ "namespace": SECRETS[0] }), json!({ "operation": "plan" })),
            run(
                json!({}),
                json!({ "operation": "plan", "targets": [SECRETS[1]], "variables": { SECRETS[2]: SECRETS[0] } }),
            ),
            run(json!({}), json!({ "operation": "plan" })),
        ];
        let queries = ["", "?fieldValidation=Strict", "?dryRun=All"];
        let of = |query: &'static str| bodies.iter().map(move |body| (query, body.clone()));
        let cases = queries.into_iter().flat_map(of);
        return Some(cases.map(|(query, body)| (format!("{target}{query}"), body)).collect());
    }
    if kube::PATHS.contains(&route) {
        let name = match route {
            _ if route.contains("/providers/") => "terraform",
            _ if route.contains("/nodegroups/") => NODE_GROUP,
            _ if route.contains("/stateversions/") => "v1",
            _ => MACHINE,
        };
        let target = target.replace("{name}", name);
        let mut targets = vec![target.clone()];
        let is_versioned = route.contains("/machines") || route.contains("/nodegroups");
        if route.contains("/namespaces/")
            && is_versioned
            && !route.ends_with("/history")
            && !route.ends_with("/metrics")
        {
            targets.push(format!("{target}?version=1"));
        }
        return (method == "GET")
            .then(|| targets.into_iter().map(|target| (target, String::new())).collect());
    }
    // Bodies that are refused each in a way of its own, all of them full of secrets.
    let refused_states = || {
        let whole = state(9, "refused");
        let mut bodies = vec![
            whole[..whole.len() / 2].to_owned(),
            format!("{whole}}}"),
            whole.replace("\"version\":4", "\"version\":3"),
            whole.replace("\"version\":4", "\"version\":5"),
            whole.replace("\"serial\":9", "\"serial\":1"),
            whole.replace("6f1ed002", "00000000"),
            whole.replace("\"managed\"", &json!(SECRETS[1]).to_string()),
            whole.replace("\"schema_version\":0", &format!("\"schema_version\":{}", json!(SECRETS[2]))),
            whole.replace("\"get_attr\"", &json!(SECRETS[0]).to_string()),
            whole.replace("\"serial\":9", &format!("\"serial\":{}", json!(SECRETS[0]))),
            whole.replace(
                "\"terraform_version\":\"1.12.6\"",
                &format!("\"terraform_version\":{}", json!(SECRETS[0])),
            ),
            json!({ "format_version": "1.0", "values": SECRETS }).to_string(),
            json!({ "ID": "x", "Operation": "apply", "secret": SECRETS }).to_string(),
            json!({ "version": 3, "backend": { "config": { "password": SECRETS[0] } } }).to_string(),
            json!(SECRETS).to_string(),
            SECRETS.concat(),
        ];
        bodies.push(whole);
        bodies
    };
    let each = |target: String, bodies: Vec<String>| {
        Some(bodies.into_iter().map(|body| (target.clone(), body)).collect())
    };
    if kube::review::PATHS.contains(&route) {
        let attributes = |member: &str| json!({ "spec": { "resourceAttributes": { member: SECRETS[0] } } });
        let bodies = vec![
            SECRETS.concat(),
            json!(SECRETS).to_string(),
            json!({ "kind": SECRETS[0], "spec": {} }).to_string(),
            json!({ "spec": { "resourceAttributes": SECRETS } }).to_string(),
            json!({ "spec": { "nonResourceAttributes": SECRETS } }).to_string(),
            attributes("verb").to_string(),
            attributes("resource").to_string(),
            json!({ "spec": { "resourceAttributes": {
                "verb": "list", "group": "rezuscloud.io", "resource": "machines", "namespace": SECRETS[0],
            } } })
            .to_string(),
            json!({ "spec": { "namespace": SECRETS[0] } }).to_string(),
        ];
        return (method == "POST").then(|| bodies.into_iter().map(|body| (target.clone(), body)).collect());
    }
    if prometheus::PATHS.iter().any(|(path, _)| *path == route) {
        let everything = "%7B__name__%3D~%22.%2B%22%7D";
        let target = target.replace("{name}", "__name__");
        let queries =
            [format!("?query={everything}&start=0&end=1&step=1&match[]={everything}"), String::new()];
        return Some(queries.map(|query| (format!("{target}{query}"), String::new())).to_vec());
    }
    match (method, route) {
        ("GET", route) if kube::discovery::PATHS.contains(&route) => plain(),
        ("GET", route) if kube::openapi::PATHS.contains(&route) => plain(),
        ("GET", "/healthz" | "/livez" | "/readyz" | "/version" | "/metrics") => plain(),
        ("GET", "/rezus/v1/server" | "/rezus/v1/locks" | "/rezus/v1/tenants") => plain(),
        ("GET", "/rezus/v1/tokens" | "/rezus/v1/users" | "/rezus/v1/grants" | "/rezus/v1/audit") => plain(),
        ("POST", "/rezus/v1/tokens") => each(
            target,
            vec![
                json!({ "tenant": TENANT }).to_string(),
                json!({ "user": "nobody", "note": "x" }).to_string(),
                json!({ "user": SECRETS[0], "tenant": SECRETS[0] }).to_string(),
                json!({ "user": SECRETS[1], "token": SECRETS[0] }).to_string(),
                SECRETS.concat(),
            ],
        ),
        ("DELETE", "/rezus/v1/tokens/{id}") => Some(vec![
            (target.replace("{id}", "nothing"), String::new()),
            (target.replace("{id}", "no%20token"), String::new()),
        ]),
        ("POST", "/rezus/v1/users") => each(
            target,
            vec![
                json!({ "name": "ana", "grants": [{ "role": "view" }] }).to_string(),
                json!({ "name": "bob", "grants": [{ "role": SECRETS[0] }] }).to_string(),
                json!({ "name": "bob", "password": SECRETS[0] }).to_string(),
            ],
        ),
        ("GET" | "DELETE", "/rezus/v1/users/{name}") => {
            Some(vec![(target.replace("{name}", "ana"), String::new())])
        }
        ("PATCH", "/rezus/v1/users/{name}") => each(
            target.replace("{name}", "ana"),
            vec![json!({ "groups": ["ops"] }).to_string(), json!({ "groups": SECRETS[0] }).to_string()],
        ),
        ("PUT", "/rezus/v1/grants") => each(
            target,
            vec![
                json!({ "group": "ops", "grants": [{ "role": "view" }] }).to_string(),
                json!({ "group": "ops", "grants": SECRETS }).to_string(),
            ],
        ),
        ("GET", "/rezus/v1/tenants/{tenant}" | "/rezus/v1/tenants/{tenant}/locks") => plain(),
        ("GET", "/rezus/v1/tenants/{tenant}/refusals" | "/rezus/v1/tenants/{tenant}/versions") => plain(),
        ("GET", "/rezus/v1/tenants/{tenant}/versions/{version}") => plain(),
        ("GET", "/rezus/v1/tenants/{tenant}/diff") => {
            let queries = ["?from=1&to=2", "?from=1&to=2&as=resources", ""];
            Some(queries.map(|query| (format!("{target}{query}"), String::new())).to_vec())
        }
        ("GET", "/rezus/v1/tenants/{tenant}/resources") => Some(vec![
            (target.clone(), String::new()),
            (format!("{target}?address={ADDRESS}"), String::new()),
            (format!("{target}?address=terraform_data.unmarked"), String::new()),
        ]),
        // It goes on until somebody ends it: what it tells is looked at where a cluster is read.
        ("GET", "/rezus/v1/tenants/{tenant}/readings") => {
            Some(vec![("/rezus/v1/tenants/nobody/readings".to_owned(), String::new())])
        }
        ("POST", "/rezus/v1/tenants") => {
            each(target, vec![SECRETS.concat(), json!({ "name": SECRETS[0], "x": 1 }).to_string()])
        }
        ("PATCH", "/rezus/v1/tenants/{tenant}") => each(
            target,
            vec![
                json!({ "requireLocks": SECRETS[0] }).to_string(),
                json!({ "dir": SECRETS[2] }).to_string(),
                json!({ "encryption": SECRETS[0] }).to_string(),
                json!({ "kubeconfigFile": SECRETS[0] }).to_string(),
                json!({ "collect": SECRETS[0] }).to_string(),
                json!({ "destinations": SECRETS }).to_string(),
                json!({ "recording": SECRETS[0] }).to_string(),
                json!({ "nodeMetrics": SECRETS[0] }).to_string(),
                json!({ SECRETS[0]: 1 }).to_string(),
                json!({ "dir": "/", "secretVariables": { "token": SECRETS[0] } }).to_string(),
                json!({ "dir": "/", "secretVariables": { "token": { "file": "/run/token" } } }).to_string(),
                json!({ "variables": { SECRETS[1]: "1" }, "drift": SECRETS[0] }).to_string(),
                json!({ "labels": { SECRETS[1]: "a" } }).to_string(),
                json!({ "labels": { "env": SECRETS[1] } }).to_string(),
                json!({ "approval": SECRETS[0] }).to_string(),
            ],
        ),
        ("PUT", "/rezus/v1/tenants/{tenant}/configuration") => {
            each(target, vec![SECRETS.concat(), state(1, "no archive")])
        }
        ("PUT", "/rezus/v1/tenants/{tenant}/freeze") => {
            each(target, vec![json!({ "reason": "audit", "x": SECRETS[0] }).to_string(), SECRETS.concat()])
        }
        ("DELETE", "/rezus/v1/tenants/{tenant}/freeze") => plain(),
        ("PATCH", "/rezus/v1/tenants/{tenant}/versions/{version}") => each(
            target,
            vec![json!({ "pinned": SECRETS[0] }).to_string(), json!({ "pinned": true }).to_string()],
        ),
        ("POST", "/rezus/v1/prune") => {
            each(target, vec![json!({ "dryRun": true }).to_string(), SECRETS.concat()])
        }
        ("POST", "/rezus/v1/tenants/{tenant}/rollback") => each(
            target,
            vec![json!({ "version": 1 }).to_string(), json!({ "version": SECRETS[0] }).to_string()],
        ),
        ("POST", "/rezus/v1/tenants/{tenant}/index") => each(target, vec![json!({}).to_string()]),
        ("DELETE", "/rezus/v1/tenants/{tenant}/locks") => plain(),
        // Refused: the state declares something.
        ("DELETE", "/rezus/v1/tenants/{tenant}") => plain(),
        ("POST" | "PUT", "/state/{tenant}") => each(target, refused_states()),
        ("POST" | "PUT", "/state") => each(format!("/state?ID={TENANT}"), refused_states()),
        ("LOCK" | "UNLOCK" | "POST" | "PUT", "/state/{tenant}/lock")
        | ("LOCK" | "UNLOCK", "/state/{tenant}") => {
            each(target, vec![SECRETS.concat(), json!(SECRETS).to_string(), state(1, "no lock")])
        }
        ("LOCK" | "UNLOCK", "/state") => each(format!("/state?ID={TENANT}"), vec![SECRETS.concat()]),
        ("DELETE", "/state/{tenant}/lock") => plain(),
        // Of a tenant that is none: the others are to keep theirs.
        ("DELETE", "/state/{tenant}") => Some(vec![("/state/nobody".to_owned(), String::new())]),
        ("DELETE", "/state") => Some(vec![("/state?ID=nobody".to_owned(), String::new())]),
        ("GET", "/state/{tenant}") => Some(vec![("/state/nobody".to_owned(), String::new())]),
        ("GET", "/state") => Some(vec![("/state?ID=nobody".to_owned(), String::new())]),
        // The bytes themselves, as they were posted: the one thing that is exempt.
        ("GET", "/rezus/v1/tenants/{tenant}/versions/{version}/body") => {
            Some(vec![(target.replace("/1/", "/99/"), String::new())])
        }
        _ => None,
    }
}

/// Every route with every method it takes.
fn routes() -> Vec<(&'static str, &'static str)> {
    let health = telemetry::PATHS.into_iter().map(|path| ("GET", path));
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
    let kube = kube::PATHS.iter().map(|path| ("GET", *path));
    let discovery = kube::discovery::PATHS.into_iter().chain(kube::openapi::PATHS).map(|path| ("GET", path));
    let reviews = kube::review::PATHS.into_iter().map(|path| ("POST", path));
    let runs = std::iter::once(kube::RUNS).chain(kube::ACTS).map(|path| ("POST", path));
    health.chain(json).chain(kube).chain(runs).chain(discovery).chain(reviews).chain(states).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_route_shows_a_secret_and_neither_does_the_log_or_what_is_stored_beside_the_states() {
    let server = server().await;
    for (method, route) in routes() {
        let cases = cases(method, route).unwrap_or_else(|| panic!("{method} {route} has no case"));
        for (target, body) in cases {
            let answer = server.send(method, &target, body).await;
            assert!(answer.code < 500, "{method} {target}: {}", answer.code);
            // There are no runs, an event's name has its moment in it, and the state opens no cluster.
            let absent = ["/runs/", "/events/", "/kubeconfig", "/talosconfig"];
            let is_there = !absent.iter().any(|piece| route.contains(piece));
            assert!(
                !(method == "GET" && kube::PATHS.contains(&route) && is_there) || answer.code == 200,
                "{target}: {}",
                answer.code
            );
            check(&answer.body, &format!("{method} {target}"));
            let headers = format!("{:?}", answer.headers);
            check(headers.as_bytes(), &format!("headers of {method} {target}"));
        }
        // Unknown methods, paths and queries are answered too.
        for target in [format!("{route}/canary"), format!("{route}?canary=1"), format!("{route}%00")] {
            let answer = server.send("BREW", &target, state(1, "no method")).await;
            check(&answer.body, &format!("BREW {target}"));
        }
    }
    check(server.log().as_bytes(), "the log");

    let database = rusqlite::Connection::open(server.data_dir().join("rezus.db")).unwrap();
    let tables: Vec<String> = database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('chunks', 'sqlite_sequence')")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(tables.len() >= 6, "{tables:?}");
    for table in tables {
        let mut select = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = select.column_count();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                if let Ok(text) = row.get_ref(column).unwrap().as_bytes() {
                    check(text, &format!("table {table}"));
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fixtures_secrets_are_in_no_answer_about_their_states() {
    let server = Server::start().await;
    let mut looked_for = 0;
    for (number, fixture) in fixture::states().into_iter().enumerate() {
        let secrets = fixture.expect.secret_strings();
        if secrets.is_empty() {
            continue;
        }
        looked_for += secrets.len();
        let canary = Canary::new(secrets);
        let tenant = format!("fixture-{number}");
        let posted = server.send("POST", &format!("/state/{tenant}"), fixture.body.clone()).await;
        assert!(canary.leaks(&posted.body).is_empty(), "{}", fixture.name);
        if posted.code != 200 {
            continue;
        }
        let resources = format!("/rezus/v1/tenants/{tenant}/resources");
        let listed = server.get(&resources).await.expect(200, &fixture.name);
        assert!(canary.leaks(&listed.body).is_empty(), "{}", fixture.name);
        for resource in listed.items() {
            let query: String = form_urlencoded::Serializer::new(String::new())
                .append_pair("address", resource["address"].as_str().unwrap())
                .extend_pairs(resource["deposed"].as_str().map(|key| ("deposed", key)))
                .finish();
            let shown = server.get(&format!("{resources}?{query}")).await.expect(200, &query);
            let leaks = canary.leaks(&shown.body);
            assert!(leaks.is_empty(), "{}: {}: {leaks:?}", fixture.name, resource["address"]);
        }
    }
    assert!(looked_for > 50, "{looked_for} secrets were looked for");
}

#[tokio::test]
async fn debug_output_tells_lengths_and_no_content() {
    let plane = crate::in_process::InProcess::new();
    plane.send("POST", &format!("/state/{TENANT}"), state(1, "debug")).await.expect(200, "POST");
    let reader: &StateReader = &plane.plane().reader;
    let tenant = TENANT.parse().unwrap();
    let object = reader.object(&tenant, &ADDRESS.parse().unwrap(), None).await.unwrap();
    let listing = reader.list(&tenant).await.unwrap();
    let ingested = ingest(state(2, "debug").into(), None, &Mappings::built_in()).unwrap();
    let document = rezus_core::declared::document::read(state(2, "debug").as_bytes()).unwrap();
    for shown in [
        format!("{object:?}"),
        format!("{listing:?}"),
        format!("{ingested:?}"),
        format!("{document:?}"),
        format!("{:?}", plane.plane()),
    ] {
        check(shown.as_bytes(), "Debug");
        assert!(shown.len() > 10);
    }
}
