//! What the API says of itself over HTTP: discovery, schemas, and reviews of who is asking.

use std::collections::BTreeSet;

use rezus_server::kube::kinds::KINDS;
use rezus_server::kube::{discovery, openapi, review};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::in_process::{InProcess, local};

/// What kubectl 1.30 and later asks for.
const KUBECTL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const GROUP: &str = "/openapi/v3/apis/rezuscloud.io/v1alpha1";

/// `auth can-i list machines.rezuscloud.io -n hcloud`, as kubectl 1.33 sends it.
const CAN_LIST: &[u8] = b"k8s\x00\x0a2\x0a\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview\x12M\x0a\x10\x0a\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12/\x0a-\x0a\x06hcloud\x12\x04list\x1a\x0drezuscloud.io\"\x00*\x08machines2\x00:\x00\x1a\x08\x08\x00\x12\x00\x1a\x00 \x00\x1a\x00\"\x00";
/// `auth can-i delete machines.rezuscloud.io -n hcloud`
const CAN_DELETE: &[u8] = b"k8s\x00\x0a2\x0a\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview\x12O\x0a\x10\x0a\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x121\x0a/\x0a\x06hcloud\x12\x06delete\x1a\x0drezuscloud.io\"\x00*\x08machines2\x00:\x00\x1a\x08\x08\x00\x12\x00\x1a\x00 \x00\x1a\x00\"\x00";
/// `auth can-i get /version`
const CAN_GET_VERSION: &[u8] = b"k8s\x00\x0a2\x0a\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview\x12/\x0a\x10\x0a\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\x11\x12\x0f\x0a\x08/version\x12\x03get\x1a\x08\x08\x00\x12\x00\x1a\x00 \x00\x1a\x00\"\x00";
/// `auth can-i --list -n hcloud`
const RULES: &[u8] = b"k8s\x00\x0a1\x0a\x17authorization.k8s.io/v1\x12\x16SelfSubjectRulesReview\x12\"\x0a\x10\x0a\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\x08\x0a\x06hcloud\x1a\x04\x18\x00\"\x00\x1a\x00\"\x00";
/// `auth whoami`
const IDENTITY: &[u8] = b"k8s\x00\x0a-\x0a\x18authentication.k8s.io/v1\x12\x11SelfSubjectReview\x12\x1a\x0a\x10\x0a\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\x06\x0a\x04\x0a\x00\x12\x00\x1a\x00\"\x00";

async fn get(plane: &InProcess, path: &str, headers: &[(&str, &str)]) -> Answer {
    plane.send_as(local(), "GET", path, headers, "").await
}

/// Group, resource (with its subresource), kind, scope and verbs of all that a discovery names.
type Found = BTreeSet<(String, String, String, bool, String)>;

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn aggregated(list: &Value) -> Found {
    let mut found = Found::new();
    for group in list["items"].as_array().unwrap() {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in group["versions"].as_array().unwrap() {
            assert_eq!(version["freshness"], "Current");
            for resource in version["resources"].as_array().unwrap() {
                let main = text(&resource["resource"]);
                let is_namespaced = resource["scope"] == "Namespaced";
                let mut add = |of: &Value, resource: String| {
                    let kind = &of["responseKind"];
                    assert_eq!((&kind["group"], &kind["version"]), (&name.into(), &version["version"]));
                    let verbs = of["verbs"].to_string();
                    found.insert((name.to_owned(), resource, text(&kind["kind"]), is_namespaced, verbs));
                };
                add(resource, main.clone());
                for sub in resource["subresources"].as_array().into_iter().flatten() {
                    add(sub, format!("{main}/{}", text(&sub["subresource"])));
                }
            }
        }
    }
    found
}

