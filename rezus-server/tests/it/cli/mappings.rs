//! Somebody adds a provider without reading Rust: by `docs/mappings.md` alone, its example in a directory of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::run;
use crate::server::{Server, Settings};

const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/web/machines";

/// The first example of the documentation: a whole mapping.
fn example() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mappings.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let example = docs.split("```").nth(1).unwrap().strip_prefix("yaml\n").unwrap();
    assert!(example.starts_with("mapping: acme"), "{example}");
    example.to_owned()
}

/// A state of two servers of that provider.
fn state(serial: u64) -> String {
    let server = |key: &str, role: &str, ip: &str, status: &str| {
        json!({
            "index_key": key,
            "schema_version": 0,
            "attributes": {
                "id": format!("acme-{key}"), "name": format!("node-{key}"), "labels": { "role": role },
                "status": status, "network": [{ "ip": ip }], "public_ip": null,
                "root_password": "canary-root-password", "user_data": "canary-user-data",
            },
            "sensitive_attributes": [],
        })
    };
    let block = |kind: &str, name: &str, instances: Value| {
        json!({
            "mode": "managed", "type": kind, "name": name,
            "provider": "provider[\"registry.opentofu.org/acme/acme\"]", "instances": instances,
        })
    };
    json!({
        "version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": "acme", "outputs": {},
        "resources": [
            block("acme_server", "node", json!([
                server("a", "controlplane", "10.0.0.1", "on"),
                server("b", "node", "10.0.0.2", "off"),
            ])),
            block("acme_network", "net", json!([{ "schema_version": 0, "attributes": { "id": "n" } }])),
        ],
    })
    .to_string()
}

/// A directory with the example and a state beside it.
struct Directory {
    directory: TempDir,
}

impl Directory {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let new = Self { directory };
        new.write("acme.yaml", &example());
        new.write("web.tfstate", &state(1));
        new
    }

    fn path(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file at once: a server that looks meanwhile sees the one before or this one, and never half of it.
    fn write(&self, name: &str, text: &str) {
        let half = self.file("half");
        std::fs::write(&half, text).unwrap();
        std::fs::rename(half, self.file(name)).unwrap();
    }
}

/// The spec of a machine in a list of objects.
#[track_caller]
fn spec(items: &Value, name: &str) -> Value {
    let items = items.as_array().unwrap();
    let found = items.iter().find(|item| item["kind"] == "Machine" && item["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {items:?}"))["spec"].clone()
}

#[tokio::test]
async fn the_example_of_the_documentation_is_sound_and_makes_machines_of_a_state() {
    let directory = Directory::new();
    let checked = run(&["mappings", "check", directory.path()]).await.done();
    assert_eq!(checked, format!("{}: 1 mappings are sound\n", directory.path()));
    let listed = run(&["mappings", "list", directory.path()]).await.done();
    let acme = listed.lines().find(|line| line.starts_with("acme ")).unwrap();
    assert!(acme.contains("acme.yaml") && acme.contains("Acme Cloud"), "{listed}");
    assert!(listed.contains("hcloud") && listed.contains("built in"), "{listed}");
    assert!(!run(&["mappings", "list"]).await.done().contains("acme"));

    let file = directory.file("web.tfstate");
    let project = ["project", file.to_str().unwrap()];
    let without = run(&project).await.done();
    assert!(without.contains("no mapping knows acme_server (2)"), "{without}");
    let with = [&project[..], &["--mappings", directory.path()]].concat();
    let table = run(&with).await.done();
    assert!(
        table.contains("node-a") && table.contains("10.0.0.2") && !table.contains("no mapping"),
        "{table}"
    );
    let list = run(&[&with[..], &["-o", "json"]].concat()).await.json();
    let expected = json!({
        "name": "node-a",
        "address": "acme_server.node[\"a\"]",
        "resourceType": "acme_server",
        "provider": "acme",
        "providerSource": "registry.opentofu.org/acme/acme",
        "providerID": "acme-a",
        "role": "controlplane",
        "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
        "recordedPower": "running",
        "tainted": false,
    });
    let mut found = spec(&list["items"], "node-a");
    // By which rule a group is made where the mapping has none is not the example's matter.
    found.as_object_mut().unwrap().remove("nodeGroup");
    assert_eq!(found, expected);
    let yaml = run(&[&with[..], &["-o", "yaml"]].concat()).await.done();
    assert!(yaml.contains("recordedPower: stopped") && !yaml.contains("canary"), "{yaml}");
}

