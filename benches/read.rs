//! One resource instance of a state, read over HTTP on a connection that stays open, against the tools that people use
//! for it now.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::Criterion;
use rezus_benches::{Client, Contest, Outcome, Promise, Row};
use rezus_server::config::Config;
use rezus_server::serve::Running;
use rezus_testkit::strategy::{large_state, terraform_data_state};
use serde_json::Value;
use tokio::runtime::Runtime;

/// How many different instances are read in turn.
const INSTANCES: usize = 50;

/// The rounds of the contest among states, each over all those instances.
const ROUNDS: usize = 31;

/// The rounds against other programs, each for one instance.
const PROGRAM_ROUNDS: usize = 5;

fn main() -> Outcome<()> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let mut config = Config::default();
    config.server.data_dir = directory.path().join("data");
    config.server.plain = ([127, 0, 0, 1], 0).into();
    config.auth.enabled = false;
    let runtime = Runtime::new()?;
    let server = runtime.block_on(Running::start(&config))?;
    let reader = Reader { client: Client::new(server.url())?, runtime: &runtime };

    let instances = rezus_benches::size(20_000, 500);
    let large = reader.state("large", "node", large_state(instances, 1))?;
    let small = reader.state("small", "node", large_state(200, 1))?;
    let tools = reader.state("tools", "value", terraform_data_state(instances, 1))?;

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("read one over HTTP");
    for (name, state) in [("of 50 MB", &large), ("of 500 kB", &small)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| reader.read(state, times).expect("a resource"));
        });
    }
    group.bench_function("livez", |bencher| {
        bencher.iter_custom(|times| reader.live(times).expect("an answer"));
    });
    group.finish();
    criterion.final_summary();
    if rezus_benches::is_listing() {
        return Ok(());
    }

    let mut rows = among_states(&reader, &large, &small)?;
    if rezus_benches::is_smoke() {
        rezus_benches::say("terraform and jq are not run in a smoke run");
    } else {
        rows.extend(against_programs(&reader, &large, &tools, directory.path())?);
    }
    rezus_benches::print("read", &rows);
    runtime.block_on(server.end());
    Ok(())
}

fn among_states(reader: &Reader<'_>, large: &State, small: &State) -> Outcome<Vec<Row>> {
    let batch = u64::try_from(INSTANCES)?;
    let mut contest = Contest::default();
    let of_large = contest.add(|| Ok(reader.read(large, batch)? / u32::try_from(INSTANCES)?));
    let of_small = contest.add(|| Ok(reader.read(small, batch)? / u32::try_from(INSTANCES)?));
    let nothing = contest.add(|| Ok(reader.live(batch)? / u32::try_from(INSTANCES)?));
    contest.run(rezus_benches::size(ROUNDS, 1))?;
    let row = |rival, name, promise| {
        let (time, its) = (contest.median(of_large), contest.median(rival));
        Row::times(&large.work(), time, name, its, contest.ratio(of_large, rival), promise)
    };
    Ok(vec![row(of_small, &small.work(), Promise::AtMost(1.5)), row(nothing, "GET /livez", Promise::Nothing)])
}

/// A program that shows one instance of a state in a file.
struct Program {
    file: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    StateShow,
    Jq,
}

fn against_programs(
    reader: &Reader<'_>,
    large: &State,
    tools: &State,
    directory: &Path,
) -> Outcome<Vec<Row>> {
    let find = |names: &[&str]| names.iter().copied().find_map(rezus_benches::program);
    let found = [(Kind::StateShow, find(&["tofu", "terraform"])), (Kind::Jq, find(&["jq"]))];
    let mut rows = Vec::new();
    for (kind, state, promise) in [
        (Kind::StateShow, tools, Promise::AtLeast(1000.0)),
        (Kind::Jq, large, Promise::AtLeast(300.0)),
        (Kind::Jq, tools, Promise::Nothing),
    ] {
        let file = found.iter().find_map(|(of, file)| file.clone().filter(|_| *of == kind));
        let Some(program) = file.map(|file| Program { file, kind }) else {
            rezus_benches::say(
                "!! SKIPPED: tofu or terraform, or jq, is not installed: its promise was not measured",
            );
            continue;
        };
        let on = directory.join("terraform.tfstate");
        std::fs::write(&on, &state.body)?;
        let mut turn = state.wanted.iter().cycle();
        let mut contest = Contest::default();
        let ours =
            contest.add(|| Ok(reader.read(state, u64::try_from(INSTANCES)?)? / u32::try_from(INSTANCES)?));
        let its = contest.add(|| {
            let wanted = turn.next().ok_or("there are no instances")?;
            rezus_benches::timed(|| program.show(&on, wanted))
        });
        contest.run(PROGRAM_ROUNDS)?;
        let rival =
            format!("{} {}", program.file.file_name().unwrap_or_default().display(), program.kind.word());
        let (time, rivals) = (contest.median(ours), contest.median(its));
        rows.push(Row::times(&state.work(), time, &rival, rivals, contest.ratio(ours, its), promise));
    }
    Ok(rows)
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::StateShow => "state show",
            Self::Jq => "select",
        }
    }
}

