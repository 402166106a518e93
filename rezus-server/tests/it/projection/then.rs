//! Reading as of a version, where fields come from, what became of machines, and that nothing is written here.

use rezus_testkit::fixture::{self, Accept};
use serde_json::{Value, json};

use super::{API, condition, machines, names};
use crate::in_process::InProcess;
use crate::lock;

const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/web/machines";

/// Three versions: `a` stays, `b` goes and `c` changes its zone and comes with a group in the third.
async fn with_three_versions() -> InProcess {
    let plane = InProcess::new();
    let a = json!({ "name": "a", "role": "worker", "internal_ips": ["10.0.0.1"], "memory_mib": "8192" });
    let b = json!({ "name": "b", "cpus": 4 });
    let c = |zone: &str| json!({ "name": "c", "zone": zone, "node_group": format!("group-{zone}") });
    plane.post("web", machines(1, &[("a", a.clone()), ("b", b.clone())])).await.expect(200, "1");
    plane.post("web", machines(2, &[("a", a.clone()), ("b", b), ("c", c("one"))])).await.expect(200, "2");
    plane.post("web", machines(3, &[("a", a), ("c", c("two"))])).await.expect(200, "3");
    plane
}

#[tokio::test]
async fn every_version_reads_as_of_then() {
    let plane = with_three_versions().await;
    for (query, expected) in [
        ("?version=1", &["a", "b"][..]),
        ("?version=2", &["a", "b", "c"]),
        ("?version=3", &["a", "c"]),
        ("", &["a", "c"]),
    ] {
        let listed = plane.get(&format!("{MACHINES}{query}")).await.expect(200, query).items();
        assert_eq!(names(&listed), expected, "{query}");
        for machine in &listed {
            let name = machine["metadata"]["name"].as_str().unwrap();
            // The version in which it changed last.
            let annotation = &machine["metadata"]["annotations"]["rezuscloud.io/state-version"];
            assert_eq!(*annotation, machine["metadata"]["generation"].to_string());
            let alone = plane.get(&format!("{MACHINES}/{name}{query}")).await.expect(200, name).json();
            assert_eq!(alone, *machine);
        }
        for absent in ["a", "b", "c"].iter().filter(|name| !expected.contains(name)) {
            plane.get(&format!("{MACHINES}/{absent}{query}")).await.expect(404, absent).message();
            plane.get(&format!("{MACHINES}/{absent}/provenance{query}")).await.expect(404, absent).message();
        }
    }
    let zone =
        async |query: &str| plane.get(&format!("{MACHINES}/c{query}")).await.json()["spec"]["zone"].clone();
    assert_eq!((zone("?version=2").await, zone("").await), (json!("one"), json!("two")));
    let groups = format!("{API}/namespaces/web/nodegroups");
    let groups = async |query: &str| {
        let listed = plane.get(&format!("{groups}{query}")).await.expect(200, query).items();
        names(&listed).join(" ")
    };
    assert_eq!(
        (groups("?version=2").await, groups("").await),
        ("edge group-one".into(), "edge group-two".into())
    );
    for (query, code) in
        [("?version=4", 404), ("?version=0", 400), ("?version=-1", 400), ("?version=one", 400)]
    {
        for path in ["", "/a", "/a/provenance"] {
            let message = plane.get(&format!("{MACHINES}{path}{query}")).await.expect(code, query).message();
            assert!(!message.is_empty());
        }
    }
}

/// Follows a path of members and indexes.
fn follow<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = document;
    let mut rest = path.strip_prefix('$')?;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let mut name = String::new();
            let mut chars = quoted.char_indices();
            let end = loop {
                match chars.next()? {
                    (_, '\\') => name.push(chars.next()?.1),
                    (at, '\'') => break at,
                    (_, char) => name.push(char),
                }
            };
            found = found.get(&name)?;
            rest = quoted[end + 1..].strip_prefix(']')?;
        } else if let Some(bracket) = rest.strip_prefix('[') {
            let (index, behind) = bracket.split_once(']')?;
            found = found.get(index.parse::<usize>().ok()?)?;
            rest = behind;
        } else {
            let member = rest.strip_prefix('.')?;
            let end = member.find(['.', '[']).unwrap_or(member.len());
            found = found.get(&member[..end])?;
            rest = &member[end..];
        }
    }
    Some(found)
}

