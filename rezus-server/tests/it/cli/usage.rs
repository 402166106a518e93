//! What is answered without a server, and what is used wrongly.

use super::{run, run_with};
use crate::server::Server;

#[tokio::test]
async fn a_wrong_command_line_ends_with_64() {
    for (arguments, piece) in [
        (&["fly"][..], "fly"),
        (&["state"], "Usage"),
        (&["state", "list"], "<TENANT>"),
        (&["state", "list", "Web"], "lower-case"),
        (&["state", "list", "177fbbaf-774b-3a8b-0000-000000000001"], "UUID"),
        (&["state", "show", "web", "not an address"], "not an address"),
        (&["state", "list", "web", "-o", "xml"], "xml"),
        (&["state", "rollback", "web", "one"], "one"),
        (&["tenant", "list", "--server", "http://x", "--data-dir", "y"], "cannot be used with"),
        (&["serve", "--plain", "nowhere"], "nowhere"),
        (&["completions", "tcl"], "tcl"),
    ] {
        run(arguments).await.failed(64, piece);
    }
}

#[tokio::test]
async fn a_wrong_setting_ends_with_64_and_is_named() {
    let directory = tempfile::TempDir::new().unwrap();
    let data = directory.path().join("data");
    let serve = ["serve", "--data-dir", data.to_str().unwrap()];
    for (variable, value, piece) in [
        ("REZUS_STATE__MAX_BODY", "many", "many"),
        ("REZUS_STATE__MAX_SIZE", "1MiB", "max_size"),
        ("REZUS_SERVER__PLAIN", "0.0.0.0:8080", "loopback"),
        ("REZUS_AUTH__ENABLED", "maybe", "enabled"),
        ("REZUS_LOG__LEVEL", "a=b=c", "log.level"),
        ("REZUS_LOG__FORMAT", "xml", "xml"),
    ] {
        run_with(&serve, &[(variable, value)], b"").await.failed(64, piece);
    }
    let open = ["serve", "--data-dir", data.to_str().unwrap(), "--no-auth", "--tls", "0.0.0.0:0"];
    run(&open).await.failed(64, "every listener must be on loopback");
    run(&["serve", "--config", "/nowhere/rezus.toml"]).await.failed(64, "/nowhere/rezus.toml");
    assert!(!data.exists(), "nothing was made");
}

#[tokio::test]
async fn what_cannot_be_reached_ends_with_1() {
    let directory = tempfile::TempDir::new().unwrap();
    let nowhere = directory.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    run(&["tenant", "list", "--data-dir", nowhere]).await.failed(1, "there is no rezus data");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    run(&["tenant", "list", "--server", &url]).await.failed(1, "cannot be reached");
    run(&["tenant", "list", "--server", &url, "--token-file", nowhere]).await.failed(1, nowhere);
}

#[tokio::test]
async fn two_servers_do_not_share_a_directory_or_an_address() {
    let server = Server::start().await;
    let data = server.data_dir();
    let second = ["serve", "--data-dir", data.to_str().unwrap(), "--plain", "127.0.0.1:0", "--no-tls"];
    run(&second).await.failed(1, "in use by another rezus process");
    let other = server.scratch().join("other");
    let address = server.url().trim_start_matches("http://");
    let second = ["serve", "--data-dir", other.to_str().unwrap(), "--plain", address, "--no-tls"];
    run(&second).await.failed(1, "cannot listen on");
    server.get("/readyz").await.expect(200, "the first is not disturbed");
}

#[tokio::test]
async fn help_version_and_completions_need_nothing() {
    assert!(run(&["--version"]).await.done().starts_with("rezus-server "));
    let help = run(&["--help"]).await.done();
    for command in rezus_server::cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        assert!(help.contains(command.get_name()), "{} is not in the help", command.get_name());
        run(&[command.get_name(), "--help"]).await.done();
    }
    for (shell, piece) in
        [("bash", "complete -F"), ("zsh", "#compdef rezus-server"), ("fish", "complete -c rezus-server")]
    {
        let script = run(&["completions", shell]).await.done();
        assert!(script.contains(piece), "{shell}");
    }
}

/// A script that no shell can read is worse than none.
#[tokio::test]
async fn bash_reads_its_completions() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("completions");
    std::fs::write(&path, run(&["completions", "bash"]).await.done()).unwrap();
    let bash = std::process::Command::new("bash").arg("-n").arg(&path).status();
    // Where there is no bash, nothing reads them.
    assert!(bash.is_err() || bash.unwrap().success());
}

#[tokio::test]
async fn a_data_directory_in_the_environment_does_not_forbid_a_server() {
    let server = Server::start().await;
    let variables = [("REZUS_SERVER__DATA_DIR", "/nowhere"), ("http_proxy", "http://127.0.0.1:1")];
    run_with(&["tenant", "list", "--server", server.url()], &variables, b"").await.done();
    let data = server.data_dir();
    let variables = [("REZUS_SERVER__DATA_DIR", data.to_str().unwrap())];
    run_with(&["tenant", "list"], &variables, b"").await.done();
}

#[tokio::test]
async fn without_a_server_the_settings_are_those_of_the_operator() {
    let mut server = Server::start().await;
    for serial in 1..=3 {
        let state = crate::lock::state("l", serial);
        server.send("POST", "/state/web", state).await.expect(200, "POST");
    }
    server.terminate().await;
    let data = server.data_dir();
    let prune = ["state", "prune", "--dry-run", "--data-dir", data.to_str().unwrap()];
    let none = run(&prune).await.done();
    assert!(none.starts_with("no version"), "{none}");
    let keep_one = [("REZUS_RETENTION__KEEP_LAST", "1"), ("REZUS_RETENTION__KEEP_DAYS", "0")];
    let some = run_with(&prune, &keep_one, b"").await.done();
    assert!(some.starts_with("web: 2 versions would go"), "{some}");
    let file = server.scratch().join("rezus.toml");
    std::fs::write(&file, "[retention]\nkeep_last = 2\nkeep_days = 0\n").unwrap();
    let with_file = [prune.as_slice(), &["--config", file.to_str().unwrap()]].concat();
    let some = run(&with_file).await.done();
    assert!(some.starts_with("web: 1 versions would go"), "{some}");
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_fault() {
    let mut script = tokio::process::Command::new("/bin/sh");
    script
        .args(["-c", "\"$0\" completions bash | head -n 1; exit ${PIPESTATUS:-0}", crate::server::PROGRAM])
        .env_clear();
    let ended = script.env("PATH", "/usr/bin:/bin").output().await.unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}
