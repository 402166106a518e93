//! Which program is executed.

use std::path::PathBuf;
use std::process::Command;

use rezus_core::runs::executor::{ExecutorError, TofuExecutor as _, ToolKind};

use super::fixture::{Stage, write_script};

fn program(stage: &Stage, name: &str, lines: &str) -> PathBuf {
    let path = stage.path().join("scripts").join(name);
    write_script(&path, lines);
    path
}

async fn refused(stage: &Stage, path: PathBuf) -> String {
    match stage.process().tool(Some(path)).await {
        Err(ExecutorError::NoTool(reason)) => reason,
        other => unreachable!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_named_program_is_asked_once_who_it_is() {
    let stage = Stage::new();
    let count = stage.path().join("count");
    let lines = format!("echo x >> {}; echo 'OpenTofu v1.12.6'; echo 'on linux_amd64'", count.display());
    let path = program(&stage, "any-name", &lines);
    for _ in 0..3 {
        let tool = stage.process().tool(Some(path.clone())).await.unwrap();
        assert_eq!((tool.kind, tool.version.as_str(), &tool.path), (ToolKind::Tofu, "1.12.6", &path));
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
    // Exchanged, it is asked again.
    let other = program(&stage, "other", "echo 'Terraform v1.11.4'");
    std::fs::rename(other, &path).unwrap();
    let tool = stage.process().tool(Some(path)).await.unwrap();
    assert_eq!((tool.kind, tool.version.as_str()), (ToolKind::Terraform, "1.11.4"));
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_with_the_reason() {
    let stage = Stage::new();
    let none = stage.path().join("none");
    assert_eq!(
        refused(&stage, none.clone()).await,
        format!("{} is no program that can be executed", none.display())
    );
    let old = program(&stage, "old", "echo 'Terraform v1.2.9'");
    assert!(
        refused(&stage, old).await.ends_with("old is terraform 1.2.9: 1.3.0 is the oldest that can be used")
    );
    let old = program(&stage, "old-tofu", "echo 'OpenTofu v1.5.0-beta1'");
    assert!(refused(&stage, old).await.contains("1.6.0 is the oldest"));
    let other = program(&stage, "other", "echo 'GNU tofu 1.0'");
    assert!(refused(&stage, other).await.contains("is neither tofu nor terraform"));
    let broken = stage.path().join("scripts/broken");
    std::fs::copy(program(&stage, "x", ""), &broken).unwrap();
    std::fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    assert!(refused(&stage, broken).await.contains("cannot be executed"));
}

#[tokio::test]
async fn the_program_on_the_path_is_found() {
    let is_there = |name: &str| Command::new(name).arg("version").output().is_ok();
    let stage = Stage::new();
    let found = stage.process().tool(None).await;
    if is_there("tofu") {
        assert_eq!(found.unwrap().kind, ToolKind::Tofu);
    } else if is_there("terraform") {
        assert_eq!(found.unwrap().kind, ToolKind::Terraform);
    } else {
        assert!(matches!(found, Err(ExecutorError::NoTool(reason)) if reason.contains("PATH")));
    }
}
