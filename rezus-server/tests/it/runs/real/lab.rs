//! A server that executes terraform, with one tenant.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::access::admin;
use crate::answer::Answer;
use crate::server::{PROGRAM, Server, Settings};
use crate::tools;

use super::processes::{self, Process};

/// No wait is longer: what takes more has failed.
const PATIENCE: Duration = Duration::from_mins(2);

/// How often it is looked for something that nobody tells.
const LOOK: Duration = Duration::from_millis(10);

/// Machines, by the convention of `examples/backend`.
pub(super) const MACHINES: &str = r#"
variable "workers" {
  type    = number
  default = 2
}

variable "image" {
  default = "v1"
}

resource "terraform_data" "worker" {
  count            = var.workers
  triggers_replace = var.image
  input = {
    rezus_kind = "Machine"
    name       = "w-${count.index}"
    role       = "worker"
    node_group = "pool"
    image      = var.image
  }
}

output "image" {
  value = var.image
}
"#;

/// One resource that is made at once, one that takes as long as it is let, and one after that.
pub(super) const SLOW: &str = r#"
variable "seconds" {
  default = 300
}

resource "terraform_data" "first" {}

resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "sleep ${var.seconds}"
  }
}

resource "terraform_data" "last" {
  depends_on = [terraform_data.slow]
}
"#;

/// What the log says once that takes its time.
pub(super) const UNDER_WAY: &str = "(local-exec): Executing";

/// A server that executes terraform, with one tenant.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) server: Server,
    pub(super) tenant: String,
    token: String,
    directory: PathBuf,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) errors: String,
}

impl Ran {
    /// The run's name, which stands alone in the first line.
    #[track_caller]
    pub(super) fn run(&self) -> String {
        self.out.lines().next().unwrap_or_else(|| panic!("no run: {self:?}")).to_owned()
    }
}

impl Lab {
    /// A server, and a tenant with a configuration. `None`, said loudly, where there is no terraform.
    pub(super) async fn new(name: &str, configuration: &str) -> Option<Self> {
        Self::with(name, configuration, &[], &[]).await
    }

