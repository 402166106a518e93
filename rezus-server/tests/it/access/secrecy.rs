//! A token is shown once, to whoever made it, and is nowhere else: no answer, log, metric, error, `Debug`, file.

use rezus_testkit::canary::Canary;

use super::admin;
use super::people::{Closed, secret};
use crate::server::{Server, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_in_no_answer_no_log_and_no_file() {
    let variables = vec![("REZUS_LOG__LEVEL", "trace".to_owned())];
    let mut server = Server::start_with(Settings { variables, auth: true, ..Settings::default() }).await;
    let admin = admin::token(server.data_dir());
    let bearer = format!("Bearer {admin}");
    let ask = async |server: &Server, method: &str, target: &str, body: &str| {
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        server.send_with(method, target, &headers, body.to_owned()).await
    };
    ask(&server, "POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "tenant");
    let mut tokens = vec![admin.clone()];
    for body in [r#"{"tenant":"web"}"#, r#"{"user":"admin","note":"x"}"#, "{}"] {
        let made = ask(&server, "POST", "/rezus/v1/tokens", body).await.expect(201, body);
        tokens.push(made.json()["token"].as_str().unwrap().to_owned());
    }
    // One that opens nothing is a secret too: it may open something elsewhere.
    tokens.push(secret("bad").reveal());
    let canary = Canary::new(tokens.iter().flat_map(|token| [token.as_str(), &token["rezus_".len()..]]));
    let check = |bytes: &[u8], what: &str| {
        let leaks = canary.leaks(bytes);
        assert!(leaks.is_empty(), "{what}: {leaks:?}");
    };

    for token in &tokens {
        use base64::Engine as _;
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("rezus:{token}"));
        for shown in
            [format!("Bearer {token}"), format!("Basic {basic}"), format!("Other {token}"), token.clone()]
        {
            for target in
                ["/state/web", "/rezus/v1/tokens", "/metrics", "/apis/rezuscloud.io/v1alpha1/tenants"]
            {
                let headers = [("authorization", shown.as_str())];
                let answer = server.send_with("GET", target, &headers, "").await;
                check(&answer.body, target);
                check(format!("{:?}", answer.headers).as_bytes(), target);
            }
        }
        // Shown in the wrong place it is not repeated either.
        for (method, target, body) in [
            ("DELETE", format!("/rezus/v1/tokens/{token}"), String::new()),
            ("DELETE", format!("/rezus/v1/users/{token}"), String::new()),
            ("POST", "/rezus/v1/users".to_owned(), format!(r#"{{"name":"{token}"}}"#)),
            ("PUT", "/rezus/v1/grants".to_owned(), format!(r#"{{"group":"{token}","grants":[]}}"#)),
            ("POST", "/rezus/v1/tokens".to_owned(), format!(r#"{{"note":"{token}"}}"#)),
            ("POST", "/rezus/v1/tenants".to_owned(), format!(r#"{{"name":"{token}"}}"#)),
            ("LOCK", format!("/state/{token}"), String::new()),
            ("POST", "/rezus/v1/users".to_owned(), format!(r#"{{"name":"ana","token":"{token}"}}"#)),
            ("POST", "/rezus/v1/tokens".to_owned(), format!(r#"{{"expiresInSeconds":"{token}"}}"#)),
            ("GET", format!("/state/web?ID={token}"), String::new()),
        ] {
            let answer = ask(&server, method, &target, &body).await;
            assert!(answer.code >= 400 || method == "GET", "{method} {target}: {}", answer.code);
            check(&answer.body, &target);
        }
    }
    for path in ["/rezus/v1/tokens", "/rezus/v1/users", "/rezus/v1/audit?limit=1000", "/metrics"] {
        check(&ask(&server, "GET", path, "").await.expect(200, path).body, path);
    }
    assert!(server.terminate().await.success());
    check(server.log().as_bytes(), "the log");
    let mut looked_at = 0;
    for entry in std::fs::read_dir(server.data_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("admin.kubeconfig") {
            check(&std::fs::read(&path).unwrap(), &path.display().to_string());
            looked_at += 1;
        }
    }
    assert!(looked_at >= 2, "{looked_at}");
}

#[tokio::test]
async fn debug_output_has_no_token() {
    let closed = Closed::new().await;
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "so that it is known");
    let directory = closed.plane.plane().auth.book().directory().await.unwrap();
    let shown = format!("{directory:?} {:?} {:?}", closed.plane.plane(), secret("edit-all"));
    let digest = secret("edit-all").digest();
    let canary = Canary::new([secret("edit-all").reveal().as_bytes(), digest.as_bytes()]);
    assert!(canary.leaks(shown.as_bytes()).is_empty());
    let bytes = format!("{:?}", digest.as_bytes());
    assert!(!shown.contains(&bytes) && shown.contains("TokenDigest(..)"));
}
