//! Labels that operators give a tenant, in the Kubernetes API.

use serde_json::json;

use crate::in_process::InProcess;

const TENANTS: &str = "/apis/rezuscloud.io/v1alpha1/tenants";

async fn names(plane: &InProcess, selector: &str) -> Vec<String> {
    let target = format!("{TENANTS}?labelSelector={selector}");
    let items = plane.get(&target).await.expect(200, selector).items();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn labels_are_shown_selected_by_and_watched() {
    let plane = InProcess::new();
    for (tenant, env) in [("left", "prod"), ("right", "test")] {
        let body = json!({ "name": tenant }).to_string();
        plane.send("POST", "/rezus/v1/tenants", body).await.expect(201, tenant);
        let body = json!({ "labels": { "env": env, "a.example/team": "" } }).to_string();
        plane.send("PATCH", &format!("/rezus/v1/tenants/{tenant}"), body).await.expect(200, env);
    }
    let tenant = plane.get(&format!("{TENANTS}/left")).await.expect(200, "left").json();
    let expected = json!({ "env": "prod", "a.example/team": "", "rezuscloud.io/tenant": "left" });
    assert_eq!(tenant["metadata"]["labels"], expected);
    assert_eq!(names(&plane, "env%3Dprod").await, ["left"]);
    assert_eq!(names(&plane, "env%20in%20(prod,test)").await, ["left", "right"]);
    assert_eq!(names(&plane, "a.example/team,env%21%3Dprod").await, ["right"]);
    assert_eq!(names(&plane, "env%3Dprod,rezuscloud.io/tenant%3Dright").await, Vec::<String>::new());
    let version = tenant["metadata"]["resourceVersion"].clone();
    let body = json!({ "labels": { "env": null, "tier": "gold" } }).to_string();
    plane.send("PATCH", "/rezus/v1/tenants/left", body).await.expect(200, "relabelled");
    let tenant = plane.get(&format!("{TENANTS}/left")).await.json();
    assert_eq!(tenant["metadata"]["labels"]["tier"], "gold");
    assert!(tenant["metadata"]["labels"].get("env").is_none());
    assert_ne!(tenant["metadata"]["resourceVersion"], version, "whoever watches is told");
    assert_eq!(names(&plane, "env%3Dprod").await, Vec::<String>::new());
    // Of other kinds they are none.
    let namespace = plane.get("/api/v1/namespaces/left").await.expect(200, "the namespace").json();
    assert!(namespace["metadata"]["labels"].get("tier").is_none());
}
