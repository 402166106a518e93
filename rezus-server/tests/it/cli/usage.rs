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
        ("REZUS_LOG__LEVEL", "a=b=c", "log.level"),
        ("REZUS_LOG__FORMAT", "xml", "xml"),
    ] {
        run_with(&serve, &[(variable, value)], b"").await.failed(64, piece);
    }
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
    for command in rezus_server::cli::command().get_subcommands() {
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
