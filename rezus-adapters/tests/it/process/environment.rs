//! What a program sees, and what others see of it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use rezus_core::runs::Stage as RunStage;
use rezus_core::runs::executor::{Exit, TofuExecutor as _};
use rezus_testkit::contract::executor::{ExecutorFixture as _, follow, job, next, run, secret, whole_log};

use super::fixture::Stage;

/// What is there of every process: its arguments.
fn all_arguments() -> Vec<u8> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.flat_map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_program_sees_its_own_environment_and_nothing_of_the_servers() {
    let (stage, id) = (Stage::new(), run("environment"));
    // Without the flag that closes it in children, as a careless parent leaves it.
    let inherited = nix::unistd::dup(std::io::stderr()).unwrap();
    let gate = stage.wait("on");
    let lines = format!(
        "/usr/bin/tr '\\0' '\\n' < /proc/$$/environ; echo mask $(umask); pwd; readlink /proc/$$/fd/*; echo ready\n{gate}"
    );
    let mut job = stage.shell(job(id.clone(), RunStage::Apply), &lines);
    // Short ones are not taken out of the log, so that it shows them.
    job.environment = [("TF_HTTP_PASSWORD", "pw"), ("EMPTY", ""), ("TF_INPUT", "no")]
        .map(|(name, value)| (name.to_owned(), secret(value)))
        .into();
    job.environment.insert("TOKEN".to_owned(), secret("a-very-secret-token"));
    job.secrets = vec![secret("another-secret")];
    let mut execution = stage.process().start(job).await.unwrap();
    while !whole_log(stage.process(), &id).await.contains("ready") {
        next(execution.as_mut()).await;
    }
    let arguments = all_arguments();
    for hidden in ["a-very-secret-token", "another-secret"] {
        assert!(!arguments.windows(hidden.len()).any(|it| it == hidden.as_bytes()));
        for file in std::fs::read_dir(stage.run_folder(&id)).unwrap() {
            let path = file.unwrap().path();
            // The program itself has written the token into its log: nobody has said that it is one.
            if path.file_name().unwrap() != "log" {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                assert!(!text.contains(hidden), "{}", path.display());
            }
        }
    }
    stage.open_gate("on").await;
    assert_eq!(follow(execution.as_mut()).await.ending.exit, Exit::Code(0));
    let log = whole_log(stage.process(), &id).await;
    let (environment, rest) = log.split_once("mask ").unwrap();
    let environment: BTreeSet<&str> = environment.lines().collect();
    let expected = [
        "CHECKPOINT_DISABLE=1",
        "EMPTY=",
        "REZUS_RUN=prod/environment",
        "TF_HTTP_PASSWORD=pw",
        "TF_INPUT=no",
        "TF_IN_AUTOMATION=1",
        "TOKEN=a-very-secret-token",
    ];
    assert_eq!(environment, expected.into());
    let rest: Vec<&str> = rest.lines().collect();
    assert_eq!(rest[..2], ["0077", stage.path().join("cwd").to_str().unwrap()]);
    assert_eq!(rest[2], "/dev/null");
    assert!(rest[3].starts_with("pipe:"), "{rest:?}");
    // Standard output and error are one pipe; the script is open too, and nothing of the supervisor's or the server's,
    // not even what whoever started this test has left open.
    let others: Vec<&str> =
        rest[4..].iter().copied().filter(|it| it.starts_with('/') || it.contains(":[")).collect();
    assert_eq!(others.iter().filter(|it| **it == rest[3]).count(), 1, "{rest:?}");
    assert!(others.iter().all(|it| *it == rest[3] || it.contains("/scripts/")), "{rest:?}");
    drop(inherited);
}

#[tokio::test]
async fn nobody_else_reads_a_runs_files() {
    let (stage, id) = (Stage::new(), run("modes"));
    let job = stage.shell(
        job(id.clone(), RunStage::Apply),
        &format!("echo x; echo {{}} > {}", stage.process().plan_path(&id).display()),
    );
    let mut execution = stage.process().start(job).await.unwrap();
    follow(execution.as_mut()).await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let names = |stage: &Stage| {
        let files = std::fs::read_dir(stage.run_folder(&id)).unwrap();
        let mut names: Vec<_> = files.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let folder = stage.run_folder(&id);
    for folder in folder.ancestors().take(3) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    assert_eq!(names(&stage), ["apply.ending", "apply.events", "apply.process", "log", "plan"]);
    for name in names(&stage) {
        assert_eq!(mode(&folder.join(&name)), 0o600, "{name}");
    }
    stage.process().seal(&id).await.unwrap();
    assert_eq!(names(&stage), ["apply.ending", "log.zst"]);
    assert_eq!(mode(&folder.join("log.zst")), 0o600);
    stage.process().forget(&id).await.unwrap();
    assert!(!folder.exists());
}