impl Program {
    fn show(&self, state: &Path, wanted: &Wanted) -> Outcome<()> {
        let mut command = Command::new(&self.file);
        match self.kind {
            Kind::Jq => command.arg(&wanted.filter).arg(state),
            Kind::StateShow => command
                .args(["state", "show", "-no-color"])
                .arg(format!("-state={}", state.display()))
                .arg(&wanted.address)
                // It looks for a configuration where it is started, and asks its makers for newer releases.
                .current_dir(state.parent().ok_or("no directory")?)
                .env("CHECKPOINT_DISABLE", "1"),
        };
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        let shown = String::from_utf8(output.stdout)?;
        if output.status.success() && shown.contains(&wanted.content) {
            return Ok(());
        }
        Err(format!("{} does not show {}: {}", self.file.display(), wanted.address, output.status).into())
    }
}

/// An instance that is read.
struct Wanted {
    address: String,
    /// How jq finds it.
    filter: String,
    /// Something in it that is in no other.
    content: String,
}

impl Wanted {
    fn new(item: &Value, content: String) -> Self {
        let member = |name: &str, absent: Value| item.get(name).cloned().unwrap_or(absent);
        let (kind, name) = (member("type", Value::Null), member("name", Value::Null));
        let (module, key) = (member("module", "".into()), member("key", Value::Null));
        let filter = format!(
            ".resources[] | select(.type == {kind} and .name == {name} and (.module // \"\") == {module}) \
             | .instances[] | select(.index_key == {key})"
        );
        Self { address: item["address"].as_str().unwrap_or_default().to_owned(), filter, content }
    }
}

/// A state on the server.
struct State {
    tenant: &'static str,
    body: Vec<u8>,
    wanted: Vec<Wanted>,
}

impl State {
    fn work(&self) -> String {
        format!("read one of {} kB", self.body.len() / 1000)
    }
}

/// A client, and what its requests run on.
struct Reader<'a> {
    client: Client,
    runtime: &'a Runtime,
}

impl Reader<'_> {
    /// Writes a state, and chooses instances of it. The one with a number has `content` and that number in it.
    fn state(&self, tenant: &'static str, content: &str, body: Vec<u8>) -> Outcome<State> {
        let client = &self.client;
        self.runtime.block_on(async {
            client.push(tenant, &format!("lock-of-{tenant}"), body.clone()).await?;
            let listing = client.listing(tenant).await?;
            let numbers = rezus_benches::every(listing.len(), INSTANCES).into_iter();
            let wanted = numbers
                .map(|number| Wanted::new(&listing[number], format!("\"{content}-{number}\"")))
                .collect();
            Ok(State { tenant, body, wanted })
        })
    }

    /// Reads instances of a state, one after the other.
    fn read(&self, state: &State, times: u64) -> Outcome<Duration> {
        rezus_benches::timed(|| {
            self.runtime.block_on(async {
                for (_, wanted) in (0..times).zip(state.wanted.iter().cycle()) {
                    std::hint::black_box(self.client.resource(state.tenant, &wanted.address).await?);
                }
                Ok(())
            })
        })
    }

    /// Asks for next to nothing, as often.
    fn live(&self, times: u64) -> Outcome<Duration> {
        rezus_benches::timed(|| {
            self.runtime.block_on(async {
                for _ in 0..times {
                    std::hint::black_box(self.client.send("GET", "/livez", "").await?);
                }
                Ok(())
            })
        })
    }
}