    /// The same with variables of the server's environment, and what `tenant configure` is told.
    pub(super) async fn with(
        name: &str,
        configuration: &str,
        variables: &[(&'static str, &str)],
        settings: &[&str],
    ) -> Option<Self> {
        if tools::find("terraform").is_none() {
            tools::missing("terraform", &format!("runs of the real program: {name}"));
            return None;
        }
        Some(Self::over(name, configuration, variables, settings).await)
    }

    /// The same for a program that the settings name.
    pub(super) async fn over(
        name: &str,
        configuration: &str,
        variables: &[(&'static str, &str)],
        settings: &[&str],
    ) -> Self {
        let mut environment = vec![
            ("PATH", std::env::var("PATH").unwrap()),
            // No settings of the machine's.
            ("HOME", "/nonexistent".to_owned()),
        ];
        environment.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let settings_of_server = Settings { variables: environment, auth: true, ..Settings::default() };
        let server = Server::start_with(settings_of_server).await;
        let directory = server.scratch().join("configuration");
        std::fs::create_dir(&directory).unwrap();
        // Whoever runs the same tests on this machine has other processes.
        let tenant = format!("{name}-{}", std::process::id());
        let token = admin::token(server.data_dir());
        let lab = Self { server, tenant, token, directory };
        lab.done(&["tenant", "create", &lab.tenant]).await;
        lab.write(configuration);
        lab.configure(settings).await;
        lab
    }

    fn write(&self, configuration: &str) {
        std::fs::write(self.directory.join("main.tf"), configuration).unwrap();
    }

    /// Gives the tenant another configuration.
    pub(super) async fn rewrite(&self, configuration: &str) {
        self.write(configuration);
        self.configure(&[]).await;
    }

    /// Uploads the configuration, with these settings.
    pub(super) async fn configure(&self, settings: &[&str]) {
        let directory = self.directory.to_str().unwrap();
        let arguments = [&["tenant", "configure", self.tenant.as_str(), "--dir", directory], settings];
        self.done(&arguments.concat()).await;
    }

    /// Runs a command.
    pub(super) async fn command(&self, arguments: &[&str]) -> Ran {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(arguments).arg("--data-dir").arg(self.server.data_dir());
        command.env_clear().stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{arguments:?} takes too long")).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), errors: text(output.stderr) }
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(super) async fn done(&self, arguments: &[&str]) -> String {
        let ran = self.command(arguments).await;
        assert_eq!(ran.code, 0, "{arguments:?}: {}\n{}", ran.errors, self.server.log());
        ran.out
    }

    /// Has it run something.
    pub(super) async fn run(&self, operation: &str, options: &[&str]) -> Ran {
        self.command(&[&["run", operation, self.tenant.as_str()], options].concat()).await
    }

    /// Has it apply without approval, and waits for the end.
    pub(super) async fn apply(&self, options: &[&str]) -> Value {
        let ran = self.run("apply", &[&["--auto-approve", "--wait"], options].concat()).await;
        self.show(&ran.run()).await
    }

    /// Has it begin an apply, and waits until its log says something.
    pub(super) async fn apply_until(&self, options: &[&str], said: &str) -> String {
        let run = self.run("apply", &[&["--auto-approve"], options].concat()).await.run();
        self.said(&run, said).await;
        run
    }

    /// Waits until a run's log says something.
    pub(super) async fn said(&self, run: &str, what: &str) {
        let has_said = || async { self.log(run).await.filter(|log| log.contains(what)) };
        self.until(&format!("{run} says {what:?}"), has_said).await;
    }

    /// The state of a run.
    pub(super) async fn show(&self, run: &str) -> Value {
        self.kube(&format!("/runs/{run}")).await.expect(200, run).json()
    }

    /// Waits until a run has ended, and returns its state.
    pub(super) async fn ended(&self, run: &str) -> Value {
        let ended = || async {
            let shown = self.show(run).await;
            let phase = shown["status"]["phase"].as_str().unwrap();
            let goes_on = ["Pending", "Planning", "AwaitingApproval", "Applying"].contains(&phase);
            (!goes_on).then_some(shown)
        };
        self.until(&format!("{run} ends"), ended).await
    }

    /// The log of a run, if there is one.
    pub(super) async fn log(&self, run: &str) -> Option<String> {
        let answer = self.kube(&format!("/runs/{run}/log")).await;
        (answer.code == 200).then(|| String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Gets something of the tenant's.
    pub(super) async fn kube(&self, path: &str) -> Answer {
        self.get(&format!("/apis/rezuscloud.io/v1alpha1/namespaces/{}{path}", self.tenant)).await
    }

    /// Returns a condition of the tenant.
    pub(super) async fn condition(&self, kind: &str) -> Option<Value> {
        self.condition_of(&self.tenant, kind).await
    }

    /// Returns a condition of a tenant.
    pub(super) async fn condition_of(&self, tenant: &str, kind: &str) -> Option<Value> {
        let path = format!("/apis/rezuscloud.io/v1alpha1/tenants/{tenant}");
        let shown: Value = self.get(&path).await.expect(200, "the tenant").json();
        let conditions = shown["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["type"] == kind)
    }

    /// Gets something as admin.
    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "").await
    }

    /// Sends a request as admin.
    pub(super) async fn send(&self, method: &str, path: &str, body: impl Into<bytes::Bytes>) -> Answer {
        self.send_as(&self.token, method, path, body).await
    }

    /// Sends a request as whoever has this token.
    pub(super) async fn send_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: impl Into<bytes::Bytes>,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.server.send_with(method, path, &headers, body).await
    }

    /// Returns the locks that are held.
    pub(super) async fn locks(&self) -> Vec<Value> {
        self.get("/rezus/v1/locks").await.expect(200, "locks").items()
    }

    /// Returns the versions of the state, oldest first.
    pub(super) async fn versions(&self) -> Vec<Value> {
        let path = format!("/rezus/v1/tenants/{}/versions?intermediate=true", self.tenant);
        self.get(&path).await.expect(200, "versions").items()
    }

    /// Returns the addresses in the state, sorted.
    pub(super) async fn resources(&self) -> Vec<String> {
        if self.versions().await.is_empty() {
            return Vec::new();
        }
        let path = format!("/rezus/v1/tenants/{}/resources", self.tenant);
        let items = self.get(&path).await.expect(200, "resources").items();
        let mut addresses: Vec<_> =
            items.iter().map(|it| it["address"].as_str().unwrap().to_owned()).collect();
        addresses.sort();
        addresses
    }

    /// Returns a run's processes.
    pub(super) fn processes(&self, run: &str) -> Vec<Process> {
        processes::of_run(&self.tenant, run)
    }

    /// Waits until none of them lives any more.
    pub(super) async fn all_gone(&self, run: &str) {
        self.until("its processes end", || async { self.processes(run).is_empty().then_some(()) }).await;
    }

    /// Waits until something is there.
    pub(super) async fn until<T, F: Future<Output = Option<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> F,
    ) -> T {
        self.until_often(LOOK, what, look).await
    }

    /// The same for what passes quickly.
    pub(super) async fn until_often<T, F: Future<Output = Option<T>>>(
        &self,
        every: Duration,
        what: &str,
        look: impl Fn() -> F,
    ) -> T {
        let found = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(every).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await.ok();
        found.unwrap_or_else(|| panic!("not in time: {what}; the log is:\n{}", self.server.log()))
    }
}

/// Why a run is where it is: phase, reason, message.
pub(super) fn why(run: &Value) -> (&str, &str, &str) {
    let text = |member: &str| run["status"][member].as_str().unwrap_or_default();
    (text("phase"), text("reason"), text("message"))
}
