//! What users of the real `kubectl` see: `tests/kubectl-acceptance.sh` against the real server, over TLS, as its admin.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rezus_testkit::fixture;
use serde_json::Value;
use tokio::process::Command;

use crate::access::admin;
use crate::real_client::example::example;
use crate::server::{Server, Settings};
use crate::tool::{self, Form, Workspace};
use crate::tools;

/// The oldest minor version that is tried: those before want `/openapi/v2` for `explain` and `apply`.
const OLDEST: u32 = 29;

/// The tenant that is looked at: it has machines that hcloud servers declare, with a role and a group each.
const TENANT: &str = "hcloud-talos";

/// No run takes longer: it takes a minute and a half on an idle machine.
const PATIENCE: Duration = Duration::from_mins(10);

/// A `kubectl` with its minor version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kubectl {
    minor: u32,
    program: PathBuf,
}

/// Returns those that can be tried, oldest first, each version once: the list `KUBECTLS`, separated by colons or blanks,
/// or else those that an installation keeps beside its `kubectl`, or else `kubectl` itself.
async fn installed() -> Vec<Kubectl> {
    let mut found = Vec::new();
    for program in programs() {
        if let Some(minor) = minor(&program).await.filter(|minor| *minor >= OLDEST) {
            found.push(Kubectl { minor, program });
        }
    }
    found.sort();
    found.dedup_by_key(|kubectl| kubectl.minor);
    found
}

fn programs() -> Vec<PathBuf> {
    if let Ok(list) = std::env::var("KUBECTLS") {
        return list.split([':', ' ']).filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    }
    let Some(kubectl) = tools::find("kubectl") else {
        return Vec::new();
    };
    let beside = kubectl.canonicalize().unwrap();
    let versions = (OLDEST..100).map(|minor| beside.with_file_name(format!("kubectl.1.{minor}")));
    let versions: Vec<PathBuf> = versions.filter(|path| path.is_file()).collect();
    if versions.is_empty() { vec![kubectl] } else { versions }
}

/// Asks a `kubectl` for its minor version; a vendor's may end in `+`.
async fn minor(program: &Path) -> Option<u32> {
    let mut command = Command::new(program);
    command.args(["version", "--client", "-o", "json"]).stdin(Stdio::null());
    let output = command.output().await.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let version: Value = serde_json::from_slice(&output.stdout).ok()?;
    version["clientVersion"]["minor"].as_str()?.trim_end_matches('+').parse().ok()
}

/// A server that shows the example as a client applied it, and three states of clouds.
async fn filled(tool: &tool::Tool) -> Server {
    let server = Server::start_with(Settings { tls: true, auth: true, ..Settings::default() }).await;
    let token = admin::token(server.data_dir());
    let mut workspace = Workspace::bare(tool, &server, "example", "");
    workspace.set("TF_HTTP_USERNAME", "rezus");
    workspace.set("TF_HTTP_PASSWORD", &token);
    workspace.write("main.tf", &format!("{}{}", Form::Path.block(server.url(), "demo"), example()));
    workspace.run(&["init", "-input=false"]).await.done();
    workspace.run(&["apply", "-auto-approve", "-input=false"]).await.done();
    let bearer = format!("Bearer {token}");
    for name in [TENANT, "aws-eip-deposed", "proxmox-bpg-talos"] {
        let state = fixture::state(name).body;
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        server.send_with("POST", &format!("/state/{name}"), &headers, state).await.expect(200, name);
    }
    server
}

/// Runs the checks, and returns what they printed, and what they complained of.
async fn checked(server: &Server, kubectl: &Kubectl) -> (String, String) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut command = Command::new("bash");
    command.arg(tests.join("kubectl-acceptance.sh")).stdin(Stdio::null()).kill_on_drop(true);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // A directory of its own, where it keeps what kubectl learns.
    command.current_dir(server.scratch()).env("TMPDIR", server.scratch());
    command.env("SERVER", server.tls_url()).env("CA", server.data_dir().join("tls/ca.pem"));
    command.env("TOKEN", admin::token(server.data_dir())).env("TENANT", TENANT);
    command.env("KUBECTL", &kubectl.program).env("STRICT", "1");
    command.env("TOUCH", format!("bash '{}'", tests.join("kubectl-touch.sh").display()));
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("the checks end").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn the_oldest_and_the_newest_kubectl_pass_all_checks() {
    for program in ["bash", "curl", "jq", "timeout"] {
        if tools::find(program).is_none() {
            return tools::missing(program, "the API with kubectl");
        }
    }
    let Some(tool) = tool::installed().into_iter().next() else {
        return tools::missing("tofu or terraform", "the API with kubectl");
    };
    let mut kubectls = installed().await;
    if kubectls.is_empty() {
        return tools::missing(&format!("kubectl 1.{OLDEST} or later"), "the API with kubectl");
    }
    if !tools::drills_are_full() && kubectls.len() > 2 {
        kubectls.drain(1..kubectls.len() - 1);
    }
    let server = filled(&tool).await;
    for kubectl in kubectls {
        let (printed, errors) = checked(&server, &kubectl).await;
        let last = printed.lines().last().unwrap_or_default();
        let passed = last.strip_suffix(" passed, 0 failed, 0 skipped").and_then(|count| count.parse().ok());
        // Fewer would mean that checks were lost, not that they passed.
        assert!(
            passed.is_some_and(|count: u32| count >= 140),
            "kubectl 1.{}:\n{printed}\n{errors}",
            kubectl.minor
        );
    }
}
