//! The history of a real server's clusters: in files, over a restart, on the command line, and sent on.

use rezus_testkit::fake::cluster::talos::{Cluster, FakeTalos};
use rezus_testkit::fake::cluster::{Authority, Validity};
use serde_json::{Value, json};

use super::API;
use super::lab::{Access, state};
use super::live::{self, Kubernetes};
use crate::cli::run;
use crate::server::{Server, Settings};
use crate::tools;

/// A server with the tenant `web`, whose cluster has the node `a`.
async fn observed(settings: Settings) -> (Server, Kubernetes, FakeTalos) {
    let server = live::server_with("1s", settings).await;
    let body = state(1, &[("a", "controlplane")], Access::Withheld);
    server.send("POST", "/state/web", body).await.expect(200, "POST");
    let kubernetes = Kubernetes::start().await;
    kubernetes.join("a");
    let cluster = FakeTalos::start(Cluster::new(1, 0), live::present()).await;
    let admin = cluster.credential("os:admin", Validity::ALWAYS);
    let (scratch, api) = (server.scratch(), &kubernetes.api);
    let kubeconfig = live::kubeconfig(scratch, &api.url(), &api.credential()).display().to_string();
    let talosconfig = live::talosconfig(scratch, &[cluster.endpoint(0)], &admin).display().to_string();
    let files = ["--kubeconfig-file", &kubeconfig, "--talosconfig-file", &talosconfig];
    let places = ["--allow-destination", "127.0.0.1", "--allow-destination", "127.0.0.2"];
    live::configure(&server, "web", &[files.as_slice(), &places].concat()).await;
    (server, kubernetes, cluster)
}

/// How many points there are of a metric of the node `a`, in steps of a second.
async fn points(server: &Server, metric: &str) -> usize {
    let target = format!("{API}/namespaces/web/machines/a/metrics?name={metric}&step=1s&range=1h");
    let answer = server.get(&target).await.expect(200, metric).json();
    let series = answer["series"].as_array().unwrap();
    series.iter().map(|series| series["points"].as_array().unwrap().len()).sum()
}

async fn until_points(server: &Server, least: usize) -> usize {
    let ask = || points(server, "rezus_node_ready");
    live::until("there are samples", ask, |count| *count >= least).await
}

#[tokio::test]
async fn what_was_sampled_is_there_after_a_restart_and_a_kill_and_on_the_command_line() {
    let (mut server, _kubernetes, _cluster) = observed(Settings::default()).await;
    until_points(&server, 3).await;
    let data_dir = server.data_dir().display().to_string();
    let command = async |arguments: &[&str]| {
        run(&[["metrics", "web"].as_slice(), arguments, &["--data-dir", &data_dir]].concat()).await
    };
    let listed = command(&["a"]).await.done();
    assert!(listed.starts_with("METRIC"), "{listed}");
    assert!(
        listed.lines().any(|line| line.starts_with("rezus_node_ready") && line.contains(" 1 ")),
        "{listed}"
    );
    let tenant = command(&[]).await.done();
    assert!(tenant.contains("rezus_scrape_up") && tenant.contains("1 series of machines"), "{tenant}");
    let plot = command(&["a", "node_ready", "--range", "5m"]).await.done();
    assert!(
        plot.starts_with("rezus_node_ready") && plot.contains('┤') && plot.contains("newest 1,"),
        "{plot}"
    );
    let json: Value = command(&["a", "rezus_node_ready", "--json"]).await.json();
    assert_eq!((&json["machine"], &json["nodes"]), (&json!("a"), &json!(["a"])));
    command(&["a", "no_such"]).await.failed(1, "there is no such metric");
    command(&["nobody"]).await.failed(1, "\"nobody\" not found");

    let directory = server.data_dir().join("series");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&directory).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    let before = points(&server, "rezus_node_ready").await;
    server.terminate().await;
    server.start_again().await;
    // More than came since, for it was there at once that the cluster is matched.
    let after = until_points(&server, before).await;
    assert!(after >= before, "{after} of {before}");
    server.kill().await;
    server.start_again().await;
    until_points(&server, before).await;
    let stored: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
    assert!(!stored.is_empty());
}

