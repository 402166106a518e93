//! The commands about tokens, users, groups and the trail, by the socket and by URL.

use std::ffi::OsStr;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use super::admin;
use crate::server::{PROGRAM, Server, Settings};

/// Runs a command and returns its code, and what it printed.
async fn run(arguments: &[impl AsRef<OsStr>]) -> (i32, String, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_clear().stdin(Stdio::null());
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(super) async fn done(arguments: &[&str], target: &[&str]) -> String {
    let (code, out, errors) = run(&[arguments, target].concat()).await;
    assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    out
}

#[tokio::test]
async fn accounts_are_kept_from_the_command_line() {
    let server = Server::start_with(Settings { auth: true, ..Settings::default() }).await;
    let data = server.data_dir().to_str().unwrap();
    let socket = ["--data-dir", data];
    done(&["tenant", "create", "web"], &socket).await;
    done(&["user", "create", "ana", "--group", "ops", "--role", "view", "--tenant", "web"], &socket).await;
    let made =
        done(&["token", "create", "--user", "ana", "--expires", "90d", "--note", "laptop"], &socket).await;
    let token = made.lines().next().unwrap();
    assert!(token.starts_with("rezus_") && token.len() == 70, "the token alone");
    let file = server.scratch().join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let by_url = ["--server", server.url(), "--token-file", file.to_str().unwrap()];

    assert!(done(&["tenant", "list"], &by_url).await.contains("web"));
    let (code, _, errors) = run(&[&["tenant", "create", "other"][..], &by_url].concat()).await;
    assert_eq!(code, 1);
    assert!(errors.contains("needs the role admin"), "{errors}");
    let (code, _, errors) = run(&["tenant", "list", "--server", server.url()]).await;
    assert_eq!(code, 1);
    assert!(errors.contains("--token-file"), "{errors}");

    done(&["user", "grant", "ana", "--role", "edit", "--tenant", "web", "--tenant", "db"], &socket).await;
    let shown = done(&["user", "show", "ana"], &socket).await;
    assert!(shown.contains("view in web; edit in db, web"), "{shown}");
    done(&["user", "revoke", "ana", "--role", "edit", "--tenant", "web"], &socket).await;
    let shown = done(&["user", "list"], &socket).await;
    assert!(shown.contains("view in web; edit in db"), "{shown}");
    let (code, _, errors) = run(&[&["user", "revoke", "ana", "--role", "admin"][..], &socket].concat()).await;
    assert_eq!(code, 64, "{errors}");
    done(&["group", "grant", "ops", "--role", "edit"], &socket).await;
    assert!(done(&["group", "list"], &socket).await.contains("edit everywhere"));
    assert_eq!(done(&["group", "revoke", "ops", "--role", "edit"], &socket).await, "ops: -\n");
    done(&["user", "groups", "ana", "dev", "qa"], &socket).await;

    let listed: Value = serde_json::from_str(&done(&["token", "list", "-o", "json"], &socket).await).unwrap();
    let of_ana = listed["items"].as_array().unwrap().iter().find(|token| token["user"] == "ana").unwrap();
    assert_eq!((&of_ana["note"], &of_ana["state"]), (&"laptop".into(), &"works".into()));
    assert!(of_ana["token"].is_null() && of_ana["lastUsedAt"].is_string(), "{of_ana}");
    let id = of_ana["id"].as_str().unwrap();
    assert!(done(&["token", "list"], &by_url).await.contains(id));
    done(&["token", "revoke", id], &by_url).await;
    let (code, ..) = run(&[&["tenant", "list"][..], &by_url].concat()).await;
    assert_eq!(code, 1);
    done(&["user", "remove", "ana"], &socket).await;

    let trail = done(&["audit", "--limit", "1000"], &socket).await;
    for action in [
        "tenant.create",
        "user.create",
        "token.create",
        "user.change",
        "group.grant",
        "token.revoke",
        "user.remove",
    ] {
        assert!(trail.contains(action), "{action} is not in {trail}");
    }
    assert!(trail.contains("socket") && trail.contains("127.0.0.1"), "{trail}");
    let (code, _, errors) = run(&[&["token", "create", "--backend", "nowhere"][..], &socket].concat()).await;
    assert_eq!(code, 1);
    assert!(errors.contains("tenant create nowhere"), "{errors}");
    assert!(!trail.contains(token) && !server.log().contains(token));
}

/// Where no server runs, the directory is opened, and what is done there is on record as well.
#[tokio::test]
async fn accounts_are_kept_where_no_server_runs() {
    let mut server = Server::start_with(Settings { auth: true, ..Settings::default() }).await;
    assert!(server.terminate().await.success());
    let data = server.data_dir().to_str().unwrap().to_owned();
    let made = done(&["token", "create", "--user", "admin"], &["--data-dir", &data]).await;
    let trail = done(&["audit"], &["--data-dir", &data]).await;
    assert!(trail.contains("token.create") && trail.contains("socket"), "{trail}");
    server.start_again().await;
    let bearer = format!("Bearer {}", made.lines().next().unwrap());
    server
        .send_with("GET", "/rezus/v1/users", &[("authorization", &bearer)], "")
        .await
        .expect(200, "it works");
    assert!(admin::token(server.data_dir()).starts_with("rezus_"));
}
