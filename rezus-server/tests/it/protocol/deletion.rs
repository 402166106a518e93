//! DELETE, and the end of tenants.

use crate::in_process::InProcess;
use crate::lock::{self, APPLY, state};

#[tokio::test]
async fn a_deleted_state_is_gone_and_its_history_is_not() {
    let server = InProcess::new();
    for serial in [1, 2] {
        server.post("web", state("l", serial)).await.expect(200, "POST");
    }
    server.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    server.get("/state/web").await.expect(404, "GET of a deleted state");
    server.send("DELETE", "/state/web", "").await.expect(200, "DELETE again");
    let versions = server.versions("web").await;
    assert_eq!(
        versions.iter().map(|version| version["deleted"] == true).collect::<Vec<_>>(),
        [false, false, true]
    );
    for (number, serial) in [(1, 1), (2, 2)] {
        let path = format!("/rezus/v1/tenants/web/versions/{number}/body");
        assert_eq!(server.get(&path).await.expect(200, &path).body, state("l", serial));
    }
    server.get("/rezus/v1/tenants/web/versions/3/body").await.expect(409, "the body of a deletion");
    let rollback = server.send("POST", "/rezus/v1/tenants/web/rollback", r#"{"version":1}"#).await;
    assert_eq!(rollback.expect(200, "rollback").json()["serial"], 3);
}

#[tokio::test]
async fn a_tenant_is_removed_only_when_nothing_needs_it() {
    let server = InProcess::new();
    server.post("web", state("l", 1)).await.expect(200, "POST");
    server.lock("web", &lock::id(1), APPLY).await.expect(200, "LOCK");
    server.send("DELETE", "/rezus/v1/tenants/web?force=true", "").await.expect(423, "while it is locked");
    server.unlock("web", &lock::id(1)).await.expect(200, "UNLOCK");
    server.send("DELETE", "/rezus/v1/tenants/web", "").await.expect(409, "while it declares something");
    server.send("DELETE", "/rezus/v1/tenants/web?force=true", "").await.expect(204, "by force");
    server.get("/rezus/v1/tenants/web").await.expect(404, "a tenant that is gone");

    server.post("web", state("m", 1)).await.expect(200, "a new one of that name");
    assert_eq!(server.versions("web").await.len(), 1, "nothing of the old one comes back");
    server.post("web", lock::empty_state("m", 2)).await.expect(200, "destroyed");
    server.send("DELETE", "/rezus/v1/tenants/web", "").await.expect(204, "once it declares nothing");
}
