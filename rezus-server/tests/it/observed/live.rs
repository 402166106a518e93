//! A real server, and clusters on loopback that it reads over real TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_adapters::clock::SystemClock;
use rezus_core::base::Clock as _;
use rezus_core::observed::Credential;
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::cluster::{FakeKubernetes, node};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::{API, Declared, declared};
use crate::server::{PROGRAM, Server, Settings};

/// How long anything may take: what told nothing is asked again after half a minute, and then after a whole one.
const PATIENCE: Duration = Duration::from_mins(3);

/// How often it is looked whether something came true.
const LOOK: Duration = Duration::from_millis(200);

/// A server that reads clusters so often.
pub(super) async fn server(pace: &str) -> Server {
    server_with(pace, Settings::default()).await
}

/// The same with other settings.
pub(super) async fn server_with(pace: &str, mut settings: Settings) -> Server {
    let names = ["REZUS_COLLECTOR__KUBERNETES", "REZUS_COLLECTOR__TALOS"];
    settings.variables.extend(names.map(|name| (name, pace.to_owned())));
    Server::start_with(settings).await
}

/// A Kubernetes API whose nodes renew their leases as long as they live.
#[derive(Debug)]
pub(super) struct Kubernetes {
    pub(super) api: FakeKubernetes,
    keeper: JoinHandle<()>,
    alive: tokio::sync::watch::Sender<Vec<String>>,
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Kubernetes {
    /// One without nodes.
    pub(super) async fn start() -> Self {
        let api = FakeKubernetes::start(Arc::new(SystemClock)).await;
        let (alive, living) = tokio::sync::watch::channel(Vec::<String>::new());
        let kept = api.clone();
        let keeper = tokio::spawn(async move {
            loop {
                for name in living.borrow().iter() {
                    kept.renew(name, SystemClock.now());
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        Self { api, keeper, alive }
    }

    /// A node joins.
    pub(super) fn join(&self, name: &str) {
        let place = self.alive.borrow().len();
        let mut object = node(name);
        object["spec"]["providerID"] = format!("fake:///{name}").into();
        object["status"]["nodeInfo"]["machineID"] = format!("{place:032x}").into();
        object["status"]["addresses"][0]["address"] = format!("10.0.0.{}", place + 10).into();
        self.api.renew(name, SystemClock.now());
        self.api.put(object);
        self.alive.send_modify(|alive| alive.push(name.to_owned()));
    }

    /// A node dies: its lease stops, and the control plane says that it hears nothing.
    pub(super) fn dies(&self, name: &str) {
        self.alive.send_modify(|alive| alive.retain(|other| other != name));
        self.api.set_ready(name, "Unknown");
    }

    /// A node is there again.
    pub(super) fn returns(&self, name: &str) {
        self.alive.send_modify(|alive| alive.push(name.to_owned()));
        self.api.renew(name, SystemClock.now());
        self.api.set_ready(name, "True");
    }
}

/// A clock for those who want one that can be set, that shows the present.
pub(super) fn present() -> ManualClock {
    ManualClock::at(SystemClock.now())
}

/// Writes a kubeconfig beside a server's data.
pub(super) fn kubeconfig(directory: &Path, url: &str, credential: &Credential) -> PathBuf {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c" } }],
        "clusters": [{ "name": "c", "cluster": {
            "server": url, "certificate-authority-data": STANDARD.encode(&*credential.ca),
        } }],
        "users": [{ "name": "c", "user": {
            "client-certificate-data": STANDARD.encode(&*credential.certificate),
            "client-key-data": STANDARD.encode(&*credential.key),
        } }],
    });
    written(directory, "kubeconfig", &text)
}

/// The same of a talosconfig.
pub(super) fn talosconfig(directory: &Path, endpoints: &[String], credential: &Credential) -> PathBuf {
    let text = json!({ "context": "c", "contexts": { "c": {
        "endpoints": endpoints,
        "ca": STANDARD.encode(&*credential.ca),
        "crt": STANDARD.encode(&*credential.certificate),
        "key": STANDARD.encode(&*credential.key),
    } } });
    written(directory, "talosconfig", &text)
}

fn written(directory: &Path, name: &str, text: &Value) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

/// Runs `tenant configure` with these options.
pub(super) async fn configure(server: &Server, tenant: &str, options: &[&str]) {
    let mut command = Command::new(PROGRAM);
    command.args(["tenant", "configure", tenant]).args(options).arg("--data-dir").arg(server.data_dir());
    let output = command.env_clear().output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What is declared in all of a tenant, as it is shown.
pub(super) async fn shown(server: &Server, tenant: &str) -> Vec<Declared> {
    let mut all = Vec::new();
    for kind in ["machines", "nodegroups"] {
        let list = server.get(&format!("{API}/namespaces/{tenant}/{kind}")).await.expect(200, kind);
        all.extend(declared(&list.body));
    }
    all.extend(declared(&server.get(&format!("{API}/tenants")).await.expect(200, "tenants").body));
    all
}

/// A machine.
pub(super) async fn machine(server: &Server, tenant: &str, name: &str) -> Value {
    server.get(&format!("{API}/namespaces/{tenant}/machines/{name}")).await.expect(200, name).json()
}

/// A tenant.
pub(super) async fn tenant(server: &Server, name: &str) -> Value {
    server.get(&format!("{API}/tenants/{name}")).await.expect(200, name).json()
}

/// Asks until the answer is what is wanted.
pub(super) async fn until<A: std::fmt::Debug, F: Future<Output = A>>(
    what: &str,
    mut ask: impl FnMut() -> F,
    is_it: impl Fn(&A) -> bool,
) -> A {
    let began = tokio::time::Instant::now();
    loop {
        let answer = ask().await;
        if is_it(&answer) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{what} does not come true: {answer:#?}");
        tokio::time::sleep(LOOK).await;
    }
}
