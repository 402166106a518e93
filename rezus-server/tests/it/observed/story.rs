//! The life of a small cluster, from its first apply: what is declared stays as it is, whatever happens to it.

use std::time::Duration;

use rezus_core::observed::Credential;
use rezus_testkit::fake::cluster::talos::{Cluster, FakeTalos};
use rezus_testkit::fake::cluster::{PeerFault, Validity};
use serde_json::Value;

use super::live::{self, Kubernetes};
use super::{Declared, says};
use crate::server::Server;
use crate::tool::{self, Form, Workspace};
use crate::tools;

/// Two machines that no provider manages.
const MACHINES: &str = r#"
resource "terraform_data" "machine" {
  for_each = { "cp-0" = "controlplane", "worker-1" = "worker" }

  input = {
    rezus_kind  = "Machine"
    name        = each.key
    role        = each.value
    node_group  = each.value
    provider_id = "fake:///${each.key}"
  }
}
"#;

/// The server while the story is told; what is declared is compared each time one looks.
struct Told {
    server: Server,
    declared: Vec<Declared>,
}

impl Told {
    /// Waits until the machines are so: `Ready` and its reason of each.
    async fn machines(&self, what: &str, wanted: &[(&str, &str)]) -> Vec<Value> {
        let ask = || async {
            assert_eq!(live::shown(&self.server, "demo").await, self.declared, "{what}");
            [
                live::machine(&self.server, "demo", "cp-0").await,
                live::machine(&self.server, "demo", "worker-1").await,
            ]
        };
        let are = |machines: &[Value; 2]| {
            machines.iter().zip(wanted).all(|(machine, wanted)| says(machine, "Ready") == *wanted)
        };
        live::until(what, ask, are).await.to_vec()
    }

    async fn tenant(&self) -> Value {
        live::tenant(&self.server, "demo").await
    }

    async fn configure(&self, options: &[&str]) {
        live::configure(&self.server, "demo", options).await;
    }
}

/// Starts a server, and applies the two machines for the tenant `demo`.
async fn applied() -> Option<Told> {
    let Some(tool) = tool::installed().into_iter().next() else {
        tools::missing("tofu or terraform", "the story of a cluster");
        return None;
    };
    let server = live::server("1s").await;
    let workspace = Workspace::bare(&tool, &server, "demo", "");
    workspace.write("main.tf", &format!("{}{MACHINES}", Form::Path.block(server.url(), "demo")));
    workspace.run(&["init", "-input=false"]).await.done();
    workspace.run(&["apply", "-auto-approve", "-input=false"]).await.done();
    let declared = live::shown(&server, "demo").await;
    // Two machines, a group of each role, and the tenant.
    assert_eq!(declared.len(), 5, "{declared:#?}");
    Some(Told { server, declared })
}

#[tokio::test]
async fn a_cluster_comes_up_ails_goes_dark_and_returns_and_what_is_declared_never_moves() {
    let Some(told) = applied().await else { return };
    // Nobody knows how it is reached.
    told.machines("nothing is known", &[("Unknown", "NotObserved"); 2]).await;

    let kubernetes = Kubernetes::start().await;
    let file = live::kubeconfig(told.server.scratch(), &kubernetes.api.url(), &kubernetes.api.credential());
    let file = file.to_str().unwrap();
    told.configure(&["--kubeconfig-file", file, "--allow-destination", "127.0.0.1"]).await;
    told.machines("the cluster is empty", &[("False", "Missing"); 2]).await;

    kubernetes.join("cp-0");
    kubernetes.join("worker-1");
    let cluster = FakeTalos::start(Cluster::new(1, 1), live::present()).await;
    let admin: Credential = cluster.credential("os:admin", Validity::ALWAYS);
    let file = live::talosconfig(told.server.scratch(), &[cluster.endpoint(0)], &admin);
    let file = file.to_str().unwrap();
    let both = ["--allow-destination", "127.0.0.1", "--allow-destination", "127.0.0.2"];
    told.configure(&[["--talosconfig-file", file].as_slice(), &both].concat()).await;
    told.machines("all is well", &[("True", "Ready"); 2]).await;
    let talos = |machines: &[Value]| machines.iter().all(|machine| machine["status"]["talos"].is_object());
    let ask = || told.machines("Talos tells too", &[("True", "Ready"); 2]);
    let machines = live::until("Talos tells too", ask, |machines| talos(machines)).await;
    assert_eq!(machines[0]["status"]["node"]["name"], "cp-0");
    assert_eq!(says(&told.tenant().await, "Ready"), ("True", "Ready"));

    kubernetes.dies("worker-1");
    told.machines("a node dies", &[("True", "Ready"), ("False", "NodeUnreachable")]).await;
    assert_eq!(says(&told.tenant().await, "Ready"), ("False", "MachinesNotReady"));

    kubernetes.api.set_fault(Some(PeerFault::NotAccepting));
    kubernetes.api.settled().await;
    let machines = told.machines("its API is gone", &[("Unknown", "KubernetesUnknown"); 2]).await;
    for machine in &machines {
        assert!(machine["status"].get("node").is_none(), "{machine:#}");
    }
    let control_plane = &machines[0]["status"]["talos"];
    assert_eq!((&control_plane["stage"], control_plane.get("stale")), (&"running".into(), None));
    let tenant = told.tenant().await;
    assert_eq!(says(&tenant, "KubernetesReachable"), ("False", "Unreachable"));
    assert_eq!(says(&tenant, "TalosReachable"), ("True", "Answers"));
    assert!(tenant["status"].get("kubernetes").is_none(), "{tenant:#}");

    // Nobody tells anything any more.
    cluster.change(|cluster| cluster.machines[0].delay = Duration::from_hours(1));
    let machines =
        told.machines("all is dark", &[("Unknown", "Stale"), ("Unknown", "KubernetesUnknown")]).await;
    assert!(machines[0]["status"]["observedAt"].is_string(), "{:#}", machines[0]);

    kubernetes.returns("worker-1");
    kubernetes.api.set_fault(None);
    cluster.change(|cluster| cluster.machines[0].delay = Duration::ZERO);
    told.machines("all is well again", &[("True", "Ready"); 2]).await;
}
