//! Encrypted states through the whole server: each recorded envelope has its condition, runs go from one to the next,
//! and what they hold is written nowhere.

use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_testkit::canary::Canary;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::lab::{Lab, why};
use super::scripted::ScriptedTofu;
use super::search::leaks;
use crate::runs::encrypted::{PULLS, step};

/// A variable's value that runs print.
const TOKEN: &str = "token \"of\" \\ a/run+with=%41 & \u{e9}";

/// What a state marks as sensitive, and runs print.
const MARKED: &str = "marked-in-the-state-5d1c07e9";

/// What runs print that is no secret.
const OPEN: &str = "open-words-of-the-program-41f7";

/// Two passphrases of the recordings.
const PASSPHRASES: [&str; 2] = ["passphrase-of-tenant-a-0001", "passphrase-of-tenant-b-0002"];

const STATE: &str = "state in the backend afterwards";

/// What a plan in clear is: a zip archive. A file of it, and its header.
fn zip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    let numbers = [20, 0, 8, 0, 8, 0].into_iter().chain([0; 16]).chain([6, 0, 0, 0]);
    [b"PK\x03\x04", &numbers.collect::<Vec<u8>>()[..], b"tfplan", &encoder.finish().unwrap()].concat()
}

/// A text in each way in which programs write it, one in a line.
fn spelt(secret: &str) -> String {
    let event = json!({
        "@level": "error", "@message": format!("Error: {secret}"), "type": "diagnostic",
        "diagnostic": { "severity": "warning", "summary": secret, "detail": format!("it is {secret}.") },
    });
    let query = percent_encoded(secret);
    let base64 = STANDARD.encode(secret);
    format!("{OPEN}\nit is {secret}\n{event}\nbase64 {base64}\n?password={query}&x=1\n")
}

/// As URLs have it.
fn percent_encoded(text: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encode = |byte: u8| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

fn text<'v>(step: &'v Value, member: &str) -> &'v str {
    step[member].as_str().unwrap()
}

/// The strings that instances of a state have.
fn values(state: &str) -> Vec<String> {
    let state: Value = serde_json::from_str(state).unwrap();
    let instances = state["resources"][0]["instances"].as_array().unwrap();
    let of = |it: &Value| {
        [&it["attributes"]["id"], &it["attributes"]["input"]["value"]]
            .map(|it| it.as_str().unwrap().to_owned())
    };
    instances.iter().flat_map(of).collect()
}

/// A recorded plaintext under another serial, with an output that is marked.
fn marked(plaintext: &str, serial: u64) -> String {
    let mut state: Value = serde_json::from_str(plaintext).unwrap();
    state["serial"] = json!(serial);
    state["outputs"]["token"] = json!({ "value": MARKED, "type": "string", "sensitive": true });
    state.to_string()
}

/// A server with a scripted program, whose temporary files are in a folder of their own.
struct Place {
    lab: Lab,
    tofu: ScriptedTofu,
    temporary: TempDir,
    keys: TempDir,
}

