//! A real server, and what it is told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{GroupVersionKind, Object, Request};
use kube::{Api, Client};
use rezus_core::client::{MachineSpec, MachineStatus};
use rezus_server::config::Config;
use rezus_server::serve::Running;
use serde_json::{Value, json};
use tempfile::TempDir;

/// No wait in these tests is longer: what takes more has failed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A machine, as the documentation says that clients have it.
pub(crate) type Machine = Object<MachineSpec, MachineStatus>;

/// What `kube` has to know of the kind.
pub(crate) fn kind() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("rezuscloud.io", "v1alpha1", "Machine"),
        "machines",
    )
}

/// A server in this process, on loopback, with a TLS listener, that lets nobody in without a token.
pub(crate) struct Server {
    running: Option<Running>,
    config: Config,
    client: Client,
    directory: TempDir,
}

impl Server {
    /// Starts a server over a new data directory.
    pub(crate) async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let mut config = Config::default();
        config.server.data_dir = directory.path().join("data");
        config.server.plain.set_port(0);
        config.server.tls.set_port(0);
        let running = Running::start(&config).await.unwrap();
        // Where it is when it is started again.
        config.server.plain = address(running.url());
        config.server.tls = address(&running.tls_url().unwrap());
        let kubeconfig = Kubeconfig::read_from(directory.path().join("data/admin.kubeconfig")).unwrap();
        let client =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(client).unwrap();
        Self { running: Some(running), config, client, directory }
    }

    /// A client that is the server's admin.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The machines of all tenants.
    pub(crate) fn machines(&self) -> Api<Machine> {
        Api::all_with(self.client(), &kind())
    }

    /// The file that says where the server is, and has its admin's token.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("data/admin.kubeconfig")
    }

    /// Ends the server, and starts it at the same addresses over the same data.
    pub(crate) async fn restart(&mut self) {
        let ended = tokio::time::timeout(PATIENCE, self.running.take().unwrap().end());
        ended.await.expect("the server ends");
        self.running = Some(Running::start(&self.config).await.unwrap());
    }

    /// Writes a tenant's state.
    pub(crate) async fn post(&self, tenant: &str, state: Vec<u8>) {
        let post = Request::new(format!("/state/{tenant}")).create(&PostParams::default(), state).unwrap();
        // The first connection after a restart may be one from before.
        let mut tries = 0;
        while let Err(error) = self.client.request_text(post.clone()).await {
            tries += 1;
            assert!(matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_)), "{error:?}");
            assert!(tries < 10, "{error:?}");
        }
    }

    /// Deletes a tenant's state.
    pub(crate) async fn delete(&self, tenant: &str) {
        let delete = Request::new("/state").delete(tenant, &DeleteParams::default()).unwrap();
        self.client.request_text(delete).await.unwrap();
    }
}

fn address(url: &str) -> SocketAddr {
    url.rsplit('/').next().unwrap().parse().unwrap()
}

/// A state of machines in this order: name, role, zone.
pub(crate) fn state(serial: u64, machines: &[(&str, &str, &str)]) -> Vec<u8> {
    let instances: Vec<Value> = machines.iter().map(|machine| instance(*machine)).collect();
    let resource = json!({
        "mode": "managed",
        "type": "terraform_data",
        "name": "edge",
        "provider": "provider[\"terraform.io/builtin/terraform\"]",
        "instances": instances,
    });
    let state = json!({
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": "8c3d1c1e-3f0a-4b52-9f5e-0f6f1a2b3c4d",
        "outputs": {},
        "resources": [resource],
        "check_results": null,
    });
    serde_json::to_vec(&state).unwrap()
}

fn instance((name, role, zone): (&str, &str, &str)) -> Value {
    let value = json!({
        "rezus_kind": "Machine",
        "name": name,
        "role": role,
        "zone": zone,
        "internal_ips": ["10.0.0.1"],
        "cpus": 4,
    });
    json!({
        "index_key": name,
        "schema_version": 0,
        "attributes": {
            "id": format!("id-{name}"),
            "input": { "value": value, "type": ["object", {}] },
            "output": { "value": value, "type": ["object", {}] },
            "triggers_replace": null,
        },
        "sensitive_attributes": [],
    })
}
