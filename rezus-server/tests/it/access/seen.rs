//! What somebody who is bound to tenants sees of lists and watches over all of them, and for how long.

use serde_json::json;

use super::people::{Closed, FOREIGN, OWN, secret};
use crate::in_process::Events;
use crate::projection::{machines, state_of};

const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// Machines in both tenants: `mine` and `yours`.
async fn with_machines() -> Closed {
    let closed = Closed::new().await;
    for (tenant, name) in [(OWN, "mine"), (FOREIGN, "yours")] {
        let body = machines(2, &[(name, json!({ "name": name }))])
            .replace("8c3d1c1e-3f0a-4b52-9f5e-0f6f1a2b3c4d", "l");
        closed.ask("admin-all", "POST", &format!("/state/{tenant}"), body).await.expect(200, "machines");
    }
    closed
}

async fn watch(closed: &Closed, who: &str, target: &str) -> Events {
    let bearer = format!("Bearer {}", secret(who).reveal());
    closed.plane.watch_with(target, ("authorization", &bearer)).await
}

#[tokio::test]
async fn lists_over_all_tenants_show_who_is_bound_to_one_what_is_of_that_one() {
    let closed = with_machines().await;
    closed
        .ask("admin-all", "LOCK", &format!("/state/{FOREIGN}"), "no lock info")
        .await
        .expect(400, "an event");
    for path in ["tenants", "machines", "nodegroups", "stateversions"].map(|kind| format!("{API}/{kind}")) {
        let all = closed.ask("view-all", "GET", &path, "").await.expect(200, &path).body;
        let own = closed.ask("view-own", "GET", &path, "").await.expect(200, &path).body;
        let (all, own) =
            (String::from_utf8_lossy(&all).into_owned(), String::from_utf8_lossy(&own).into_owned());
        let foreign = format!("\"{FOREIGN}\"");
        assert!(all.contains(&foreign) && !own.contains(&foreign) && own.contains(OWN), "{path}: {own}");
    }
    for path in ["/api/v1/namespaces", "/api/v1/events"] {
        let own = closed.ask("view-own", "GET", path, "").await.expect(200, path).body;
        assert!(!String::from_utf8_lossy(&own).contains(FOREIGN), "{path}");
    }
    // Pages and counts are of what one sees.
    let page = closed.ask("view-own", "GET", &format!("{API}/machines?limit=1"), "").await.json();
    assert_eq!(
        page["metadata"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["resourceVersion"],
        "{page}"
    );
    // Another's token goes on with what this one sees.
    let page = closed.ask("view-all", "GET", &format!("{API}/machines?limit=1"), "").await.json();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = closed.ask("view-own", "GET", &format!("{API}/machines?limit=9&continue={token}"), "").await;
    assert!(!String::from_utf8_lossy(&rest.expect(200, "the rest").body).contains(FOREIGN));
    // How much a mapping is used by others is not told.
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (who, used) in [("view-all", [json!(2), json!(2)]), ("view-own", [json!(1), json!(1)])] {
        let bearer = format!("Bearer {}", secret(who).reveal());
        let headers = [("accept", accept), ("authorization", &*bearer)];
        let target = format!("{API}/providers/terraform");
        let table =
            closed.plane.send_as(crate::in_process::local(), "GET", &target, &headers, "").await.json();
        assert_eq!(table["rows"][0]["cells"].as_array().unwrap()[4..], used, "{who}");
    }
}

#[tokio::test]
async fn a_watch_tells_what_its_caller_sees_and_ends_with_the_right_to_it() {
    let closed = with_machines().await;
    let followed = tokio::spawn(closed.plane.plane().catalogue.clone().run());
    let change = async |tenant: &str, serial: u64, name: &str| {
        let body = state_of("l", serial, &[]);
        closed.ask("admin-all", "POST", &format!("/state/{tenant}"), body).await.expect(200, name);
    };
    let mut by_token = watch(&closed, "view-own", &format!("{API}/machines?watch=1")).await;
    let mut by_grant = watch(&closed, "edit-own", &format!("{API}/namespaces/{OWN}/machines?watch=1")).await;
    let mut others =
        watch(&closed, "view-all", &format!("{API}/machines?watch=1&fieldSelector=metadata.name%3Dyours"))
            .await;
    for events in [&mut by_token, &mut by_grant] {
        assert_eq!(events.next().await["object"]["metadata"]["name"], "mine");
    }
    assert_eq!(others.next().await["object"]["metadata"]["name"], "yours");
    let id = super::people::token_id("view-own");
    closed.ask("admin-all", "DELETE", &format!("/rezus/v1/tokens/{id}"), "").await.expect(204, "revoked");
    let none = json!({ "grants": [] }).to_string();
    closed.ask("admin-all", "PATCH", "/rezus/v1/users/edit-own", none).await.expect(200, "withdrawn");
    // What goes is told to whom it still concerns, and the others are at their end.
    change(FOREIGN, 3, "foreign").await;
    change(OWN, 3, "own").await;
    assert_eq!(others.next().await["type"], "DELETED");
    assert_eq!(by_token.next_or_end().await, None);
    assert_eq!(by_grant.next_or_end().await, None);
    followed.abort();
}
