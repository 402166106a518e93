//! Writes of states that were refused, as whoever looks at the tenant sees them.

use serde_json::json;

use super::{API, two_tenants, web};
use crate::projection::{condition, machines};

#[tokio::test]
async fn a_refused_write_is_an_event_and_a_condition_until_the_next_that_is_accepted() {
    let plane = two_tenants().await;
    let tenant = async || plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
    assert!(condition(&tenant().await, "WriteRefused").is_none());
    plane.post("web", machines(0, &[])).await.expect(409, "a serial that is too low");
    let seen = tenant().await;
    let refused = condition(&seen, "WriteRefused").unwrap();
    assert_eq!(
        (&refused["status"], &refused["reason"], &refused["source"]),
        (&"True".into(), &"Refused".into(), &"state".into())
    );
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("POST") && message.contains("409") && message.contains("serial"), "{message}");
    let events = plane.get("/api/v1/namespaces/web/events").await.expect(200, "events").items();
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(
        (&event["kind"], &event["type"], &event["reason"]),
        (&"Event".into(), &"Warning".into(), &"WriteRefused".into())
    );
    let uid = &seen["metadata"]["uid"];
    let expected =
        json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Tenant", "name": "web", "uid": uid });
    assert_eq!(event["involvedObject"], expected);
    // As `describe tenants web` asks.
    let selector = format!(
        "involvedObject.name%3Dweb,involvedObject.namespace%3D,involvedObject.kind%3DTenant,involvedObject.uid%3D{}",
        uid.as_str().unwrap()
    );
    let described = plane
        .get(&format!("/api/v1/events?fieldSelector={selector}&limit=500"))
        .await
        .expect(200, "described");
    assert_eq!(described.items(), events);
    let others =
        plane.get(&format!("/api/v1/events?fieldSelector={}", selector.replace("Tenant", "Machine"))).await;
    assert!(others.items().is_empty());
    plane.post("web", web(2, "two")).await.expect(200, "POST");
    assert!(condition(&tenant().await, "WriteRefused").is_none());
    assert_eq!(plane.get("/api/v1/namespaces/web/events").await.items(), events);
}

#[tokio::test]
async fn a_lock_that_somebody_else_holds_is_an_event_but_no_refused_write() {
    let plane = two_tenants().await;
    plane.lock("web", "b2a4bd92-5b39-4a9b-a9a3-1c9a2f2a7b11", crate::lock::APPLY).await.expect(200, "lock");
    plane.lock("web", "b2a4bd92-5b39-4a9b-a9a3-1c9a2f2a7b12", crate::lock::APPLY).await.expect(423, "held");
    let tenant = plane.get(&format!("{API}/tenants/web")).await.json();
    assert!(condition(&tenant, "WriteRefused").is_none(), "{tenant}");
    assert_eq!(plane.get("/api/v1/namespaces/web/events").await.items().len(), 1);
}
