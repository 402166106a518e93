//! `/state?ID=TENANT`, where clients put their lock's ID in the tenant's place.

use crate::in_process::InProcess;
use crate::lock::{self, APPLY};

#[tokio::test]
async fn a_post_finds_the_tenant_by_the_lock_it_holds() {
    let server = InProcess::new();
    let (one, two) = (lock::id(1), lock::id(2));
    for (tenant, id) in [("one", &one), ("two", &two)] {
        let target = format!("/state?ID={tenant}");
        server.get(&target).await.expect(404, "GET of nothing");
        server.send("LOCK", &target, lock::info(id, APPLY)).await.expect(200, "LOCK");
        server.get(&target).await.expect(404, "GET of nothing under the lock");
    }
    for (id, lineage) in [(&two, "of-two"), (&one, "of-one")] {
        let target = format!("/state?ID={id}");
        server.send("POST", &target, lock::state(lineage, 1)).await.expect(200, "POST");
        server.send("PUT", &target, lock::state(lineage, 2)).await.expect(200, "PUT");
    }
    for (tenant, id, lineage) in [("one", &one, "of-one"), ("two", &two, "of-two")] {
        let target = format!("/state?ID={tenant}");
        server.send("UNLOCK", &target, lock::info(id, APPLY)).await.expect(200, "UNLOCK");
        let body = server.get(&target).await.expect(200, "GET").body;
        assert_eq!(body, lock::state(lineage, 2));
        assert_eq!(server.current(tenant).await.unwrap(), body, "the path form shows the same");
    }
    assert_eq!(server.get("/rezus/v1/tenants").await.items().len(), 2, "no tenant is named after a lock");
}

#[tokio::test]
async fn without_a_lock_the_id_is_the_tenant() {
    let server = InProcess::new();
    server.send("POST", "/state?ID=web", lock::state("l", 1)).await.expect(200, "POST");
    server.get("/state?ID=web").await.expect(200, "GET");
    assert_eq!(server.versions("web").await[0]["unlocked"], true);
    server.send("DELETE", "/state?ID=web", "").await.expect(200, "DELETE");
    server.get("/state?ID=web").await.expect(404, "GET of what was deleted");
}

#[tokio::test]
async fn in_the_path_form_the_id_is_a_lock_even_where_it_reads_as_a_tenant() {
    let server = InProcess::new();
    server.post("one", lock::state("l", 1)).await.expect(200, "POST");
    server.post("two", lock::state("l", 1)).await.expect(200, "POST");
    server.send("POST", "/state/one?ID=two", lock::state("l", 2)).await.expect(423, "POST under no lock");
    server.send("POST", "/state/one?ID=one", lock::state("l", 2)).await.expect(423, "POST under no lock");
    assert_eq!((server.versions("one").await.len(), server.versions("two").await.len()), (1, 1));
    // An empty ID is none.
    server.send("POST", "/state/one?ID=", lock::state("l", 2)).await.expect(200, "POST");
}

#[tokio::test]
async fn a_lock_that_nobody_holds_is_no_tenant() {
    let server = InProcess::new();
    let id = lock::id(7);
    let answer = server.send("POST", &format!("/state?ID={id}"), lock::state("l", 1)).await;
    assert!(answer.expect(423, "POST").message().contains(&id));
    assert!(server.get("/rezus/v1/tenants").await.items().is_empty());
}

#[tokio::test]
async fn lock_ids_and_tenant_names_never_mean_each_other() {
    let server = InProcess::new();
    server.post("web", lock::state("l", 1)).await.expect(200, "POST");
    server.post("db", lock::state("l", 1)).await.expect(200, "POST");
    server.lock("web", "db", APPLY).await.expect(409, "a lock named as a tenant");
    server.lock("web", "cache", APPLY).await.expect(200, "a lock with a name of its own");
    let new = r#"{"name":"cache"}"#;
    server.send("POST", "/rezus/v1/tenants", new).await.expect(409, "a tenant named as a lock");
    server.send("POST", "/state?ID=cache", lock::state("l", 2)).await.expect(200, "POST under that lock");
    assert_eq!(server.versions("web").await.len(), 2);
    server.unlock("web", "cache").await.expect(200, "UNLOCK");
    server.send("POST", "/rezus/v1/tenants", new).await.expect(201, "the name is free again");
}

#[tokio::test]
async fn an_address_that_names_no_tenant_is_refused() {
    let server = InProcess::new();
    for target in [
        "/state",
        "/state?ID=",
        "/state?id=web",
        "/state?ID=Web",
        "/state?ID=we_b",
        "/state?ID=-web",
        "/state?ID=a&ID=b",
        "/state/Web",
        "/state/web.eu",
        "/state/-",
        "/state/%00",
        "/state/%ff",
        "/state/..%2Fweb",
        // A name that reads as a UUID of any version, with hyphens or without.
        "/state/177fbbaf-774b-3a8b-0000-000000000001",
        "/state/177fbbaf774b3a8b0000000000000001",
    ] {
        for (method, body) in [
            ("GET", String::new()),
            ("POST", lock::state("l", 1)),
            ("LOCK", lock::info(&lock::id(1), APPLY)),
            ("UNLOCK", String::new()),
            ("DELETE", String::new()),
        ] {
            let answer = server.send(method, target, body).await;
            assert!((400..500).contains(&answer.code), "{method} {target}: {}", answer.code);
            assert_ne!(answer.code, 405, "{method} {target}");
        }
    }
    for name in ["177fbbaf-774b-3a8b-0000-000000000001", "177FBBAF774B3A8B0000000000000001", "", "Web"] {
        let body = format!(r#"{{"name":"{name}"}}"#);
        server.send("POST", "/rezus/v1/tenants", body).await.expect(400, name);
    }
    assert!(server.get("/rezus/v1/tenants").await.items().is_empty());
}