impl Place {
    async fn new() -> Self {
        let (tofu, temporary, keys) = (ScriptedTofu::new(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let token = keys.path().join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let variables = [("TMPDIR", temporary.path().to_str().unwrap()), ("REZUS_LOG__LEVEL", "trace")];
        let (program, source) = (tofu.program(), format!("token=file:{}", token.display()));
        let settings = ["--binary", program.to_str().unwrap(), "--secret-var", &source];
        let lab = Lab::over("envelopes", "# nothing\n", &variables, &settings).await;
        Self { lab, tofu, temporary, keys }
    }

    /// Makes a tenant with the same program.
    async fn tenant(&self, name: &str) {
        self.lab.done(&["tenant", "create", name]).await;
        let (program, dir) = (self.tofu.program(), self.keys.path().join("empty"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("main.tf"), "# nothing\n").unwrap();
        let (program, dir) = (program.to_str().unwrap(), dir.to_str().unwrap());
        self.lab.done(&["tenant", "configure", name, "--dir", dir, "--binary", program]).await;
    }

    /// Gives a tenant the key that a command was recorded with.
    async fn key(&self, tenant: &str, step: &Value) {
        let path = self.keys.path().join(tenant);
        std::fs::write(&path, text(step, "TF_ENCRYPTION")).unwrap();
        let source = format!("TF_ENCRYPTION=file:{}", path.display());
        self.lab.done(&["tenant", "configure", tenant, "--secret-env", &source]).await;
    }

    /// `SpecAvailable` once it is not being found out any more: status, reason, message. And whether the state is
    /// encrypted.
    async fn spec(&self, tenant: &str) -> ([String; 3], bool) {
        let settled = || async {
            let found = self.lab.condition_of(tenant, "SpecAvailable").await?;
            (found["reason"] != "Decrypting").then_some(found)
        };
        let found = self.lab.until("it is found out", settled).await;
        let members = ["status", "reason", "message"];
        let encrypted = self.lab.condition_of(tenant, "StateEncrypted").await;
        let clear = self.lab.condition_of(tenant, "StateUnencrypted").await;
        assert_ne!(encrypted.is_some(), clear.is_some(), "{encrypted:?} {clear:?}");
        (members.map(|member| found[member].as_str().unwrap_or_default().to_owned()), encrypted.is_some())
    }

    async fn is_read(&self, tenant: &str, is_encrypted: bool) {
        let ([status, reason, message], found) = self.spec(tenant).await;
        assert_eq!((status.as_str(), reason.as_str()), ("True", "Projected"), "{message}");
        assert_eq!(found, is_encrypted);
    }

    /// Has a run print secrets, leave a state that was recorded, and not be asked about.
    async fn applies(&self, tenant: &str, secrets: &[&str], state: &str) {
        self.says(secrets, state);
        let ran = self.lab.command(&["run", "apply", tenant, "--auto-approve", "--wait"]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    /// Has what runs do next print secrets, and leave a state.
    fn says(&self, secrets: &[&str], state: &str) {
        self.tofu.says(&secrets.iter().map(|secret| spelt(secret)).collect::<String>());
        self.tofu.leaves(state);
    }

    /// The same, after somebody has seen the plan and `looked` at what lies there meanwhile.
    async fn applies_approved(&self, secrets: &[&str], state: &str, looked: impl AsyncFnOnce(PathBuf)) {
        self.says(secrets, state);
        let run = self.lab.run("apply", &[]).await.run();
        let waits = || async { (why(&self.lab.show(&run).await).0 == "AwaitingApproval").then_some(()) };
        self.lab.until("the plan is made", waits).await;
        looked(self.lab.server.data_dir().join("runs").join(&self.lab.tenant).join(&run)).await;
        self.lab.done(&["run", "approve", &self.lab.tenant, &run]).await;
        let shown = self.lab.ended(&run).await;
        assert_eq!(why(&shown).0, "Applied", "{shown}");
        let log = self.lab.log(&run).await.unwrap();
        assert!(log.matches(OPEN).count() >= 2 * secrets.len() && log.contains("(sensitive value)"), "{log}");
    }

    /// Fails where a secret is in anything that the server or a program has written.
    fn is_clean(&self, canary: &Canary) {
        let found = leaks(canary, &[self.lab.server.data_dir(), self.temporary.path()]);
        assert!(found.is_empty(), "{}", found.join("\n"));
        let log = self.lab.server.log();
        assert!(log.contains("TRACE") || log.contains("DEBUG"), "it is talkative");
        assert_eq!(canary.leaks(log.as_bytes()), [], "the server's log");
    }
}

/// Has the program make plans of these bytes, and tell what they hold as `show -json` does: in clear.
fn plans(tofu: &ScriptedTofu, plan: &[u8]) {
    let resource = json!({ "addr": "terraform_data.m[3]", "resource_type": "terraform_data" });
    let events = [
        json!({ "@level": "info", "@message": "create", "type": "planned_change",
            "change": { "resource": resource, "action": "create" } }),
        json!({ "@level": "info", "@message": "Plan: 1 to add", "type": "change_summary",
            "changes": { "operation": "plan", "add": 1, "change": 0, "remove": 0, "import": 0 } }),
    ];
    let changes = events.map(|event| event.to_string() + "\n").concat();
    let shown = text(&step("show -json of the encrypted plan"), "stdout").to_owned();
    tofu.plans(plan, &changes, &shown);
}

#[tokio::test]
async fn envelopes_are_read_and_nothing_of_them_is_written() {
    let mut place = Place::new().await;
    let prod = place.lab.tenant.clone();
    let pull = step("state pull");
    let rolled = step("state pull with the new key");
    let hidden: Vec<String> = values(text(&rolled, "stdout"));
    assert_eq!(hidden.len(), 12);
    let printed = [TOKEN, MARKED, PASSPHRASES[0], PASSPHRASES[1]];
    let canary = Canary::new(hidden.iter().map(String::as_str).chain(printed));

    // Pulls that were recorded, each of a tenant of its own.
    for (number, (name, status, reason, message)) in PULLS.into_iter().enumerate() {
        let (recorded, tenant) = (step(name), format!("pull-{number}"));
        place.tenant(&tenant).await;
        if recorded["TF_ENCRYPTION"].is_string() {
            place.key(&tenant, &recorded).await;
        }
        place.tofu.pulls_as(&recorded);
        let envelope = text(&recorded, STATE).to_owned();
        place.lab.send("POST", &format!("/state/{tenant}"), envelope).await.expect(200, name);
        let (found, is_encrypted) = place.spec(&tenant).await;
        assert_eq!((found[0].as_str(), found[1].as_str()), (status, reason), "{name}: {found:?}");
        assert!(found[2].contains(message) && is_encrypted, "{name}: {found:?}");
    }

    // An apply that asks nobody, its plan in clear.
    let change = step("apply with fallback and a change");
    let clear = zip(text(&pull, "stdout").as_bytes());
    plans(&place.tofu, &clear);
    place.key(&prod, &change).await;
    let state = text(&change, STATE);
    place.tofu.pulls(state, text(&change, "TF_ENCRYPTION"), 0, &marked(text(&pull, "stdout"), 3), "");
    place.applies(&prod, &[TOKEN, PASSPHRASES[0]], state).await;
    place.is_read(&prod, true).await;

    // One that waits, its plan encrypted.
    let of_plan = step("apply of the encrypted plan");
    plans(&place.tofu, text(&change, STATE).as_bytes());
    place.key(&prod, &of_plan).await;
    let state = text(&of_plan, STATE);
    place.tofu.pulls(state, text(&of_plan, "TF_ENCRYPTION"), 0, &marked(text(&pull, "stdout"), 4), "");
    let secrets = [TOKEN, MARKED, PASSPHRASES[0]];
    let kept = async |folder: PathBuf| {
        assert!(folder.join("plan").exists());
        place.is_clean(&canary);
    };
    place.applies_approved(&secrets, state, kept).await;
    place.is_read(&prod, true).await;

    // One that waits, its plan in clear, and another key from then on.
    let rollover = step("apply, key rollover a to b");
    plans(&place.tofu, &clear);
    place.key(&prod, &rollover).await;
    let state = text(&rollover, STATE).to_owned();
    place.tofu.pulls(&state, text(&rollover, "TF_ENCRYPTION"), 0, text(&rolled, "stdout"), "");
    let gone = async |folder: PathBuf| {
        assert!(folder.join("log").exists() && !folder.join("plan").exists());
        place.is_clean(&canary);
    };
    place.applies_approved(&printed, &state, gone).await;
    place.is_read(&prod, true).await;

    // What the server has in memory is gone with it; then the old key alone reads nothing.
    assert!(place.lab.server.terminate().await.success());
    place.is_clean(&canary);
    let old = step("state pull with the old key only");
    place.tofu.pulls_as(&old);
    place.tofu.pulls_as(&rolled);
    place.lab.server.start_again().await;
    place.key(&prod, &old).await;
    let (found, _) = place.spec(&prod).await;
    assert_eq!(found[1], "DecryptFailed", "{found:?}");
    place.key(&prod, &rolled).await;
    place.is_read(&prod, true).await;
    place.is_clean(&canary);

    // In clear again, and from clear to encrypted: what was once in clear is there from now on.
    let back = step("apply, encrypted back to plain");
    place.key(&prod, &back).await;
    place.applies(&prod, &[TOKEN, PASSPHRASES[1]], text(&back, STATE)).await;
    place.is_read(&prod, false).await;
    let plain = step("apply, no encryption");
    place.tenant("first").await;
    let state = text(&plain, STATE).to_owned();
    place.lab.send("POST", "/state/first", state).await.expect(200, "a state in clear");
    place.is_read("first", false).await;
    let first = step("apply with fallback: plain to encrypted, nothing else changes");
    place.key("first", &first).await;
    let (state, mut plaintext) =
        (text(&first, STATE), serde_json::from_str::<Value>(text(&plain, STATE)).unwrap());
    plaintext["serial"] = json!(2);
    place.tofu.pulls(state, text(&first, "TF_ENCRYPTION"), 0, &plaintext.to_string(), "");
    place.applies("first", &[PASSPHRASES[0]], state).await;
    place.is_read("first", true).await;
    assert!(place.lab.server.terminate().await.success());
    place.is_clean(&Canary::new(printed));

    // The search sees what is there: values of the state in clear, in the database, and open words of compressed logs.
    let (data, temporary) = (place.lab.server.data_dir(), place.temporary.path());
    let of_state = leaks(&Canary::new([hidden.last().unwrap()]), &[data, temporary]);
    assert!(of_state.iter().any(|it| it.contains("rezus.db: table")), "{of_state:?}");
    let of_logs = leaks(&Canary::new([OPEN]), &[data, temporary]);
    assert!(
        of_logs.iter().filter(|it| it.contains("log.zst: ") && it.contains("Zstd")).count() >= 5,
        "{of_logs:?}"
    );
    assert!(!leaks(&Canary::new([PASSPHRASES[0]]), &[place.tofu.folder()]).is_empty(), "the program said it");
}

#[test]
fn the_search_sees_into_each_kind_of_file() {
    let folder = TempDir::new().unwrap();
    let canary = Canary::new([TOKEN]);
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(inner.join(name), bytes).unwrap();
    let found = || leaks(&canary, &[folder.path()]);
    let many = "nothing of note\n".repeat(2_000);
    put("clean", many.as_bytes());
    assert_eq!(found(), Vec::<String>::new());
    for line in spelt(TOKEN).lines().skip(1) {
        let text = format!("{many}{line}\n{many}");
        put("raw", text.as_bytes());
        put("plan", &zip(text.as_bytes()));
        let frame = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
        let table = [&0x184D_2A5E_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"end"].concat();
        put("log.zst", &[frame(&many), frame(&text), table].concat());
        let database = rusqlite::Connection::open(inner.join("rezus.db")).unwrap();
        database.execute_batch("CREATE TABLE kept (body BLOB)").unwrap();
        database.execute("INSERT INTO kept VALUES (?1)", [frame(&format!("{}{line}", noise()))]).unwrap();
        drop(database);
        let found = found();
        for name in ["a/b/raw: ", "a/b/plan: ", "a/b/log.zst: ", "a/b/rezus.db: table kept: "] {
            assert!(found.iter().any(|it| it.contains(name)), "{line:?} in {name}: {found:?}");
        }
        std::fs::remove_file(inner.join("rezus.db")).unwrap();
    }
}

/// What does not get shorter by compression: longer than a page of a database.
fn noise() -> String {
    let digest = |number: u32| rezus_core::declared::Fingerprint::of(&number.to_le_bytes()).sha256_hex();
    (0..400).map(digest).collect()
}
