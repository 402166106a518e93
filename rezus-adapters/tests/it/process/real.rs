//! The real program, in place of those that only play it.

use std::io::Write as _;
use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::runs::Stage as RunStage;
use rezus_core::runs::executor::{
    Configuration, Ending, Exit, Happening, Job, Query, RunId, Stopped, TofuExecutor as _, Tool,
};
use rezus_core::runs::stream::Event;
use rezus_testkit::contract::executor::{follow, job, next, run, whole_log};

use super::fixture::Stage;

/// The program on the path. Where there is none that is said past the capture of tests' output, and in CI it is a
/// failure.
async fn tool(stage: &Stage) -> Option<Tool> {
    let found = stage.process().tool(None).await;
    if let Err(error) = &found {
        drop(writeln!(std::io::stderr(), "NOT TRIED: the executor with a real program: {error}"));
        assert!(std::env::var("CI").as_deref() != Ok("true"), "neither tofu nor terraform is on the path");
    }
    found.ok()
}

const MAIN: &str = "variable \"n\" { type = number }
resource \"terraform_data\" \"fast\" { input = var.n }
resource \"terraform_data\" \"slow\" {
  input = terraform_data.fast.id
  provisioner \"local-exec\" { command = \"echo begun; sleep 1000\" }
}
";

async fn prepared(stage: &Stage, id: &RunId, tool: &Tool, run_stage: RunStage) -> Job {
    let source = stage.path().join("source");
    std::fs::create_dir_all(&source).unwrap();
    std::fs::write(source.join("main.tf"), MAIN).unwrap();
    let variables = ("rezus.auto.tfvars.json".to_owned(), "{\"n\": 7}".to_owned());
    let tenant = TenantName::parse("prod").unwrap();
    let configuration = Configuration::Directory(source);
    let prepared = stage.process().prepare(&tenant, configuration, vec![variables]).await.unwrap();
    Job { tool: tool.clone(), work_dir: prepared.work_dir, ..job(id.clone(), run_stage) }
}

fn steps(steps: &[&[&str]]) -> Vec<Vec<String>> {
    steps.iter().map(|step| step.iter().map(|word| (*word).to_owned()).collect()).collect()
}

#[tokio::test]
async fn a_real_apply_is_planned_shown_interrupted_and_has_saved() {
    let (stage, id) = (Stage::new(), run("real"));
    let Some(tool) = tool(&stage).await else {
        return;
    };
    let plan = stage.process().plan_path(&id).display().to_string();
    let mut planning = prepared(&stage, &id, &tool, RunStage::Plan).await;
    let out = format!("-out={plan}");
    planning.steps = steps(&[&["init", "-input=false"], &["plan", "-json", "-detailed-exitcode", &out]]);
    let work_dir = planning.work_dir.clone();
    let mut execution = stage.process().start(planning).await.unwrap();
    let told = follow(execution.as_mut()).await;
    let log = whole_log(stage.process(), &id).await;
    assert_eq!(told.ending, Ending { exit: Exit::Code(2), step: 1, stopped: None, killed: false }, "{log}");
    let planned = told.events.iter().filter(|event| matches!(event, Event::Planned(_))).count();
    assert_eq!(planned, 2, "{log}");

    let query = Query {
        tool: tool.clone(),
        work_dir: work_dir.clone(),
        arguments: vec!["show".to_owned(), "-json".to_owned(), plan.clone()],
        environment: std::collections::BTreeMap::new(),
        timeout: Duration::from_mins(1),
        limit: 1 << 20,
    };
    let answer = stage.process().query(query).await.unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!((answer.code, &shown["variables"]["n"]["value"]), (Some(0), &7.into()));

    let mut applying = prepared(&stage, &id, &tool, RunStage::Apply).await;
    assert_eq!(applying.work_dir, work_dir);
    applying.steps = steps(&[&["apply", "-json", "-input=false", &plan]]);
    let mut execution = stage.process().start(applying).await.unwrap();
    let mut events = Vec::new();
    while !whole_log(stage.process(), &id).await.contains("begun") {
        if let Happening::Event(event) = next(execution.as_mut()).await {
            events.push(event);
        }
    }
    execution.interrupt();
    let told = follow(execution.as_mut()).await;
    events.extend(told.events);
    let ending = told.ending;
    let log = whole_log(stage.process(), &id).await;
    let expected = Ending { exit: Exit::Code(1), step: 0, stopped: Some(Stopped::Asked), killed: false };
    assert_eq!(ending, expected, "{log}");
    let state = std::fs::read_to_string(work_dir.join("terraform.tfstate")).unwrap();
    let created = events.into_iter().find_map(|event| match event {
        Event::Completed(hook) => hook.id,
        _ => None,
    });
    assert!(state.contains(&created.unwrap()), "{log}");
}

#[tokio::test]
async fn programs_run_as_somebody_else_who_sees_nothing_of_the_servers() {
    if !nix::unistd::geteuid().is_root() {
        drop(writeln!(
            std::io::stderr(),
            "NOT TRIED: programs that run as another user: only root can do that"
        ));
        return;
    }
    let (stage, id) = (Stage::new(), run("somebody"));
    let open = |name: &str| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        let folder = stage.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(folder, mode).unwrap();
    };
    open("");
    open("work");
    let executor = stage.running_as(65_534, 65_533);
    let source = stage.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("main.tf"), "").unwrap();
    std::fs::write(source.join("run.sh"), "").unwrap();
    let script = "echo $(id -u) $(id -g) $(id -G); echo x > made-here; echo x > \"$1\"; ls \"$2\" 2>/dev/null || echo hidden";
    super::fixture::write_script(&source.join("run.sh"), script);
    let tenant = TenantName::parse("prod").unwrap();
    let prepared = executor.prepare(&tenant, Configuration::Directory(source), Vec::new()).await.unwrap();
    let mut job = job(id.clone(), RunStage::Plan);
    job.tool.path = prepared.work_dir.join("run.sh");
    job.work_dir = prepared.work_dir.clone();
    let plan = executor.plan_path(&id);
    job.steps = steps(&[&[plan.to_str().unwrap(), stage.path().join("runs").to_str().unwrap()]]);
    let mut execution = executor.start(job).await.unwrap();
    assert_eq!(follow(execution.as_mut()).await.ending.exit, Exit::Code(0));
    assert_eq!(whole_log(&executor, &id).await, "65534 65533 65533\nhidden\n");
    assert!(prepared.work_dir.join("made-here").exists() && plan.exists());
    executor.forget(&id).await.unwrap();
    assert!(!plan.exists());
}
