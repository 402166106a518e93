//! Real OpenTofu and Terraform, run in a directory of their own against a server under test.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::server::Server;
use crate::tools;

/// The clients that are tried where they are on the path.
const NAMES: [&str; 2] = ["tofu", "terraform"];

/// No command takes longer, the server's restarts and the client's retries included.
const PATIENCE: Duration = Duration::from_mins(3);

/// A client that is installed.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    program: PathBuf,
}

/// Returns the clients that are on the path.
pub(crate) fn installed() -> Vec<Tool> {
    NAMES.into_iter().filter_map(|name| Some(Tool { name, program: tools::find(name)? })).collect()
}

/// Returns the names of the others.
pub(crate) fn missing() -> Vec<&'static str> {
    let installed = installed();
    NAMES.into_iter().filter(|name| !installed.iter().any(|tool| tool.name == *name)).collect()
}

/// How a configuration names its tenant, and which methods it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `/state/TENANT`.
    Path,
    /// `/state?ID=TENANT`.
    Query,
    /// `/state/TENANT` with PUT, and `/state/TENANT/lock` with POST and DELETE.
    Verbs,
}

impl Form {
    /// Returns the backend block of a tenant.
    pub(crate) fn block(self, url: &str, tenant: &str) -> String {
        let (state, lock, methods) = match self {
            Self::Path => (format!("{url}/state/{tenant}"), format!("{url}/state/{tenant}"), ""),
            Self::Query => (format!("{url}/state?ID={tenant}"), format!("{url}/state?ID={tenant}"), ""),
            Self::Verbs => (
                format!("{url}/state/{tenant}"),
                format!("{url}/state/{tenant}/lock"),
                "update_method = \"PUT\"\n    lock_method = \"POST\"\n    unlock_method = \"DELETE\"",
            ),
        };
        format!(
            "terraform {{
  backend \"http\" {{
    address = \"{state}\"
    lock_address = \"{lock}\"
    unlock_address = \"{lock}\"
    retry_wait_min = 1
    {methods}
  }}
}}
"
        )
    }
}

/// Builtin resources only. `slow` says in the pipe `started` that it is being made, and is made once `go` is written.
const RESOURCES: &str = r#"
variable "value" {
  default = "one"
}

variable "slow" {
  default = false
}

resource "terraform_data" "one" {
  input = var.value
}

resource "terraform_data" "two" {
  count = 2
  input = count.index
}

resource "terraform_data" "slow" {
  count = var.slow ? 1 : 0
  input = var.value
  provisioner "local-exec" {
    command = "echo started > started && cat go"
  }
}

output "value" {
  value = terraform_data.one.output
}
"#;

/// A directory with a configuration.
#[derive(Debug)]
pub(crate) struct Workspace {
    tool: Tool,
    directory: PathBuf,
    variables: Vec<(&'static str, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    text: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    /// Fails unless the command was done.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.text);
        self
    }

    /// Fails unless the command failed and said this.
    #[track_caller]
    pub(crate) fn failed_with(self, piece: &str) {
        assert_eq!(self.code, Some(1), "{}", self.text);
        // Messages are broken into lines and framed.
        let plain: String = self.text.chars().filter(|c| !matches!(c, '│' | '╷' | '╵')).collect();
        let words: Vec<&str> = plain.split_whitespace().collect();
        assert!(words.join(" ").contains(piece), "{piece} is not in: {}", self.text);
    }
}

impl Workspace {
    /// Makes a directory below the server's own with a configuration, and runs `init` in it.
    pub(crate) async fn new(tool: &Tool, server: &Server, name: &str, backend: &str) -> Self {
        let workspace = Self::bare(tool, server, name, backend);
        workspace.run(&["init", "-input=false"]).await.done();
        workspace
    }

    /// Makes a directory below the server's own with a configuration.
    pub(crate) fn bare(tool: &Tool, server: &Server, name: &str, backend: &str) -> Self {
        let directory = server.scratch().join(format!("{}-{name}", tool.name));
        std::fs::create_dir(&directory).unwrap();
        let workspace = Self { tool: tool.clone(), directory, variables: Vec::new() };
        workspace.write("main.tf", &format!("{backend}{RESOURCES}"));
        let mut pipes = std::process::Command::new("mkfifo");
        pipes.args(["started", "go"]).current_dir(&workspace.directory);
        assert!(pipes.status().unwrap().success());
        workspace
    }

    /// Sets a variable of the environment of all commands from now on.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path(file), text).unwrap();
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory).kill_on_drop(true);
        // No settings of the machine's, no question to the vendor, no advice about the next command, no colours.
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.directory);
        command.env("CHECKPOINT_DISABLE", "1").env("TF_IN_AUTOMATION", "1").env("TF_CLI_ARGS", "-no-color");
        command.envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(&self.tool.program).args(arguments).spawn().unwrap()
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        Self::ended(self.start(arguments)).await
    }

    /// Waits for the end of a command.
    pub(crate) async fn ended(child: Child) -> Ran {
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        Ran::of(output.expect("the command ends").unwrap())
    }

    /// Runs `apply` with this value.
    pub(crate) async fn apply(&self, value: &str) -> Ran {
        self.run(&["apply", "-auto-approve", "-input=false", "-var", &format!("value={value}")]).await
    }

    /// Starts an `apply` that takes until [`Workspace::let_go`], and waits until it is under way.
    pub(crate) async fn apply_slowly(&self, value: &str) -> Child {
        let value = format!("value={value}");
        let child =
            self.start(&["apply", "-auto-approve", "-input=false", "-var", &value, "-var", "slow=true"]);
        self.shell("cat started").await;
        child
    }

    /// Lets that `apply` go on.
    pub(crate) async fn let_go(&self) {
        self.shell("echo go > go").await;
    }

    /// Opening a pipe waits for its other end; in a process of its own that wait can be given up.
    async fn shell(&self, script: &str) {
        let child = self.command(Path::new("/bin/sh")).args(["-c", script]).spawn().unwrap();
        Self::ended(child).await.done();
    }

    /// Returns what the client reads of the state.
    pub(crate) async fn pull(&self) -> Vec<u8> {
        self.run(&["state", "pull"]).await.done().stdout
    }

    /// Writes the current state to a file, changed.
    pub(crate) async fn write_changed(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let mut state: Value = serde_json::from_slice(&self.pull().await).unwrap();
        change(&mut state);
        self.write(file, &state.to_string());
    }
}
