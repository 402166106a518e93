//! The example `watch_machines`, run as its users run it.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::server::{PATIENCE, Server, state};

/// The program under way.
#[derive(Debug)]
struct Program {
    #[expect(dead_code, reason = "it is ended with this")]
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watch_machines"));
        command.args(arguments).env_clear().env("KUBECONFIG", server.kubeconfig());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Asserts what it prints next.
    async fn prints(&mut self, expected: &[&str]) {
        for line in expected {
            let printed = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let printed = printed.unwrap_or_else(|_| panic!("{line:?} is not printed")).unwrap();
            assert_eq!(printed.as_deref(), Some(*line));
        }
    }
}

#[tokio::test]
async fn the_example_prints_what_changes_over_a_restart() {
    let mut server = Server::start().await;
    let (a, b) = (("a", "worker", "one"), ("b", "worker", "one"));
    server.post("web", state(1, &[a, b])).await;
    server.post("other", state(1, &[("x", "worker", "far")])).await;
    let mut programs = [
        Program::start(&server, &["--namespace", "web"]),
        Program::start(&server, &["--namespace", "web", "--streaming"]),
    ];
    let mut of_all = Program::start(&server, &[]);
    of_all.prints(&["added other/x worker far 10.0.0.1"]).await;
    for program in programs.iter_mut().chain([&mut of_all]) {
        program.prints(&["added web/a worker one 10.0.0.1", "added web/b worker one 10.0.0.1"]).await;
    }
    server.post("web", state(2, &[("a", "worker", "two"), b])).await;
    for program in programs.iter_mut().chain([&mut of_all]) {
        program.prints(&["changed web/a worker two 10.0.0.1"]).await;
    }

    server.restart().await;
    server.post("web", state(3, &[("a", "worker", "two"), ("c", "controlplane", "one")])).await;
    for program in programs.iter_mut().chain([&mut of_all]) {
        // What is as it was is not printed again, though all is read anew.
        program.prints(&["removed web/b", "added web/c controlplane one 10.0.0.1"]).await;
    }
    server.post("web", state(4, &[("c", "controlplane", "one")])).await;
    for program in programs.iter_mut().chain([&mut of_all]) {
        program.prints(&["removed web/a"]).await;
    }
}

#[tokio::test]
async fn the_example_says_why_it_cannot_work() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watch_machines"));
    command.env_clear().env("KUBECONFIG", "/nowhere/admin.kubeconfig").stdin(Stdio::null());
    let output = command.output().await.unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: ") && said.contains("/nowhere/admin.kubeconfig"), "{said}");
}
