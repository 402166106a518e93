//! Clusters whose credentials are not in the state, and those that get new ones.

use std::time::Duration;

use rezus_core::observed::Failure;
use rezus_testkit::fake::Turn;
use rezus_testkit::fake::cluster::{Authority, Validity};
use serde_json::{Value, json};

use super::lab::{Access, INTERVAL, Lab, name, state};
use super::{facts, live, parts, peers, says};

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