/// A scalar as text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test]
async fn provenance_leads_to_the_very_value_in_the_state_that_was_posted() {
    let plane = with_three_versions().await;
    let state: Value =
        serde_json::from_slice(&plane.get("/rezus/v1/tenants/web/versions/2/body").await.body).unwrap();
    let shown =
        plane.get(&format!("{MACHINES}/c/provenance?version=2")).await.expect(200, "provenance").json();
    assert_eq!((&shown["machine"], &shown["stateVersion"]), (&"c".into(), &json!(2)));
    let fields = shown["fields"].as_object().unwrap();
    for (field, value) in [("name", "c"), ("zone", "one"), ("nodeGroup", "group-one")] {
        let source = &fields[field];
        assert_eq!(source["stateVersion"], 2, "{field}");
        assert_eq!(source["address"], "terraform_data.edge[\"c\"]", "{field}");
        assert_eq!(
            follow(&state, source["path"].as_str().unwrap()),
            Some(&value.into()),
            "{field}: {source}"
        );
        assert!(!source["rule"].as_str().unwrap().is_empty());
    }
    let shown = plane.get(&format!("{MACHINES}/a/provenance")).await.expect(200, "provenance").json();
    assert_eq!(shown["stateVersion"], 3);
    let fields = &shown["fields"];
    for field in ["name", "role", "memoryMiB", "addresses[0].address", "nodeGroup"] {
        assert_eq!(fields[field]["stateVersion"], 3, "{field}: {fields}");
    }
    assert!(fields.get("zone").is_none(), "what is absent comes from nowhere: {fields}");
}

#[tokio::test]
async fn provenance_of_all_fixtures_names_places_that_are_there_and_the_objects_they_are_in() {
    let plane = InProcess::new();
    let (mut followed, mut equal) = (0, 0);
    for fixture in fixture::states().into_iter().filter(|it| it.expect.accept() == Accept::Project) {
        let name = &fixture.name;
        let state: Value = serde_json::from_slice(&fixture.body).unwrap();
        plane.post(name, fixture.body).await.expect(200, name);
        let list = format!("{API}/namespaces/{name}/machines");
        for machine in plane.get(&list).await.items() {
            let path = format!("{list}/{}/provenance", machine["metadata"]["name"].as_str().unwrap());
            let shown = plane.get(&path).await.expect(200, &path).json();
            for (field, source) in shown["fields"].as_object().unwrap() {
                let what = format!("{path}: {field}: {source}");
                let place = source["path"].as_str().unwrap();
                let found = follow(&state, place).unwrap_or_else(|| panic!("{what} leads nowhere"));
                followed += 1;
                let block = &place[..=place.find(']').unwrap()];
                let block = follow(&state, block).unwrap();
                let address = source["address"].as_str().unwrap();
                for part in ["type", "name"] {
                    assert!(address.contains(block[part].as_str().unwrap()), "{what}");
                }
                assert!(address.starts_with(block["module"].as_str().unwrap_or("")), "{what}");
                // What is there is the field, or a step of the rule takes the field out of it.
                let is_plain = ["name", "providerID", "instanceType"].contains(&field.as_str());
                if is_plain && source["rule"].as_str().unwrap().starts_with('$') && !found.is_object() {
                    let (found, field) = (text(found), text(&machine["spec"][field]));
                    assert!(found.contains(&field), "{what}: {field} is not in {found}");
                    equal += usize::from(found == field);
                }
            }
        }
    }
    assert!(followed > 500 && equal > 100, "{followed} {equal}");
}