#[tokio::test]
async fn samples_that_cannot_be_opened_keep_no_server_from_its_states() {
    let mut server = Server::start().await;
    server.send("POST", "/state/web", state(1, &[], Access::None)).await.expect(200, "POST");
    server.terminate().await;
    // A folder where a file should be: it can be neither read nor put aside as one that is damaged.
    std::fs::create_dir(server.data_dir().join("series/tail-2026-12-01T00-1.db")).unwrap();
    server.start_again().await;
    server.get("/state/web").await.expect(200, "the state");
    let log = server.log();
    assert!(log.contains("samples cannot be opened"), "{log}");
}

#[tokio::test]
async fn a_server_that_keeps_no_samples_has_no_files_and_says_so() {
    let variables = vec![("REZUS_SERIES__ENABLED", "false".to_owned())];
    let (server, _kubernetes, _cluster) = observed(Settings { variables, ..Settings::default() }).await;
    let ready = || live::machine(&server, "web", "a");
    live::until("it is observed", ready, |machine| machine["status"]["node"].is_object()).await;
    let answer = server.get(&format!("{API}/namespaces/web/machines/a/metrics")).await.expect(200, "metrics");
    assert_eq!(answer.json()["reason"], "samples are not kept: series.enabled is false");
    assert!(!server.data_dir().join("series").exists());
}

#[tokio::test]
async fn no_secret_of_a_cluster_is_in_what_is_sampled() {
    let (server, kubernetes, _cluster) = observed(Settings::default()).await;
    until_points(&server, 2).await;
    let credential = kubernetes.api.credential();
    let key = String::from_utf8(credential.key.to_vec()).unwrap();
    let secret = key.lines().nth(1).unwrap();
    let mut looked_at = 0;
    for entry in std::fs::read_dir(server.data_dir().join("series")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
        looked_at += bytes.len();
    }
    assert!(looked_at > 0);
    let other = Authority::new("other").credential("o", "other", Validity::ALWAYS);
    assert_ne!(other.key, credential.key);
}

/// A real Prometheus that takes what is written to it, and where it answers; it ends with this.
struct Prometheus(#[expect(dead_code, reason = "it ends when it is dropped")] tokio::process::Child, String);

impl Prometheus {
    fn start(directory: &std::path::Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::write(directory.join("p.yml"), "global: {}\n").unwrap();
        let mut command = tokio::process::Command::new("prometheus");
        command.arg(format!("--config.file={}", directory.join("p.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", directory.join("tsdb").display()));
        command
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--web.enable-remote-write-receiver");
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).kill_on_drop(true);
        Self(command.spawn().unwrap(), format!("http://127.0.0.1:{port}"))
    }

    /// What it says of an expression now; nothing where it does not answer.
    async fn result(&self, expression: &str) -> Option<Value> {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let answer = client.get(format!("{}/api/v1/query?query={query}", self.1)).send().await.ok()?;
        Some(answer.json::<Value>().await.ok()?["data"]["result"].clone())
    }
}

#[tokio::test]
async fn what_is_sampled_is_sent_on_to_a_real_prometheus() {
    if tools::find("prometheus").is_none() {
        return tools::missing("prometheus", "samples that are sent on");
    }
    let directory = tempfile::TempDir::new().unwrap();
    let prometheus = Prometheus::start(directory.path());
    let url = format!("{}/api/v1/write", prometheus.1);
    let variables = vec![("REZUS_SERIES__REMOTE_WRITE__URL", url)];
    let (server, _kubernetes, _cluster) = observed(Settings { variables, ..Settings::default() }).await;
    let ask = || prometheus.result("rezus_node_ready{tenant=\"web\",node=\"a\",source=\"kubernetes\"}");
    let found = live::until("Prometheus has it", ask, |found| {
        found.as_ref().is_some_and(|found| found.as_array().is_some_and(|series| series.len() == 1))
    });
    assert_eq!(found.await.unwrap()[0]["value"][1], "1");
    let metrics = server.get("/metrics").await.expect(200, "metrics");
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    let line =
        text.lines().find(|line| line.starts_with("rezus_remote_write_samples_total{outcome=\"sent\"}"));
    assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("rezus_remote_write_success_seconds ")), "{text}");
}