/// Walks from `/api` and `/apis` as clients do that know no aggregated discovery.
async fn one_by_one(plane: &InProcess) -> Found {
    let mut places = Vec::new();
    for version in get(plane, "/api", &[]).await.expect(200, "/api").json()["versions"].as_array().unwrap() {
        places.push((String::new(), format!("/api/{}", text(version)), text(version)));
    }
    for group in get(plane, "/apis", &[]).await.expect(200, "/apis").json()["groups"].as_array().unwrap() {
        let name = text(&group["name"]);
        let mut alone = get(plane, &format!("/apis/{name}"), &[]).await.expect(200, &name).json();
        assert_eq!((alone["kind"].take(), alone["apiVersion"].take()), ("APIGroup".into(), "v1".into()));
        assert_eq!((&alone["name"], &alone["versions"]), (&group["name"], &group["versions"]));
        assert_eq!(alone["preferredVersion"], alone["versions"][0]);
        for version in group["versions"].as_array().unwrap() {
            let version = text(&version["groupVersion"]);
            places.push((name.clone(), format!("/apis/{version}"), version));
        }
    }
    let mut found = Found::new();
    for (group, path, version) in places {
        let list = get(plane, &path, &[]).await.expect(200, &path).json();
        assert_eq!((&list["kind"], &list["groupVersion"]), (&"APIResourceList".into(), &version.into()));
        for resource in list["resources"].as_array().unwrap() {
            let is_namespaced = resource["namespaced"].as_bool().unwrap();
            let (name, kind) = (text(&resource["name"]), text(&resource["kind"]));
            assert_eq!(resource["singularName"] == "", name.contains('/'), "{name}");
            found.insert((group.clone(), name, kind, is_namespaced, resource["verbs"].to_string()));
        }
    }
    found
}