#[tokio::test]
async fn history_tells_in_which_version_a_machine_came_and_changed_and_went_and_by_whom() {
    let plane = with_three_versions().await;
    let history = async |name: &str| {
        let items = plane.get(&format!("{MACHINES}/{name}/history")).await.expect(200, name).items();
        let written = plane.versions("web").await;
        for item in &items {
            let version = written.iter().find(|version| version["version"] == item["version"]).unwrap();
            assert_eq!(item["writtenAt"], version["writtenAt"]);
            assert_eq!(item["writtenBy"], version["writtenBy"]);
            assert!(item["writtenBy"].as_str().is_some_and(|who| !who.is_empty()), "{item}");
        }
        items
    };
    let told = |items: &[Value]| -> Vec<(u64, String)> {
        items.iter().map(|item| (item["version"].as_u64().unwrap(), text(&item["change"]))).collect()
    };
    assert_eq!(told(&history("a").await), [(1, "added".to_owned())]);
    assert_eq!(told(&history("b").await), [(1, "added".to_owned()), (3, "removed".to_owned())]);
    let c = history("c").await;
    assert_eq!(told(&c), [(2, "added".to_owned()), (3, "changed".to_owned())]);
    let expected = json!([
        { "field": "nodeGroup", "before": "group-one", "after": "group-two" },
        { "field": "zone", "before": "one", "after": "two" },
    ]);
    assert_eq!(c[1]["fields"], expected);
    let message = plane.get(&format!("{MACHINES}/nobody/history")).await.expect(404, "nobody").message();
    assert!(message.contains("nobody"), "{message}");
}

#[tokio::test]
async fn history_tells_of_a_state_that_was_deleted_and_written_anew() {
    let plane = InProcess::new();
    let told = async || {
        let items = plane.get(&format!("{MACHINES}/a/history")).await.expect(200, "history").items();
        let told = items.iter().map(|item| (item["version"].as_u64().unwrap(), text(&item["change"])));
        told.collect::<Vec<_>>()
    };
    let event = |version: u64, what: &str| (version, what.to_owned());
    plane.post("web", machines(1, &[("a", json!({ "name": "a" }))])).await.expect(200, "1");
    plane.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    plane.post("web", machines(1, &[("a", json!({ "name": "a" }))])).await.expect(200, "3");
    assert_eq!(told().await, [event(1, "added"), event(2, "removed"), event(3, "added")]);
}

#[tokio::test]
async fn writes_are_refused_on_every_path_with_where_the_change_belongs() {
    let plane = with_three_versions().await;
    for path in rezus_server::kube::PATHS.iter().copied() {
        let name = match path {
            _ if path.contains("/providers/") => "hcloud",
            _ if path.contains("/nodegroups/") => "edge",
            _ if path.contains("/stateversions/") => "v1",
            _ => "a",
        };
        let target = path.replace("{tenant}", "web").replace("{name}", name);
        // Runs are made: `runs/api.rs`.
        let is_run = path.split('/').any(|piece| piece == "runs");
        for method in ["POST", "PUT", "PATCH", "DELETE"].into_iter().filter(|_| !is_run) {
            for target in [target.clone(), target.replace("web", "nobody"), format!("{target}?version=1")] {
                let body = json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Machine" }).to_string();
                let answer = plane.send(method, &target, body).await.expect(405, &target);
                let message = answer.message();
                assert_eq!(answer.json()["reason"], "MethodNotAllowed");
                assert!(message.contains(method) && message.contains("is read-only: "), "{message}");
                assert_eq!(answer.headers["allow"], "GET, HEAD");
                // A body that cannot be read does not matter.
                plane.send(method, &target, "{").await.expect(405, &target);
            }
        }
        // There are no runs, no write was refused, and the state opens no cluster.
        let absent = ["/runs/", "/events/", "/kubeconfig", "/talosconfig"];
        let is_there = !absent.iter().any(|piece| path.contains(piece));
        plane.get(&target).await.expect(if is_there { 200 } else { 404 }, &target);
    }
    assert_eq!(plane.versions("web").await.len(), 3);
}

