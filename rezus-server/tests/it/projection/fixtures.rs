//! The fixtures, posted to a server and given to `project`: every machine as `fixtures/README.md` says that it must come
//! out, and no secret in anything that is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::{Output, Stdio};

use rezus_testkit::canary::Canary;
use rezus_testkit::fixture::{self, Accept, StateFixture};
use serde_json::Value;

use super::{API, condition, names};
use crate::server::{PROGRAM, Server};

/// The objects that a state declares.
struct Objects {
    tenant: Value,
    machines: Vec<Value>,
    groups: Vec<Value>,
}

/// Runs `project` on a fixture's file.
async fn project(fixture: &StateFixture, output: &str) -> Output {
    let file = fixture::directory().join(format!("{}.tfstate", fixture.name));
    let mut command = tokio::process::Command::new(PROGRAM);
    command.arg("project").arg(file).args(["-o", output]).env_clear().stdin(Stdio::null());
    command.output().await.unwrap()
}

fn accepted() -> impl Iterator<Item = StateFixture> {
    fixture::states().into_iter().filter(|fixture| fixture.expect.accept() == Accept::Project)
}

/// Fails if a fixture's secret is in these bytes.
#[track_caller]
fn no_secret(canary: &Canary, bytes: &[u8], what: &str) {
    let leaks = canary.leaks(bytes);
    assert!(leaks.is_empty(), "{what}: {leaks:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fixture_comes_out_over_http_as_expected() {
    let server = Server::start().await;
    let (mut lines, mut all) = (Vec::new(), 0);
    for fixture in accepted() {
        let name = &fixture.name;
        server.send("POST", &format!("/state/{name}"), fixture.body.clone()).await.expect(200, name);
        let canary = Canary::new(fixture.expect.secret_strings());
        let get = async |path: String| {
            let answer = server.get(&format!("{API}{path}")).await.expect(200, &path);
            no_secret(&canary, &answer.body, &path);
            answer
        };
        let objects = Objects {
            tenant: get(format!("/tenants/{name}")).await.json(),
            machines: get(format!("/namespaces/{name}/machines")).await.items(),
            groups: get(format!("/namespaces/{name}/nodegroups")).await.items(),
        };
        let spec = &objects.tenant["spec"];
        assert_eq!(spec["machines"], objects.machines.len(), "{name}");
        assert_eq!(spec["nodeGroups"], objects.groups.len(), "{name}");
        assert_eq!(Some(spec["state"]["serial"].to_string().as_str()), fixture.expect.serial(), "{name}");
        assert_eq!(spec["state"]["lineage"].as_str(), fixture.expect.lineage(), "{name}");
        assert_eq!(condition(&objects.tenant, "SpecAvailable").unwrap()["status"], "True", "{name}");
        let unmapped = &spec["state"]["unmapped"];
        let complete = condition(&objects.tenant, "MappingComplete").unwrap();
        if name == "edge-deposed-tainted" {
            assert_eq!(*unmapped, serde_json::json!([{ "type": "unknowncloud_machine", "count": 1 }]));
            assert_eq!(complete["status"], "False");
        } else {
            assert!(unmapped.is_null(), "{name}: {unmapped}");
            assert_eq!(complete["status"], "True", "{name}");
        }
        differences(&fixture, &objects, &mut lines);

        for (kind, list) in [("machines", &objects.machines), ("nodegroups", &objects.groups)] {
            for object in list {
                let path =
                    format!("/namespaces/{name}/{kind}/{}", object["metadata"]["name"].as_str().unwrap());
                assert_eq!(get(path).await.json(), *object);
            }
        }
        for machine in names(&objects.machines) {
            let path = format!("/namespaces/{name}/machines/{machine}");
            get(format!("{path}/provenance")).await;
            let history = get(format!("{path}/history")).await.items();
            assert_eq!((history.len(), &history[0]["change"]), (1, &"added".into()), "{path}");
        }
        for machine in &objects.machines {
            let is_tainted = condition(machine, "Tainted").is_some_and(|tainted| tainted["status"] == "True");
            assert_eq!(machine["spec"]["tainted"], is_tainted);
            let has_problems =
                condition(machine, "MappingComplete").is_some_and(|it| it["status"] == "False");
            assert_eq!(machine["spec"]["problems"].is_array(), has_problems);
        }
        all += objects.machines.len();
        let listed = get("/machines".to_owned()).await.items();
        assert_eq!(listed.len(), all);
        let of_it: Vec<_> = listed.into_iter().filter(|it| it["metadata"]["namespace"] == **name).collect();
        assert_eq!(of_it, objects.machines, "{name}");
        get("/nodegroups".to_owned()).await;
        get("/tenants".to_owned()).await;
    }
    assert!(all > 100, "{all} machines");
    assert!(lines.is_empty(), "what is listed differs from what is expected:\n{}", lines.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fixture_comes_out_of_project_as_expected_and_without_a_secret() {
    let mut lines = Vec::new();
    for fixture in accepted() {
        let name = &fixture.name;
        let canary = Canary::new(fixture.expect.secret_strings());
        let mut printed = BTreeMap::new();
        for output in ["table", "wide", "json", "yaml"] {
            let ran = project(&fixture, output).await;
            assert_eq!(ran.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
            assert!(ran.stderr.is_empty(), "{name}");
            no_secret(&canary, &ran.stdout, &format!("{name} as {output}"));
            printed.insert(output, String::from_utf8(ran.stdout).unwrap());
        }
        let list: Value = serde_json::from_str(&printed["json"]).unwrap();
        assert_eq!((&list["apiVersion"], &list["kind"]), (&"v1".into(), &"List".into()));
        let of_kind = |kind: &str| -> Vec<Value> {
            let items = list["items"].as_array().unwrap();
            items.iter().filter(|item| item["kind"] == kind).cloned().collect()
        };
        let tenants = of_kind("Tenant");
        assert_eq!(tenants.len(), 1);
        assert_eq!(tenants[0]["metadata"]["name"], **name);
        let objects = Objects {
            tenant: tenants[0].clone(),
            machines: of_kind("Machine"),
            groups: of_kind("NodeGroup"),
        };
        differences(&fixture, &objects, &mut lines);
        for machine in names(&objects.machines) {
            for output in ["table", "wide", "yaml"] {
                assert!(printed[output].contains(machine), "{name}: {machine} is not in {output}");
            }
        }
        for machine in fixture.expect.machine_addresses() {
            // What could steer a terminal is escaped in tables.
            let plain = machine.chars().all(|char| char.is_ascii_graphic());
            assert!(!plain || printed["wide"].contains(machine), "{name}: {machine}\n{}", printed["wide"]);
        }
    }
    assert!(lines.is_empty(), "what is printed differs from what is expected:\n{}", lines.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_state_in_clear_is_not_projected_and_the_reason_is_said() {
    let mut tried = 0;
    for fixture in fixture::states() {
        let reason = match (fixture.expect.accept(), fixture.name.as_str()) {
            (Accept::Project, _) => continue,
            (Accept::StoreOnly, _) => "encrypted",
            (Accept::NoState, _) => "",
            (Accept::Refuse, "v1-legacy") => "version 1",
            (Accept::Refuse, "v3-legacy") => "version 3",
            (Accept::Refuse, "backend-cache-v3") => "backend",
            (Accept::Refuse, _) => "version",
        };
        tried += 1;
        for output in ["table", "wide", "json", "yaml"] {
            let ran = project(&fixture, output).await;
            let said = String::from_utf8(ran.stderr).unwrap();
            assert_eq!(ran.status.code(), Some(2), "{}: {said}", fixture.name);
            assert!(ran.stdout.is_empty(), "{}", fixture.name);
            let (file, why) = said.split_once(" declares nothing that can be read: ").unwrap();
            assert!(file.ends_with(&format!("{}.tfstate", fixture.name)), "{said}");
            assert!(why.trim().len() > 10 && why.contains(reason), "{}: {said}", fixture.name);
            no_secret(&Canary::new(fixture.expect.secret_strings()), said.as_bytes(), &fixture.name);
        }
    }
    assert!(tried >= 6, "{tried}");
}

/// Compares machines, their groups and the cluster with what is expected of them.
fn differences(fixture: &StateFixture, objects: &Objects, lines: &mut Vec<String>) {
    let mut say = |line: String| lines.push(format!("{}: {line}", fixture.name));
    let mut found: BTreeMap<&str, &Value> = BTreeMap::new();
    for machine in &objects.machines {
        let address = machine["spec"]["address"].as_str().unwrap();
        if found.insert(address, machine).is_some() {
            say(format!("{address}: there twice"));
        }
    }
    let unique: BTreeSet<_> = names(&objects.machines).into_iter().collect();
    if unique.len() != objects.machines.len() {
        say("machines share a name".to_owned());
    }
    let expected: BTreeMap<&str, &Value> = fixture
        .expect
        .machines()
        .iter()
        .map(|machine| (machine["address"].as_str().unwrap(), machine))
        .collect();
    for (address, expected) in &expected {
        match found.get(address) {
            Some(machine) => compare(expected, machine, &objects.groups, &mut say),
            None => say(format!("{address}: no machine")),
        }
    }
    for address in found.keys().filter(|address| !expected.contains_key(*address)) {
        let no_machine = fixture.expect.not_machine_addresses().contains(address);
        let why = if no_machine { "is none on purpose" } else { "nobody expects it" };
        say(format!("{address}: a machine, but {why}"));
    }
    cluster(fixture, &objects.tenant["spec"], &mut say);
}

fn compare(expected: &Value, machine: &Value, groups: &[Value], say: &mut dyn FnMut(String)) {
    let spec = &machine["spec"];
    let address = spec["address"].as_str().unwrap();
    let mut differ = |field: &str, expected: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
        say(format!("{address} {field}: expected {expected}, found {found}"));
    };
    for (field, ours) in [
        ("provider_id", "providerID"),
        ("instance_type", "instanceType"),
        ("region", "region"),
        ("zone", "zone"),
        ("host", "zone"),
        ("image", "image"),
        ("hostname", "hostname"),
        ("role", "role"),
        ("memory_mib", "memoryMiB"),
        ("tainted", "tainted"),
    ] {
        if let Some(wanted) = expected.get(field).filter(|wanted| **wanted != spec[ours]) {
            differ(field, wanted, &spec[ours]);
        }
    }
    let cpus = match &spec["cpus"] {
        Value::Number(number) if number.as_u64().is_none() => number.to_string().into(),
        other => other.clone(),
    };
    if let Some(wanted) = expected.get("cpu").filter(|wanted| **wanted != cpus) {
        differ("cpu", wanted, &cpus);
    }
    let power = match expected["power"].as_str() {
        Some("unknown") | None => &Value::Null,
        Some(_) => &expected["power"],
    };
    if *power != spec["recordedPower"] {
        differ("power", power, &spec["recordedPower"]);
    }
    if expected["name"].is_string() && expected["name"] != spec["name"] {
        differ("name", &expected["name"], &spec["name"]);
    }
    let (known, wanted) = (texts(&spec["alsoKnownAs"]), texts(&expected["also_known_as"]));
    if known != wanted {
        differ("also_known_as", &format!("{wanted:?}"), &format!("{known:?}"));
    }
    let ignored = ips(&expected["ignore_ips"]);
    for (field, kind) in [("private_ips", "InternalIP"), ("public_ips", "ExternalIP")] {
        let found: BTreeSet<IpAddr> = spec["addresses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|address| address["type"] == kind)
            .map(|address| address["address"].as_str().unwrap().parse().unwrap())
            .filter(|address| !ignored.contains(address))
            .collect();
        let wanted: BTreeSet<IpAddr> = ips(&expected[field]).difference(&ignored).copied().collect();
        if found != wanted {
            differ(field, &format!("{wanted:?}"), &format!("{found:?}"));
        }
    }
    let labels = &machine["metadata"]["labels"];
    if labels["rezuscloud.io/role"] != spec["role"] {
        differ("label of the role", &spec["role"], &labels["rezuscloud.io/role"]);
    }
    if labels["rezuscloud.io/node-group"] != spec["nodeGroup"] {
        differ("label of the group", &spec["nodeGroup"], &labels["rezuscloud.io/node-group"]);
    }
    node_group(expected, machine, groups, &mut differ);
}

type Differ<'a> = dyn FnMut(&str, &dyn std::fmt::Display, &dyn std::fmt::Display) + 'a;

/// Groups are compared by their object names: the name itself, or a slug of it with a hash.
fn node_group(expected: &Value, machine: &Value, groups: &[Value], differ: &mut Differ<'_>) {
    let is_weak = expected["node_group_from"].as_str().is_some_and(|from| from.starts_with("resource name"));
    let slug = expected["node_group"].as_str().map(|name| name.to_ascii_lowercase().replace('_', "-"));
    let found = machine["spec"]["nodeGroup"].as_str();
    let is_same = match (&slug, found) {
        (Some(slug), Some(found)) => {
            let hash = found.strip_prefix(&format!("{slug}-"));
            found == slug || hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
        }
        (None, None) => true,
        (Some(_), None) => is_weak,
        (None, Some(_)) => false,
    };
    if !is_same {
        differ("node_group", &expected["node_group"], &machine["spec"]["nodeGroup"]);
    }
    if let Some(name) = found {
        let group = groups.iter().find(|group| group["metadata"]["name"] == name);
        let members = group.map(|group| texts(&group["spec"]["machines"])).unwrap_or_default();
        let count = group.and_then(|group| group["spec"]["count"].as_u64());
        if !members.contains(machine["metadata"]["name"].as_str().unwrap())
            || count != u64::try_from(members.len()).ok()
        {
            differ("node_group", &"a group that counts the machine", &"none");
        }
    }
}

fn cluster(fixture: &StateFixture, spec: &Value, say: &mut dyn FnMut(String)) {
    let expected = &fixture.expect.0["cluster"];
    for (field, ours) in [
        ("name", "clusterName"),
        ("endpoint", "endpoint"),
        ("kubernetes_version", "kubernetesVersion"),
        ("talos_installer_version", "talosVersion"),
    ] {
        let is_open = expected.is_object() && expected.get(field).is_none();
        if !is_open && expected[field] != spec[ours] {
            say(format!("cluster's {field}: expected {}, found {}", expected[field], spec[ours]));
        }
    }
    let shown = |provider: &Value| {
        let source = provider["source"].as_str().unwrap();
        let part = |member: &str| provider[member].as_str();
        let source =
            if source.contains('/') { format!("provider[{source:?}]") } else { format!("provider.{source}") };
        let alias = part("alias").map_or(String::new(), |alias| format!(".{alias}"));
        let key = part("key").map_or(String::new(), |key| format!("[{key:?}]"));
        format!("{source}{alias}{key}")
    };
    let found: BTreeSet<String> = spec["providers"].as_array().into_iter().flatten().map(shown).collect();
    let wanted: BTreeSet<String> = texts(&fixture.expect.0["providers"])
        .iter()
        .map(|provider| provider[provider.find("provider").unwrap_or(0)..].to_owned())
        .collect();
    if found != wanted {
        say(format!("providers: expected {wanted:?}, found {found:?}"));
    }
}

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn ips(list: &Value) -> BTreeSet<IpAddr> {
    texts(list).iter().map(|text| text.parse().unwrap()).collect()
}