#[tokio::test]
async fn mappings_are_held_against_states_and_differences_are_said_field_by_field() {
    let directory = Directory::new();
    let test = ["mappings", "test", directory.path()];
    run(&test).await.failed(1, "web.expect.json cannot be read");
    let file = directory.file("web.tfstate");
    let printed =
        run(&["project", file.to_str().unwrap(), "--mappings", directory.path(), "-o", "json"]).await.done();
    directory.write("web.expect.json", &printed);
    let passed = run(&test).await.done();
    assert_eq!(passed, format!("{}: as expected\n", file.display()));
    // What is written down is what is printed.
    std::fs::remove_file(directory.file("web.expect.json")).unwrap();
    let updated = run(&["mappings", "test", directory.path(), "--update"]).await.done();
    assert!(updated.contains("web.expect.json: written down"), "{updated}");
    assert_eq!(std::fs::read_to_string(directory.file("web.expect.json")).unwrap(), printed);
    run(&test).await.done();

    directory.write("acme.yaml", &example().replace("providerID: $.id", "providerID: $.name"));
    let ran = run(&test).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.errors.contains("1 of 1 states declare something else"), "{}", ran.errors);
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.contains("web.tfstate: not as expected"), "{said}");
    let line = r#"  Machine "node-a" spec.providerID: expected "acme-a", found "node-a""#;
    assert!(said.lines().any(|found| found == line), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");

    directory.write("acme.yaml", &example());
    directory
        .write("web.tfstate", &state(1).replace("\"network\":[{\"ip\":\"10.0.0.2\"}]", "\"network\":[]"));
    let said = String::from_utf8(run(&test).await.stdout).unwrap();
    assert!(
        said.contains("Machine \"node-b\" spec.addresses: expected [{") && said.contains("found nothing"),
        "{said}"
    );
    directory.write(
        "acme.yaml",
        &example().replace("  acme_network: ignore\n", "").replace("acme_server:", "acme_srv:"),
    );
    let said = String::from_utf8(run(&test).await.stdout).unwrap();
    assert!(said.contains("Machine \"node-a\" is not declared"), "{said}");
    directory.write("web.expect.json", "no json");
    run(&test).await.failed(1, "an expectation is no list");
}

#[tokio::test]
async fn a_directory_with_nothing_to_test_and_one_that_is_not_there_are_said() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().to_str().unwrap();
    run(&["mappings", "test", path]).await.failed(64, "has no *.tfstate to test with");
    let nowhere = directory.path().join("nowhere");
    for command in ["check", "test", "list"] {
        run(&["mappings", command, nowhere.to_str().unwrap()]).await.failed(1, "nowhere cannot be read");
    }
}

#[tokio::test]
async fn what_is_wrong_in_a_mapping_is_named_with_file_and_line_and_reason() {
    let directory = Directory::new();
    let state = directory.file("web.tfstate");
    let role = "{path: $.labels, tag: role}";
    for (good, bad, line, reason) in [
        ("mapping: acme ", "mapping: Not_A_Name ", 1, "is no name"),
        ("description:", "descripton:", 2, "unknown field \"descripton\""),
        ("\"*/acme/acme\"", "\"acme\"", 3, "is no source"),
        ("name: $.name", "name: $.name[", 8, "bad path \"$.name[\""),
        ("name: $.name", "nom: $.name", 8, "unknown field \"nom\": known are name"),
        ("kind: Machine", "kind: Engine", 6, "unknown kind \"Engine\": known are Machine"),
        (role, "{path: $.labels, match: '(a'}", 10, "bad expression \"(a\""),
        (role, "{path: $.labels, steps: 1}", 10, "unknown field \"steps\""),
        ("secrets: [$.root_password]", "secrets: [root_password]", 15, "bad path \"root_password\""),
        ("acme_network: ignore", "acme_network: skip", 17, "or the word ignore, not \"skip\""),
        ("types:", "types: [", 6, "not readable as YAML"),
    ] {
        let broken = example().replacen(good, bad, 1);
        assert_ne!(broken, example(), "{good}");
        directory.write("acme.yaml", &broken);
        let place = format!("acme.yaml:{line}:");
        for command in [
            &["mappings", "check", directory.path()][..],
            &["mappings", "test", directory.path()],
            &["mappings", "list", directory.path()],
            &["project", state.to_str().unwrap(), "--mappings", directory.path()],
        ] {
            let ran = run(command).await;
            let is_said = ran.errors.lines().any(|said| said.contains(reason));
            assert!(is_said, "{bad}: {}", ran.errors);
            ran.failed(1, &place);
        }
    }
    // Every mistake is named at once, in every file.
    directory.write("acme.yaml", &example().replace("kind: Machine", "kind: Engine"));
    directory.write(
        "other.yaml",
        &example()
            .replace("mapping: acme ", "mapping: other ")
            .replace("acme_", "other_")
            .replace("$.id", "$.["),
    );
    let ran = run(&["mappings", "check", directory.path()]).await;
    for place in ["acme.yaml:6:", "other.yaml:9:"] {
        assert!(ran.errors.contains(place), "{}", ran.errors);
    }
    ran.failed(1, "acme.yaml");
}

