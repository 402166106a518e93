//! Clusters whose credentials are not in the state, and those that get new ones.

use std::time::Duration;

use rezus_core::observed::Failure;
use rezus_testkit::canary::Canary;
use rezus_testkit::fake::Turn;
use rezus_testkit::fake::cluster::{Authority, PeerFault, Validity};
use serde_json::{Value, json};
use tokio::process::Command;

use super::lab::{Access, INTERVAL, Lab, name, state};
use super::{API, facts, live, parts, peers, says};
use crate::server::{PROGRAM, Settings};

/// What is declared of the machines.
async fn specs(lab: &Lab) -> Vec<Value> {
    let list = lab.get("/namespaces/web/machines").await;
    list["items"].as_array().unwrap().iter().map(|machine| machine["spec"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn c14_without_a_credential_all_is_declared_and_nothing_known() {
    let whole = Lab::web(&["a", "b"], facts::nodes(&["a", "b"])).await;
    let declared: Vec<Value> = specs(&whole).await;
    for access in [Access::Withheld, Access::None] {
        let lab = Lab::new();
        lab.tells("web", facts::nodes(&["a", "b"]));
        lab.push("web", &state(1, &[("a", "worker"), ("b", "worker")], access)).await;
        lab.pass(INTERVAL).await;
        let tenant = lab.tenant().await;
        for kind in ["KubernetesReachable", "TalosReachable"] {
            assert_eq!(says(&tenant, kind), ("Unknown", "CredentialMissing"), "{access:?}: {tenant:#}");
        }
        assert_eq!(specs(&lab).await, declared, "{access:?}");
        assert_eq!(says(&lab.machine("a").await, "Ready"), ("Unknown", "NotObserved"), "{access:?}");
        assert_eq!(lab.kubernetes.turns(&name("web")), 0, "{access:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c14_a_file_may_hold_what_the_state_does_not() {
    let lab = Lab::new();
    lab.tells("web", facts::nodes(&["a"]));
    lab.push("web", &state(1, &[("a", "worker")], Access::Withheld)).await;
    lab.pass(INTERVAL).await;
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("Unknown", "NotObserved"));
    let directory = tempfile::TempDir::new().unwrap();
    let admin = Authority::new("kubernetes").credential("system:masters", "admin", Validity::ALWAYS);
    let path = live::kubeconfig(directory.path(), "https://192.0.2.10:6443", &admin);
    let change = json!({ "kubeconfigFile": path });
    let target = "/rezus/v1/tenants/web";
    lab.plane.send("PATCH", target, change.to_string()).await.expect(200, "PATCH");
    lab.pass(INTERVAL).await;
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn c13_a_new_version_s_certificate_is_used_within_one_cycle_however_long_nobody_was_asked() {
    let lab = Lab::new();
    let refused = Failure::CredentialExpired { detail: "since yesterday".to_owned() };
    lab.kubernetes.set(&name("web"), Turn::Fails(refused));
    let old = state(1, &[("a", "worker")], Access::Kubernetes);
    lab.push("web", &old).await;
    lab.pass(Duration::from_hours(3)).await;
    assert_eq!(says(&lab.tenant().await, "KubernetesReachable"), ("False", "CredentialExpired"));
    // No storm: one turn in ten minutes.
    let turns = lab.kubernetes.turns(&name("web"));
    assert!(turns <= 24, "{turns}");
    let mut new: Value = serde_json::from_str(&old).unwrap();
    new["serial"] = 2.into();
    let authority = Authority::new("kubernetes");
    let renewed = parts(&authority.credential("system:masters", "admin", Validity::ALWAYS));
    let configuration =
        &mut new["resources"][1]["instances"][0]["attributes"]["kubernetes_client_configuration"];
    assert!(configuration["client_certificate"].is_string());
    configuration["client_certificate"] = renewed["client_certificate"].clone();
    configuration["client_key"] = renewed["client_key"].clone();
    lab.push("web", &new.to_string()).await;
    // Nobody tells that it is another one: whoever waits looks.
    lab.kubernetes.set_quietly(&name("web"), Turn::Tells(Box::new(facts::nodes(&["a"]))));
    lab.pass(INTERVAL).await;
    assert_eq!(lab.kubernetes.turns(&name("web")), turns + 1);
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_state_that_would_have_harmed_whoever_uses_it_is_one_warning() {
    let lab = Lab::new();
    let mut poisoned: Value =
        serde_json::from_str(&state(1, &[("a", "worker")], Access::Kubernetes)).unwrap();
    let configuration =
        &mut poisoned["resources"][1]["instances"][0]["attributes"]["kubernetes_client_configuration"];
    configuration["host"] = "http://169.254.169.254".into();
    lab.push("web", &poisoned.to_string()).await;
    lab.pass(INTERVAL * 10).await;
    assert_eq!(says(&lab.tenant().await, "KubernetesReachable"), ("False", "CredentialRejected"));
    assert_eq!(lab.kubernetes.turns(&name("web")), 0);
    let events = lab.plane.get("/api/v1/events").await.expect(200, "events").items();
    let told = events.iter().filter(|event| event["reason"] == "CredentialRejected");
    let told: Vec<_> = told.map(|event| (&event["type"], event["message"].as_str().unwrap())).collect();
    assert!(matches!(*told, [(kind, message)] if kind == "Warning" && message.contains("host")), "{told:?}");
}

/// A private key is in nothing that is told of a cluster that is read with it, in no log, and in no recording.
#[tokio::test]
async fn the_key_by_which_a_cluster_is_read_is_in_nothing_that_is_told_of_it() {
    let variables = vec![("REZUS_LOG__LEVEL", "trace".to_owned())];
    let server = live::server_with("1s", Settings { variables, ..Settings::default() }).await;
    let kubernetes = live::Kubernetes::start().await;
    kubernetes.join("a");
    let admin = kubernetes.api.credential();
    let key = String::from_utf8(admin.key.to_vec()).unwrap();
    let encoded = parts(&admin)["client_key"].as_str().unwrap().to_owned();
    let canary = Canary::new([key.as_str(), encoded.as_str()]);
    peers::tenant(&server, "web", 1, &kubernetes.api.url(), &admin).await;
    let ask = || live::machine(&server, "web", "a");
    live::until("ready", ask, |machine| says(machine, "Ready") == ("True", "Ready")).await;
    let recording = server.scratch().join("recording");
    let mut command = Command::new(PROGRAM);
    command.args(["record", "web", "--for", "5s", "--output"]).arg(&recording);
    let output = command.arg("--data-dir").arg(server.data_dir()).env_clear().output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recorded = std::fs::read(&recording).unwrap();
    assert!(recorded.windows(8).any(|it| it == b"uid-of-a"), "{}", String::from_utf8_lossy(&recorded));
    let mut told = vec![("record", recorded), ("the command", [output.stdout, output.stderr].concat())];
    let machines = format!("{API}/namespaces/web/machines");
    let tenants = format!("{API}/tenants");
    for target in ["/metrics", "/api/v1/namespaces/web/events", "/rezus/v1/tenants/web", &machines, &tenants]
    {
        told.push((target, server.get(target).await.expect(200, target).body.to_vec()));
    }
    told.push(("the log", server.log().into_bytes()));
    for (what, bytes) in told {
        let leaks = canary.leaks(&bytes);
        assert!(!bytes.is_empty() && leaks.is_empty(), "{what}: {leaks:?}");
    }
    // What was recorded can be shown again without the cluster.
    kubernetes.api.set_fault(Some(PeerFault::NotAccepting));
    live::configure(&server, "web", &["--recording", recording.to_str().unwrap()]).await;
    let ask = || live::tenant(&server, "web");
    live::until("replayed", ask, |it| says(it, "KubernetesReachable") == ("True", "Answers")).await;
}

#[tokio::test]
async fn c13_an_expired_certificate_is_told_and_never_shown_to_anybody() {
    let server = live::server("1s").await;
    let kubernetes = live::Kubernetes::start().await;
    kubernetes.join("a");
    let authority = kubernetes.api.authority();
    let expired = authority.credential("system:masters", "admin", Validity::PAST);
    peers::tenant(&server, "web", 1, &kubernetes.api.url(), &expired).await;
    let ask = || live::tenant(&server, "web");
    let wanted = ("False", "CredentialExpired");
    let tenant = live::until("expired", ask, |it| says(it, "KubernetesReachable") == wanted).await;
    assert_eq!(says(&tenant, "CredentialsCurrent"), wanted);
    assert_eq!(kubernetes.api.asked().values().sum::<usize>(), 0);
    peers::tenant(&server, "web", 2, &kubernetes.api.url(), &kubernetes.api.credential()).await;
    let ask = || live::machine(&server, "web", "a");
    live::until("renewed", ask, |machine| says(machine, "Ready") == ("True", "Ready")).await;
}
