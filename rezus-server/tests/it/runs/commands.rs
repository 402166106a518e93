//! Runs from the command line and by the real kubectl, against a plane whose programs are scripts.

use std::process::Stdio;
use std::time::Duration;

use rezus_core::runs::Stage;
use rezus_testkit::fake::Script;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::api::manifest;
use super::lab::{Lab, changes_of, created, plan_of, state_of};
use crate::server::PROGRAM;
use crate::tools;

/// No command takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A plane that listens, as whoever may open its data directory.
struct Listening {
    lab: Lab,
    url: String,
    scratch: TempDir,
}

impl Listening {
    async fn new() -> Self {
        let lab = Lab::new();
        lab.tenant("prod").await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = rezus_server::serve::in_process(lab.plane.plane());
        tokio::spawn(async move { axum::serve(listener, router).await });
        tokio::spawn(lab.plane.plane().catalogue.clone().run());
        Self { lab, url, scratch: TempDir::new().unwrap() }
    }

    /// Runs a command to its end: its exit code, and what it printed.
    async fn ran(&self, program: &str, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", self.scratch.path()).stdin(Stdio::null());
        let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
        let output = output.expect("the command ends").unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    async fn rezus(&self, arguments: &[&str]) -> (i32, String, String) {
        self.ran(PROGRAM, &[arguments, &["--server", &self.url]].concat()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_makes_a_run_waits_for_it_and_ends_as_it_did() {
    let here = Listening::new().await;
    let plan = |script| here.lab.executor.set_script(None, Stage::Plan, script);
    let (code, printed, errors) = here.rezus(&["run", "plan", "prod", "--wait", "--name", "none"]).await;
    assert_eq!((code, printed.as_str()), (0, "none\n"), "{errors}");
    assert!(errors.contains("none: Planned"), "{errors}");
    plan(plan_of(2));
    let (code, printed, errors) = here.rezus(&["run", "plan", "prod", "--wait", "--var", "n=2"]).await;
    assert_eq!(code, 2, "{errors}");
    assert!(printed.starts_with("plan-") && printed.lines().count() == 1, "{printed}");
    let (code, printed, errors) =
        here.rezus(&["run", "apply", "prod", "--wait", "--name", "a", "--reason", "why"]).await;
    assert_eq!((code, printed.as_str()), (2, "a\n"), "{errors}");
    assert!(errors.contains("a: AwaitingApproval"), "{errors}");
    here.lab.executor.set_script(None, Stage::Apply, Script::default());
    let (code, printed, errors) = here.rezus(&["run", "approve", "prod", "a", "--wait"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(printed.starts_with("a: approved"), "{printed}");
    let (code, printed, _) = here.rezus(&["run", "show", "prod", "a"]).await;
    assert!(code == 0 && printed.contains("Phase:          Applied") && printed.contains("why"), "{printed}");
    assert!(printed.contains("Change:         create terraform_data.it[1]\n"), "{printed}");

    plan(Script::lines(["no"]).exit(1));
    let (code, _, errors) =
        here.rezus(&["run", "apply", "prod", "--auto-approve", "--wait", "--name", "f"]).await;
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("f: Failed"), "{errors}");
    let (code, printed, _) = here.rezus(&["run", "logs", "prod", "f"]).await;
    assert_eq!((code, printed.as_str()), (0, "no\n"));
    let (_, printed, _) = here.rezus(&["run", "logs", "-f", "--offset", "1", "prod", "f"]).await;
    assert_eq!(printed, "o\n");
    let (code, printed, _) = here.rezus(&["run", "list", "prod"]).await;
    assert!(code == 0 && printed.lines().count() == 5, "{printed}");
    assert!(printed.contains("+2 ~0 -0"), "{printed}");

    let (code, _, errors) = here.rezus(&["run", "plan", "prod", "--auto-approve"]).await;
    assert!(code == 1 && errors.contains("approval goes with apply or destroy"), "{errors}");
    let (code, _, errors) = here.rezus(&["run", "cancel", "prod", "nobody"]).await;
    assert!(code == 1 && errors.contains("not found"), "{errors}");
    let (code, _, errors) = here.rezus(&["run", "show", "prod", "No"]).await;
    assert!(code == 64 && errors.contains("lower-case"), "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_from_the_command_line() {
    let here = Listening::new().await;
    let script = Script::lines(["one"]).wait("go").say("two\rthree\n").exit(0);
    here.lab.executor.set_script(None, Stage::Plan, script);
    let (_, printed, _) = here.rezus(&["run", "drift", "prod"]).await;
    let run = printed.trim().to_owned();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "logs", "-f", "prod", &run, "--server", &here.url]).stdin(Stdio::null());
    let mut child = command.env_clear().kill_on_drop(true).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut read = vec![0; 4];
    let first = tokio::io::AsyncReadExt::read_exact(&mut out, &mut read);
    tokio::time::timeout(PATIENCE, first).await.expect("it comes at once").unwrap();
    here.lab.executor.open_gate("go");
    let mut rest = Vec::new();
    let whole = tokio::io::AsyncReadExt::read_to_end(&mut out, &mut rest);
    tokio::time::timeout(PATIENCE, whole).await.expect("it ends with the run").unwrap();
    assert_eq!([read, rest].concat(), b"one\ntwo\rthree\n");
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn without_a_server_nobody_executes_runs() {
    let mut server = crate::server::Server::start().await;
    server.send("POST", "/rezus/v1/tenants", r#"{"name":"prod"}"#).await.expect(201, "a tenant");
    server.terminate().await;
    let data = server.data_dir().to_str().unwrap().to_owned();
    for arguments in
        [&["run", "plan", "prod"][..], &["run", "approve", "prod", "r"], &["run", "logs", "-f", "prod", "r"]]
    {
        let ran = crate::cli::run(&[arguments, &["--data-dir", &data]].concat()).await;
        ran.failed(1, "no server runs on");
    }
    let none = crate::cli::run(&["run", "list", "--data-dir", &data]).await.done();
    assert_eq!(none.lines().count(), 1, "{none}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_makes_watches_approves_and_waits_for_runs() {
    let Some(kubectl) = tools::find("kubectl") else {
        return tools::missing("kubectl", "runs by kubectl");
    };
    let kubectl = kubectl.to_str().unwrap();
    let here = Listening::new().await;
    here.lab.executor.set_script(None, Stage::Plan, changes_of(1).wait("planned").exit(2));
    here.lab.hold(Stage::Apply, Script::lines([created(0)]), "applied", 0);
    let file = here.scratch.path().join("run.json");
    let file = file.to_str().unwrap();
    let k = async |arguments: &[&str]| {
        here.ran(kubectl, &[arguments, &["--server", &here.url, "-n", "prod"]].concat()).await
    };
    std::fs::write(file, manifest(json!({ "generateName": "night-" }), json!({ "operation": "apply" })))
        .unwrap();
    let (code, printed, errors) = k(&["create", "-f", file, "-o", "name"]).await;
    assert_eq!(code, 0, "{errors}");
    let run = printed.trim().strip_prefix("run.rezuscloud.io/").unwrap().to_owned();
    assert!(run.starts_with("night-"), "{run}");
    let mut watch = Command::new(kubectl);
    watch.args(["get", "runs", "-w", "--server", &here.url, "-n", "prod"]).env_clear();
    watch.env("HOME", here.scratch.path()).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut watch = watch.spawn().unwrap();
    let mut seen = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(watch.stdout.take().unwrap()));
    let mut until = async |phase: &str| {
        let found = async {
            loop {
                let line = seen.next_line().await.unwrap().expect("kubectl goes on");
                if line.contains(phase) {
                    return line;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("{phase} is printed"))
    };
    until("Planning").await;
    here.lab.executor.open_gate("planned");
    let line = until("AwaitingApproval").await;
    assert!(line.contains("+1 ~0 -0"), "{line}");
    let approve = format!("/apis/rezuscloud.io/v1alpha1/namespaces/prod/runs/{run}/approve");
    let (code, printed, errors) = k(&["create", "--raw", &approve, "-f", "/dev/null"]).await;
    assert!(code == 0 && printed.contains("\"approvedBy\""), "{printed}{errors}");
    until("Applying").await;
    let name = rezus_core::runs::RunName::parse(&run).unwrap();
    let job = here.lab.job(&name, Stage::Apply).await;
    here.lab.lock_as_program(&job, "l").await;
    assert_eq!(here.lab.as_program(&job, "POST", "?ID=l", state_of(1, 1)).await, 200);
    here.lab.executor.open_gate("applied");
    let (code, printed, errors) =
        k(&["wait", "--for=jsonpath={.status.phase}=Applied", &format!("run/{run}"), "--timeout=30s"]).await;
    assert_eq!(code, 0, "{printed}{errors}");
    until("Applied").await;
    let log = format!("/apis/rezuscloud.io/v1alpha1/namespaces/prod/runs/{run}/log");
    let (code, printed, errors) = k(&["get", "--raw", &log]).await;
    assert!(code == 0 && printed.contains("Creation complete"), "{printed}{errors}");

    std::fs::write(file, manifest(json!({ "name": "x" }), json!({ "operation": "plan", "oops": 1 })))
        .unwrap();
    let (code, _, errors) = k(&["create", "-f", file]).await;
    assert!(code == 1 && errors.contains("unknown field \"spec.oops\""), "{errors}");
    let (code, _, _) = k(&["create", "-f", file, "--validate=ignore", "--dry-run=server"]).await;
    assert_eq!(code, 0);
    let (_, printed, _) = k(&["get", "runs", "-o", "wide", "--no-headers"]).await;
    assert_eq!(printed.lines().count(), 1, "{printed}");
    for arguments in [&["delete", "run", &run][..], &["label", "run", &run, "a=b"]] {
        let (code, _, errors) = k(arguments).await;
        assert!(code == 1 && errors.contains("neither changed nor deleted"), "{errors}");
    }
    let (_, printed, _) = k(&["auth", "can-i", "create", "runs"]).await;
    assert_eq!(printed.trim(), "yes");
}