#[tokio::test]
async fn a_server_lists_the_machines_of_such_a_mapping_and_takes_up_its_changes() {
    let directory = Directory::new();
    let variables = vec![
        ("REZUS_PROJECTION__MAPPINGS", directory.path().to_owned()),
        ("REZUS_PROJECTION__RELOAD", "100ms".to_owned()),
    ];
    let mut server = Server::start_with(Settings { variables, ..Settings::default() }).await;
    server.send("POST", "/state/web", state(1)).await.expect(200, "POST");
    let listed = server.get(MACHINES).await.expect(200, "list");
    assert!(!listed.body.windows(6).any(|bytes| bytes == b"canary"));
    let before = spec(&listed.json()["items"], "node-a");
    assert_eq!((&before["providerID"], &before["role"]), (&"acme-a".into(), &"controlplane".into()));
    let provider = server.get("/apis/rezuscloud.io/v1alpha1/providers/acme").await.expect(200, "acme").json();
    assert!(provider["spec"]["origin"].as_str().unwrap().ends_with("acme.yaml"), "{provider}");
    assert_eq!(provider["spec"]["resourceTypes"], json!([{ "type": "acme_server", "kind": "Machine" }]));

    directory.write("acme.yaml", &example().replace("providerID: $.id", "providerID: $.name"));
    server.logged("mappings came into force", 1).await;
    assert_eq!(spec(&server.get(MACHINES).await.json()["items"], "node-a")["providerID"], "node-a");

    // What they call a secret from now on is hidden in all that is shown.
    let resource = "/rezus/v1/tenants/web/resources?address=acme_network.net";
    let shown = server.get(resource).await.expect(200, "show").json().to_string();
    assert!(shown.contains(r#""id":"n""#), "{shown}");
    let hiding = example().replace("acme_network: ignore", "acme_network: {kind: Ignore, secrets: [$.id]}");
    directory.write("acme.yaml", &hiding.replace("providerID: $.id", "providerID: $.name"));
    server.logged("mappings came into force", 2).await;
    let shown = server.get(resource).await.expect(200, "show").json().to_string();
    assert!(shown.contains(r#""id":"(sensitive)""#), "{shown}");

    directory.write("acme.yaml", &example().replace("kind: Machine", "kind: Engine"));
    server.logged("mappings are not sound", 1).await;
    assert_eq!(spec(&server.get(MACHINES).await.json()["items"], "node-a")["providerID"], "node-a");
    assert!(server.log().contains("acme.yaml:6"), "{}", server.log());

    // With what is not sound nothing starts: the reason is said.
    assert!(server.terminate().await.success());
    let data = server.data_dir().to_str().unwrap();
    let arguments = ["serve", "--data-dir", data, "--plain", "127.0.0.1:0", "--no-tls"];
    let variables = [("REZUS_PROJECTION__MAPPINGS", directory.path())];
    let started = tokio::time::timeout(Duration::from_secs(30), super::run_with(&arguments, &variables, b""));
    started.await.expect("it ends").failed(1, "acme.yaml:6:");

    directory.write("acme.yaml", &example());
    server.start_again().await;
    assert_eq!(spec(&server.get(MACHINES).await.json()["items"], "node-a")["providerID"], "acme-a");
}
