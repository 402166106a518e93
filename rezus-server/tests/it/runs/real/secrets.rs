//! What is secret and where it must not be.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use rezus_testkit::canary::Canary;

use super::lab::{Lab, why};
use super::search::each_file;

const SECRET: &str = "join-token-9f3c1e7a52";

/// `waits` is made once a file is there; then `fails` echoes the secret as a provider's error would.
fn configuration(folder: &str) -> String {
    format!(
        r#"
variable "join_token" {{
  type      = string
  sensitive = true
}}

resource "terraform_data" "waits" {{
  provisioner "local-exec" {{
    command = "while [ ! -e {folder}/go ]; do sleep 0.05; done"
  }}
}}

resource "terraform_data" "uses" {{
  depends_on = [terraform_data.waits]
  provisioner "local-exec" {{
    command     = "test -n \"$TOKEN\""
    environment = {{ TOKEN = var.join_token }}
  }}
}}

resource "terraform_data" "fails" {{
  depends_on = [terraform_data.uses]
  provisioner "local-exec" {{
    command = "cat {folder}/secret; base64 < {folder}/secret; exit 4"
  }}
}}
"#
    )
}

#[tokio::test]
async fn no_secret_is_anywhere_but_in_the_programs_environment() {
    let directory = tempfile::TempDir::new().unwrap();
    let folder = directory.path().to_str().unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let source = format!("join_token=file:{}", secret.display());
    let settings = ["--secret-var", source.as_str(), "--env", "TF_LOG"];
    let variables = [("TF_LOG", "TRACE")];
    let Some(mut lab) = Lab::with("secrets", &configuration(folder), &variables, &settings).await else {
        return;
    };

    let run = lab.run("apply", &[]).await.run();
    let planning = token(&lab, &run).await;
    let waits = || async { (why(&lab.show(&run).await).0 == "AwaitingApproval").then_some(()) };
    lab.until("the plan is made", waits).await;
    // The tools write the variables' values into a plan, in clear: it is nobody else's, and it does not stay.
    let of_run = lab.server.data_dir().join("runs").join(&lab.tenant).join(&run);
    assert_eq!(std::fs::metadata(&of_run).unwrap().permissions().mode() & 0o777, 0o700);
    let plan = unzipped(&std::fs::read(of_run.join("plan")).unwrap());
    assert!(plan.contains_key("tfplan") && plan.contains_key("tfstate"), "{:?}", plan.keys());
    let token_of_plan = Canary::new([planning.as_str()]);
    for (name, bytes) in &plan {
        assert!(token_of_plan.leaks(bytes).is_empty(), "the plan's {name} has the run's token");
    }

    lab.done(&["run", "approve", &lab.tenant, &run]).await;
    let applying = token(&lab, &run).await;
    assert_ne!(planning, applying, "each stage has a token of its own");
    let canary = Canary::new([SECRET, &planning, &applying]);
    let clean = |bytes: &[u8], what: &str| {
        let leaks = canary.leaks(bytes);
        assert!(leaks.is_empty(), "{what}: {leaks:?}");
    };
    let processes = lab.processes(&run);
    assert!(processes.iter().any(|it| it.environment.contains(SECRET)), "the program has it");
    for process in &processes {
        clean(process.line.as_bytes(), "a command line");
        if process.is_supervisor() {
            clean(process.environment.as_bytes(), "the supervisor's environment");
        }
    }
    let server = super::processes::Process::of(lab.server.pid());
    clean(format!("{}\n{}", server.line, server.environment).as_bytes(), "the server's environment");
    std::fs::write(directory.path().join("go"), "").unwrap();
    let shown = lab.ended(&run).await;
    assert_eq!(why(&shown).0, "Failed", "{shown}");
    assert!(why(&shown).2.contains("local-exec provisioner error"), "{shown}");
    clean(shown.to_string().as_bytes(), "the run");
    let log = lab.log(&run).await.unwrap();
    assert!(log.contains("[TRACE]") && log.contains("[DEBUG] POST http://"), "it was logged in depth");
    assert!(log.contains("Output: (sensitive value)"), "{log}");
    clean(log.as_bytes(), "the log");
    assert!(of_run.join("log.zst").exists() && !of_run.join("plan").exists());

    assert!(lab.server.terminate().await.success());
    clean(lab.server.log().as_bytes(), "the server's log");
    // Compressed files are opened.
    let mut looked_at = 0;
    each_file(lab.server.data_dir(), &mut |path, bytes| {
        clean(bytes, &path.display().to_string());
        looked_at += 1;
    });
    assert!(looked_at > 5, "{looked_at}");
}

/// Waits for the token of a run's program.
async fn token(lab: &Lab, run: &str) -> String {
    let found = || async {
        let processes = lab.processes(run);
        let tool = processes.iter().find(|it| it.is_tool())?;
        tool.variable("TF_HTTP_PASSWORD").map(str::to_owned)
    };
    let token = lab.until("the program runs", found).await;
    assert!(token.starts_with("rezus_"), "a token");
    token
}

/// Returns the files of a zip archive. Source: section 4.3 of its specification (APPNOTE.TXT).
fn unzipped(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let short = |at: usize| usize::from(u16::from_le_bytes(archive[at..at + 2].try_into().unwrap()));
    let long =
        |at: usize| usize::try_from(u32::from_le_bytes(archive[at..at + 4].try_into().unwrap())).unwrap();
    let end = archive.windows(4).rposition(|it| it == b"PK\x05\x06").expect("a zip archive");
    let mut files = BTreeMap::new();
    let mut at = long(end + 16);
    for _ in 0..short(end + 10) {
        let (method, size) = (short(at + 10), long(at + 20));
        let (name, extra, comment, local) = (short(at + 28), short(at + 30), short(at + 32), long(at + 42));
        let begin = local + 30 + short(local + 26) + short(local + 28);
        let raw = &archive[begin..begin + size];
        let mut bytes = Vec::new();
        match method {
            0 => bytes.extend_from_slice(raw),
            8 => drop(flate2::read::DeflateDecoder::new(raw).read_to_end(&mut bytes).unwrap()),
            other => panic!("method {other}"),
        }
        files.insert(String::from_utf8_lossy(&archive[at + 46..at + 46 + name]).into_owned(), bytes);
        at += 46 + name + extra + comment;
    }
    files
}
