//! The demo shows machines with how they are.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::{PATIENCE, wait_until};
use crate::cli::run;
use crate::server::PROGRAM;

/// The rows below a head that begins so, up to an empty line.
fn rows<'t>(text: &'t str, head: &str) -> Vec<&'t str> {
    let from = text.lines().skip_while(|line| !line.starts_with(head));
    from.take_while(|line| !line.is_empty()).collect()
}

#[tokio::test]
async fn the_demo_shows_which_machines_are_ready_and_how_to_see_some_that_are_not() {
    let directory = tempfile::TempDir::new().unwrap();
    let data_dir = directory.path().join("data").display().to_string();
    let mut command = Command::new(PROGRAM);
    command.args(["demo", "--data-dir", &data_dir, "--plain", "127.0.0.1:0"]);
    // Without a path there is no tool: the state that it left is posted.
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = String::new();
    let told = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            text.push_str(&line);
            text.push('\n');
            if line == "stop with Ctrl-C" {
                return;
            }
        }
    };
    assert!(timeout(PATIENCE, told).await.is_ok(), "{text}");

    let table = rows(&text, "TENANT");
    assert_eq!(table.len(), 7, "{text}");
    assert!(table[0].ends_with("READY   SEEN"), "{text}");
    for row in &table[1..] {
        let cells: Vec<&str> = row.split_whitespace().collect();
        let [.., ready, seen] = cells[..] else { panic!("{row}") };
        assert_eq!(ready, "True", "{row}");
        let seconds = seen.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok());
        assert!(seconds.is_some(), "{row}");
    }
    assert!(text.contains("of a recording"), "{text}");
    let plotted = rows(&text, "node=cp-1 ");
    assert!(plotted.len() == 7 && plotted[5].starts_with("node=edge-oslo "), "{text}");
    assert!(
        plotted[..6]
            .iter()
            .all(|row| row.contains(" cores") && row.contains(['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'])),
        "{text}"
    );

    let tenants = run(&["get", "tenants", "--data-dir", &data_dir]).await.done();
    assert!(tenants.lines().next().unwrap().ends_with("READY   SEEN"), "{tenants}");
    assert!(tenants.contains("6/6"), "{tenants}");
    let printed = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("/{name}.jsonl")));
        line.unwrap_or_else(|| panic!("{name} is not in: {text}")).trim().to_owned()
    };
    assert!(std::path::Path::new(printed("quorum-lost").split_whitespace().nth(5).unwrap()).is_file());
    let switch = printed("half-gone");
    let arguments: Vec<&str> = switch.split_whitespace().skip(1).collect();
    run(&arguments).await.done();
    let tenants = async || Value::from(run(&["get", "tenants", "--data-dir", &data_dir]).await.done());
    wait_until(tenants, |tenants| tenants.as_str().unwrap().contains("3/6")).await;
}