#[tokio::test]
async fn both_forms_of_discovery_name_the_same_and_all_kinds() {
    let plane = InProcess::new();
    let mut found = Found::new();
    for path in ["/api", "/apis"] {
        for accept in
            [KUBECTL, "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer"]
        {
            let answer = get(&plane, path, &[("accept", accept)]).await.expect(200, path);
            assert_eq!(answer.header("content-type"), Some(AGGREGATED), "{path}");
            assert_eq!(answer.header("vary"), Some("accept"));
            found.extend(aggregated(&answer.json()));
        }
        let old =
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        let answer = get(&plane, path, &[("accept", old)]).await.expect(200, path);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert!(answer.json()["items"].is_null());
    }
    assert_eq!(found, one_by_one(&plane).await);
    for info in KINDS {
        let (group, kind) = (info.group().to_owned(), info.kind.to_owned());
        let verbs = serde_json::to_string(info.verbs).unwrap();
        assert!(
            found.contains(&(group.clone(), info.plural.to_owned(), kind.clone(), info.namespaced, verbs)),
            "{kind}"
        );
        for subresource in info.subresources {
            let name = format!("{}/{}", info.plural, subresource.name);
            let verbs = format!("[{:?}]", subresource.verb);
            let one = (group.clone(), name, kind.clone(), info.namespaced, verbs);
            assert!(found.contains(&one), "{one:?}");
        }
        let status =
            (group, format!("{}/status", info.plural), kind, info.namespaced, r#"["get"]"#.to_owned());
        assert_eq!(found.contains(&status), info.has_status(), "{status:?}");
    }
    let machines = get(&plane, "/apis/rezuscloud.io/v1alpha1", &[]).await.json();
    let machines = machines["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "machines")
        .unwrap()
        .clone();
    assert_eq!(
        machines,
        json!({
            "name": "machines",
            "singularName": "machine",
            "namespaced": true,
            "kind": "Machine",
            "verbs": ["get", "list", "watch"],
            "shortNames": ["mc"],
            "categories": ["rezus", "all"],
        })
    );
}

#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let plane = InProcess::new();
    for path in discovery::PATHS.into_iter().chain(openapi::PATHS).filter(|path| *path != "/openapi/v2") {
        let first = get(&plane, path, &[]).await.expect(200, path);
        let tag = first.header("etag").unwrap();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        assert_eq!(first.header("cache-control"), Some("no-cache"), "{path}");
        let again = get(&plane, path, &[("if-none-match", tag)]).await.expect(304, path);
        assert_eq!((again.body.len(), again.header("etag")), (0, Some(tag)));
        get(&plane, path, &[("if-none-match", "\"other\"")]).await.expect(200, path);
        get(&plane, path, &[("accept", "application/vnd.kubernetes.protobuf")])
            .await
            .expect(406, path)
            .message();
        let refused = plane.send("POST", path, "{}").await.expect(405, path);
        assert!(refused.message().contains("POST"));
        assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    }
    // The two forms have different tags.
    let tag = |answer: Answer| answer.header("etag").unwrap().to_owned();
    let old = tag(get(&plane, "/apis", &[]).await);
    let new = tag(get(&plane, "/apis", &[("accept", KUBECTL)]).await);
    assert_ne!(old, new);
    get(&plane, "/apis", &[("accept", KUBECTL), ("if-none-match", &old)]).await.expect(200, "the other form");
}

#[tokio::test]
async fn a_schema_is_kept_under_its_hash_and_found_under_any_other() {
    let plane = InProcess::new();
    let index = get(&plane, "/openapi/v3", &[]).await.expect(200, "the index").json();
    for name in ["apis/rezuscloud.io/v1alpha1", "api/v1"] {
        let url = text(&index["paths"][name]["serverRelativeURL"]);
        assert!(url.starts_with(&format!("/openapi/v3/{name}?hash=")), "{url}");
        let kept = get(&plane, &url, &[]).await.expect(200, &url);
        assert_eq!(kept.header("cache-control"), Some("public, immutable, max-age=31536000"));
        let hash = url.split_once('=').unwrap().1;
        assert_eq!(kept.header("etag"), Some(format!("\"{hash}\"").as_str()));
        assert_eq!(kept.json()["openapi"], "3.0.0");
        let path = format!("/openapi/v3/{name}");
        assert_eq!(get(&plane, &path, &[]).await.expect(200, &path).body, kept.body);
        let wrong = format!("{path}?hash=0000&timeout=32s");
        let moved = get(&plane, &wrong, &[]).await.expect(301, &wrong);
        assert_eq!(
            (moved.header("location"), moved.header("cache-control")),
            (Some(url.as_str()), Some("no-cache"))
        );
    }
    assert!(get(&plane, "/openapi/v2", &[]).await.expect(406, "v2").message().contains("/openapi/v3"));
    let group = get(&plane, GROUP, &[]).await.json();
    assert!(group["components"]["schemas"]["io.rezuscloud.v1alpha1.Machine"].is_object());
}

#[tokio::test]
async fn whoever_asks_is_told_what_it_may_do_and_who_it_is() {
    let plane = InProcess::new();
    let [access, rules, identity] = review::PATHS;
    let allowed = async |verb: &str, resource: &str| {
        let attributes =
            json!({ "verb": verb, "group": "rezuscloud.io", "resource": resource, "namespace": "acme" });
        let body = json!({ "spec": { "resourceAttributes": attributes } }).to_string();
        plane.send("POST", access, body).await.expect(201, access).json()["status"].clone()
    };
    assert_eq!(allowed("list", "machines").await, json!({ "allowed": true }));
    assert_eq!(allowed("create", "runs").await, json!({ "allowed": true }));
    assert_eq!(allowed("delete", "runs").await["allowed"], false);
    let refused = allowed("delete", "machines").await;
    assert_eq!(refused["allowed"], false);
    assert!(refused["reason"].as_str().unwrap().contains("read-only"), "{refused}");
    for (path, body, allowed) in [
        (access, CAN_LIST, Some(true)),
        (access, CAN_DELETE, Some(false)),
        (access, CAN_GET_VERSION, Some(true)),
        (rules, RULES, None),
        (identity, IDENTITY, None),
    ] {
        let media = [("content-type", "application/vnd.kubernetes.protobuf")];
        let answer = plane.send_as(local(), "POST", path, &media, body).await.expect(201, path);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()["status"]["allowed"].as_bool(), allowed, "{path}");
        let crossed = if path == identity { access } else { identity };
        plane.send_as(local(), "POST", crossed, &media, body).await.expect(400, "another review").message();
    }
    let answer =
        plane.send("POST", rules, r#"{"spec":{"namespace":"acme"}}"#).await.expect(201, rules).json();
    for member in ["resourceRules", "nonResourceRules"] {
        assert!(!answer["status"][member].as_array().unwrap().is_empty(), "{answer}");
    }
    assert_eq!(answer["status"]["incomplete"], false);
    let answer = plane.send("POST", identity, "{}").await.expect(201, identity).json();
    assert_eq!(answer["status"]["userInfo"]["username"], "anonymous");

    let media = [("content-type", "application/yaml")];
    plane.send_as(local(), "POST", access, &media, "spec: {}").await.expect(415, "YAML").message();
    plane.send("POST", access, "{").await.expect(400, "half a body").message();
    plane.send("POST", access, vec![b' '; 70_000]).await.expect(400, "too much").message();
    let refused = plane.send("GET", access, "").await.expect(405, "GET");
    assert_eq!(refused.header("allow"), Some("POST"));
}

#[tokio::test]
async fn the_version_is_one_that_clients_can_read() {
    let version = get(&InProcess::new(), "/version", &[]).await.expect(200, "/version").json();
    let members = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    for member in members {
        assert!(version[member].is_string(), "{member}");
    }
    let (major, minor) = (text(&version["major"]), text(&version["minor"]));
    let expected = format!("v{major}.{minor}.0+rezus.{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(version["gitVersion"], expected);
}