#[tokio::test]
async fn what_is_not_there_is_a_status_that_names_it() {
    let plane = with_three_versions().await;
    for (path, named) in [
        ("/tenants/nobody", "nobody"),
        ("/namespaces/nobody/machines/a", "machines.rezuscloud.io \"a\""),
        ("/namespaces/nobody/machines/a/history", "nobody"),
        ("/namespaces/nobody/machines/a/provenance", "nobody"),
        ("/namespaces/web/machines/none", "none"),
        ("/namespaces/web/machines/none/provenance", "none"),
        ("/namespaces/web/machines/none/history", "none"),
        ("/namespaces/web/nodegroups/none", "none"),
        ("/providers/none", "providers"),
        ("/clusters", "clusters"),
        ("/namespaces/web/clusters", "clusters"),
        ("/namespaces/web/machines/a/logs", "logs"),
        ("/tenants/No_Name", "No_Name"),
    ] {
        let answer = plane.get(&format!("{API}{path}")).await.expect(404, path);
        assert!(answer.message().contains(named), "{path}: {}", answer.message());
        assert_eq!(answer.json()["reason"], "NotFound");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    // As in Kubernetes, a namespace that is not there is one without anything in it.
    for path in
        ["/namespaces/nobody/machines", "/namespaces/No_Name/machines", "/namespaces/nobody/nodegroups"]
    {
        assert!(plane.get(&format!("{API}{path}")).await.expect(200, path).items().is_empty());
    }
}

#[tokio::test]
async fn of_an_encrypted_state_nothing_is_told_and_no_count_is_zero() {
    let plane = InProcess::new();
    let encrypted = fixture::state("tofu-encrypted");
    plane.post("web", encrypted.body).await.expect(200, "POST");
    for kind in ["machines", "nodegroups"] {
        assert!(
            plane.get(&format!("{API}/namespaces/web/{kind}")).await.expect(200, kind).items().is_empty()
        );
        assert!(plane.get(&format!("{API}/{kind}")).await.expect(200, kind).items().is_empty());
        plane.get(&format!("{API}/namespaces/web/{kind}/a")).await.expect(404, kind).message();
    }
    let asked = plane.get(&format!("{MACHINES}?version=1")).await.expect(409, "as of then");
    assert_eq!(asked.json()["reason"], "Encrypted");
    let tenant = plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
    let available = condition(&tenant, "SpecAvailable").unwrap();
    assert_eq!((&available["status"], &available["reason"]), (&"False".into(), &"Encrypted".into()));
    assert_eq!(condition(&tenant, "StateEncrypted").unwrap()["status"], "True");
    let spec = tenant["spec"].as_object().unwrap();
    assert_eq!(spec.keys().collect::<Vec<_>>(), ["state"], "{tenant}");
    assert_eq!((&spec["state"]["encrypted"], spec["state"].get("resources")), (&json!(true), None));
    let listed = plane.get(&format!("{API}/tenants")).await.items();
    assert_eq!(listed, [tenant]);
}

#[tokio::test]
async fn of_a_tenant_without_a_state_the_lists_are_empty_and_it_is_said_why() {
    let plane = InProcess::new();
    plane.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "create");
    assert!(plane.get(MACHINES).await.expect(200, "list").items().is_empty());
    let reason = async || {
        let tenant = plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
        assert!(tenant["spec"].get("machines").is_none(), "{tenant}");
        condition(&tenant, "SpecAvailable").unwrap()["reason"].clone()
    };
    assert_eq!(reason().await, "NoState");
    plane.post("web", machines(1, &[("a", json!({}))])).await.expect(200, "POST");
    assert_eq!(plane.get(MACHINES).await.items().len(), 1);
    plane.send("DELETE", "/state/web", lock::info(&lock::id(1), lock::APPLY)).await.expect(200, "DELETE");
    assert!(plane.get(MACHINES).await.expect(200, "list").items().is_empty());
    assert_eq!(reason().await, "NoState");
}

#[tokio::test]
async fn a_version_of_what_is_of_no_one_version_is_refused() {
    let plane = InProcess::new();
    plane.post("web", machines(1, &[("a", json!({ "name": "a" }))])).await.expect(200, "POST");
    for path in [
        "/tenants",
        "/tenants/web",
        "/machines",
        "/nodegroups",
        "/providers",
        "/providers/aws",
        "/namespaces/web/machines/a/history",
    ] {
        let answer = plane.get(&format!("{API}{path}?version=1")).await.expect(400, path);
        assert!(answer.message().starts_with("version: "), "{path}: {}", answer.message());
        plane.get(&format!("{API}{path}")).await.expect(200, path);
    }
}
