//! What real tofu and terraform wrote, written again by a program that is executed.

use std::collections::BTreeMap;

use rezus_core::runs::executor::Exit;
use rezus_core::runs::stream::Event;
use rezus_testkit::contract::executor::{execute, run, whole_log};
use rezus_testkit::fake::{Script, streams};
use rezus_testkit::recording::Tool;
use serde_json::Value;

use super::fixture::Stage;

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Version { .. } => "version",
        Event::Planned(_) => "planned_change",
        Event::Drift(_) => "resource_drift",
        Event::Summary(_) => "change_summary",
        Event::Started(_) => "apply_start",
        Event::Progress(_) => "apply_progress",
        Event::Completed(_) => "apply_complete",
        Event::Errored(_) => "apply_errored",
        Event::Diagnostic(_) => "diagnostic",
        Event::Other => "other",
    }
}

const KNOWN: [&str; 9] = [
    "version",
    "planned_change",
    "resource_drift",
    "change_summary",
    "apply_start",
    "apply_progress",
    "apply_complete",
    "apply_errored",
    "diagnostic",
];

#[tokio::test]
async fn every_recorded_line_is_an_event_or_text() {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for tool in [Tool::OpenTofu, Tool::Terraform] {
        let stage = Stage::new();
        let mut names: Vec<String> = std::fs::read_dir(streams(tool))
            .unwrap()
            .filter_map(|entry| {
                entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl").map(str::to_owned)
            })
            .collect();
        names.sort();
        assert!(names.len() > 30);
        for (number, name) in names.iter().enumerate() {
            let text = std::fs::read_to_string(streams(tool).join(format!("{name}.jsonl"))).unwrap();
            // Counted by another reader.
            let mut expected: BTreeMap<String, usize> = BTreeMap::new();
            let (mut lines_at_least, mut messages) = (0, Vec::new());
            for line in text.lines() {
                lines_at_least += 1;
                match serde_json::from_str::<Value>(line) {
                    Ok(value) if value["@message"].is_string() => {
                        messages.push(
                            value["@message"].as_str().unwrap().lines().next().unwrap_or("").to_owned(),
                        );
                        if let Some(kind) = value["type"].as_str().filter(|kind| KNOWN.contains(kind)) {
                            *expected.entry(kind.to_owned()).or_default() += 1;
                        }
                    }
                    _ => messages.push(line.to_owned()),
                }
            }
            let id = run(&format!("stream-{number}"));
            let path = streams(tool).join(format!("{name}.jsonl"));
            let told = if text.len() < 40_000 {
                execute(&stage, &id, &Script::recorded(tool, name)).await
            } else {
                let job = rezus_testkit::contract::executor::job(id.clone(), rezus_core::runs::Stage::Plan);
                let job = stage.shell(job, &format!("/bin/cat '{}'", path.display()));
                let mut execution =
                    rezus_core::runs::executor::TofuExecutor::start(stage.process(), job).await.unwrap();
                rezus_testkit::contract::executor::follow(execution.as_mut()).await
            };
            assert_eq!(told.ending.exit, Exit::Code(0), "{name}");
            let mut found: BTreeMap<String, usize> = BTreeMap::new();
            for event in &told.events {
                *found.entry(kind(event).to_owned()).or_default() += 1;
            }
            assert_eq!(found, expected, "{tool:?} {name}");
            let log = whole_log(stage.process(), &id).await;
            assert!(log.lines().count() >= lines_at_least, "{name}");
            let mut rest = log.lines();
            for message in messages {
                assert!(
                    rest.any(|line| line.contains(message.as_str())),
                    "{name}: {message} is not where it was"
                );
            }
            for (kind, count) in found {
                *all.entry(kind).or_default() += count;
            }
        }
    }
    // Every one that is known was recorded.
    assert!(KNOWN.iter().all(|kind| all.contains_key(*kind)), "{all:?}");
}
