//! How the first admin gets in: `admin.kubeconfig`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rezus_core::access::AccountStore as _;
use rezus_server::auth::kubeconfig::{self, Kept};
use serde_json::Value;

use super::people::{Closed, secret, token_id};
use crate::server::{Server, Settings};

/// Returns the token of a data directory's kubeconfig.
pub(crate) fn token(data_dir: &Path) -> String {
    field(&std::fs::read_to_string(data_dir.join("admin.kubeconfig")).unwrap(), "user: ", "token")
}

/// Returns a member of the object that follows a key.
fn field(text: &str, key: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
    serde_json::from_str::<Value>(line).unwrap()[name].as_str().unwrap().to_owned()
}

fn closed() -> Settings {
    Settings { auth: true, ..Settings::default() }
}

async fn code(server: &Server, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    server.send_with("GET", "/rezus/v1/users", &[("authorization", &bearer)], "").await.code
}

#[tokio::test]
async fn a_fresh_directory_gets_an_admin_whose_token_lasts_over_restarts() {
    let mut server = Server::start_with(closed()).await;
    let path = server.data_dir().join("admin.kubeconfig");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    server.logged(&format!("admin kubeconfig: {}", path.display()), 1).await;
    let first = token(server.data_dir());
    assert_eq!(code(&server, &first).await, 200);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(field(&text, "cluster: ", "server"), server.url());
    server.get("/rezus/v1/users").await.expect(401, "without a token");

    server.terminate().await;
    std::fs::write(&path, text.replace(server.url(), "http://127.0.0.1:1")).unwrap();
    server.start_again().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it is brought up to date");
    assert_eq!(code(&server, &first).await, 200);

    // Whoever keeps the file elsewhere does not get another one.
    server.terminate().await;
    std::fs::remove_file(&path).unwrap();
    server.start_again().await;
    assert!(!path.exists());
    assert_eq!(code(&server, &first).await, 200);
}

#[tokio::test]
async fn where_no_admins_token_works_any_more_the_next_start_makes_one() {
    let mut server = Server::start_with(closed()).await;
    let first = token(server.data_dir());
    let bearer = format!("Bearer {first}");
    let ask = async |server: &Server, method: &str, target: &str| {
        server.send_with(method, target, &[("authorization", &bearer)], "").await
    };
    let tokens = ask(&server, "GET", "/rezus/v1/tokens").await.expect(200, "tokens").items();
    let path = format!("/rezus/v1/tokens/{}", tokens[0]["id"].as_str().unwrap());
    let refused = ask(&server, "DELETE", &path).await.expect(409, "the last one").message();
    assert!(refused.contains("admin.kubeconfig"), "{refused}");
    ask(&server, "DELETE", "/rezus/v1/users/admin").await.expect(409, "the last one's user");
    ask(&server, "DELETE", &format!("{path}?force=true")).await.expect(204, "it must be");
    assert_eq!(code(&server, &first).await, 401);
    server.terminate().await;
    server.start_again().await;
    let second = token(server.data_dir());
    assert_ne!(first, second);
    assert_eq!((code(&server, &first).await, code(&server, &second).await), (401, 200));
}

#[tokio::test]
async fn the_last_admin_is_not_lost_by_any_change() {
    let closed = Closed::new().await;
    let all = "/rezus/v1/users/admin-all";
    for (method, target, body) in [
        ("DELETE", all.to_owned(), ""),
        ("PATCH", all.to_owned(), r#"{"grants":[]}"#),
        ("PATCH", all.to_owned(), r#"{"grants":[{"role":"admin","tenants":["own"]}]}"#),
        ("DELETE", format!("/rezus/v1/tokens/{}", token_id("admin-all")), ""),
    ] {
        closed.ask("admin-all", method, &target, body).await.expect(409, &target);
    }
    // With another one each of it is fine.
    let grant = r#"{"group":"ops","grants":[{"role":"admin"}]}"#;
    closed.ask("admin-all", "PUT", "/rezus/v1/grants", grant).await.expect(200, "a group of admins");
    let member = r#"{"groups":["ops"]}"#;
    closed.ask("admin-all", "PATCH", "/rezus/v1/users/victim", member).await.expect(200, "its member");
    closed.ask("admin-all", "PATCH", all, r#"{"grants":[]}"#).await.expect(200, "no longer the last one");
    let none = r#"{"group":"ops","grants":[]}"#;
    closed.ask("victim", "PUT", "/rezus/v1/grants", none).await.expect(409, "the last group");
}

#[tokio::test]
async fn a_kubeconfig_is_made_kept_or_left_alone() {
    let closed = Closed::new().await;
    let auth = &closed.plane.plane().auth;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin.kubeconfig");
    let ensure =
        async || kubeconfig::ensure_admin(auth, &path, "https://[::1]:8443", Some("PEM\n")).await.unwrap();
    assert_eq!(ensure().await, Kept::LeftAlone);
    assert!(!path.exists(), "there is an admin");
    for broken in ["", "users: 7", "%", "users:\n- user: {}\n"] {
        std::fs::write(&path, broken).unwrap();
        assert_eq!(ensure().await, Kept::LeftAlone, "{broken}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
    }
    let weak = kubeconfig::render("http://x", None, &secret("edit-all").reveal());
    std::fs::write(&path, &weak).unwrap();
    assert_eq!(ensure().await, Kept::LeftAlone, "no admin's");
    std::fs::write(&path, weak.replace(&secret("edit-all").reveal(), &secret("admin-all").reveal())).unwrap();
    assert_eq!(ensure().await, Kept::Updated);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(field(&text, "cluster: ", "server"), "https://[::1]:8443");
    assert_eq!(field(&text, "cluster: ", "certificate-authority-data"), "UEVNCg==");
    assert_eq!(field(&text, "user: ", "token"), secret("admin-all").reveal());

    closed.accounts.remove_user(&"admin-all".parse().unwrap(), auth.clock().now()).await.unwrap();
    auth.book().forget();
    assert_eq!(ensure().await, Kept::Made);
    assert_eq!(ensure().await, Kept::Updated);
}

#[tokio::test]
async fn a_server_without_authentication_says_so_loudly() {
    let mut server = Server::start().await;
    server.logged("NO AUTHENTICATION", 1).await;
    server.get("/rezus/v1/users").await.expect(200, "everybody is admin");
    let closed = Server::start_with(closed()).await;
    assert!(!closed.log().contains("NO AUTHENTICATION"));
}
