//! Machines out of a state: all of them, one of them from its spans, and the rules beside languages that do the like.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use cel::{Context, Program};
use criterion::Criterion;
use rezus_benches::{Contest, Outcome, Promise, Row, percentile};
use rezus_core::declared::VersionNumber;
use rezus_core::declared::document::{self, Document};
use rezus_core::declared::index::IndexRow;
use rezus_core::declared::mapping::extract::{Field, extract};
use rezus_core::declared::mapping::{MappingFile, Mappings};
use rezus_core::declared::projection;
use rezus_core::declared::resource::{MachineKey, Projection};
use serde_json::Value;
use serde_json_path::JsonPath;

/// How many machines are read one by one.
const ONE_BY_ONE: usize = 1_000;

/// The rounds of a contest, and how often each contestant runs in one.
const ROUNDS: usize = 3;
const RUNS: usize = 2;

const CEL: &str = "cel, attributes";
const CEL_FIELDS: &str = "cel, the fields alone";
const JSON_PATH: &str = "serde_json_path";

/// What is read of each server, as a mapping.
const SIX_FIELDS: &str = r#"
mapping: hcloud
description: Six fields
sources: ["*/hetznercloud/hcloud"]
types:
  hcloud_server:
    kind: Machine
    fields:
      name: $.name
      providerID: $.id
      role: $.labels.role
      instanceType: $.server_type
      region: $.location
      image: $.image
"#;

/// The same, in the order of [`SixFields`].
const FIELDS: [Field; 6] =
    [Field::Name, Field::ProviderId, Field::Role, Field::InstanceType, Field::Region, Field::Image];
const PATHS: [&str; 6] = ["$.name", "$.id", "$.labels.role", "$.server_type", "$.location", "$.image"];
const EXPRESSION: &str = "[a.name, a.id, a.labels.role, a.server_type, a.location, a.image]";
const EXPRESSION_OF_FIELDS: &str = "[name, id, labels.role, server_type, location, image]";
const VARIABLES: [&str; 6] = ["name", "id", "labels", "server_type", "location", "image"];

type SixFields = [String; 6];

fn main() -> Outcome<()> {
    if let Some((job, file)) = rezus_benches::child_job() {
        return work_as_child(&job, &file);
    }
    let machines = rezus_benches::size(20_000, 200);
    let mappings = Mappings::built_in();
    let body = rezus_benches::machines_state(machines)?;
    let state_rows = rows_of(&mappings, &body)?;
    let projection = project(&mappings, &body, &state_rows);
    check(&projection, machines)?;
    let singles = Singles::new(&projection, &body, &state_rows)?;

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("projection");
    group.sample_size(10);
    group.bench_function("all", |bencher| bencher.iter(|| project(&mappings, &body, &state_rows)));
    group.bench_function("one", |bencher| {
        let mut all = singles.each.iter().cycle();
        bencher.iter(|| {
            all.next().and_then(|(key, fed_by)| projection::project_machine(&mappings, key, fed_by))
        });
    });
    group.finish();
    criterion.final_summary();
    if rezus_benches::is_listing() {
        return Ok(());
    }

    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let mut rows = all_of_them(&body, machines, directory.path())?;
    rows.extend(singles.one_by_one(&mappings, &projection)?);
    rows.extend(beside_languages(rezus_benches::size(20_000, 200), directory.path())?);
    rezus_benches::print("projection", &rows);
    Ok(())
}

fn all_of_them(body: &[u8], machines: usize, directory: &Path) -> Outcome<Vec<Row>> {
    let file = directory.join("machines.json");
    std::fs::write(&file, body)?;
    let mut contest = Contest::default();
    let [project, processor, whole, tree] =
        ["project", "processor", "index and project", "tree"].map(|job| {
            let file = file.clone();
            contest.add(move || Ok(Duration::from_nanos(rezus_benches::ask_child(job, &file)?)))
        });
    contest.run(rezus_benches::size(ROUNDS, 1))?;
    let megabytes = decimal(body.len()) / 1e6;
    let tree_took = contest.median(tree);
    Ok([
        (project, "project", Promise::AtMost(1.0)),
        (processor, "processor time of its first thread: project", Promise::Nothing),
        (whole, "index and project", Promise::Nothing),
    ]
    .into_iter()
    .map(|(contestant, name, promise)| {
        let took = contest.median(contestant).as_secs_f64();
        let rival = ("serde_json Value, no more", format!("{:.2} s", tree_took.as_secs_f64()));
        let work = format!("{name} {machines} machines with joins, {megabytes:.0} MB");
        Row::figures(&work, format!("{took:.3} s"), rival, (took, " s"), promise)
    })
    .collect())
}

/// What a single read has of a machine: its key, and the objects that feed it.
type Single<'a> = (MachineKey, Vec<(IndexRow, &'a [u8])>);

/// Machines by what a single read has of them.
struct Singles<'a> {
    each: Vec<Single<'a>>,
    places: Vec<usize>,
}

impl<'a> Singles<'a> {
    fn new(projection: &Projection, body: &'a [u8], rows: &[IndexRow]) -> Outcome<Self> {
        let by_address: HashMap<_, _> = rows.iter().map(|row| ((&row.address, &row.deposed), row)).collect();
        let places = rezus_benches::every(projection.machines.len(), rezus_benches::size(ONE_BY_ONE, 50));
        let mut each = Vec::new();
        for place in &places {
            let machine = &projection.machines[*place];
            let mut fed_by = Vec::new();
            for (address, deposed) in &machine.fed_by {
                let row = *by_address.get(&(address, deposed)).ok_or("an object that is not there")?;
                fed_by.push((row.clone(), span(body, row)?));
            }
            each.push((machine.key(), fed_by));
        }
        Ok(Self { each, places })
    }

    fn one_by_one(&self, mappings: &Mappings, projection: &Projection) -> Outcome<Vec<Row>> {
        let mut times = Vec::new();
        for ((key, fed_by), place) in self.each.iter().zip(&self.places) {
            let again = || Ok(projection::project_machine(mappings, key, fed_by));
            if again()?.as_ref() != Some(&projection.machines[*place]) {
                return Err(format!("{} is another machine from its spans", key.object_name).into());
            }
            times.push(rezus_benches::timed(again)?);
        }
        let work = format!("project one of them from its spans, {} machines", times.len());
        let row = |name: &str, percent, promise| {
            let millis = percentile(&times, percent).as_secs_f64() * 1e3;
            Row::alone(&format!("{work}, {name}"), format!("{millis:.4} ms"), (millis, " ms"), promise)
        };
        Ok(vec![row("p50", 50, Promise::Nothing), row("p99", 99, Promise::AtMost(1.0))])
    }
}

/// Reads six fields of each server, by our rules and in other languages. Each begins with the state's bytes.
fn beside_languages(servers: usize, directory: &Path) -> Outcome<Vec<Row>> {
    let jobs = ["mapping", "cel", "cel fields", "jsonpath", "tree"];
    let few = rezus_benches::servers_state(100)?;
    let expected = by_job("jsonpath")?(&few)?;
    for job in &jobs[..3] {
        if by_job(job)?(&few)? != expected || expected.len() != 100 {
            return Err(format!("{job} finds something else").into());
        }
    }
    let body = rezus_benches::servers_state(servers)?;
    let file = directory.join("servers.json");
    std::fs::write(&file, &body)?;
    let mut contest = Contest::default();
    let [ours, cel, cel_fields, json_path, tree] = jobs.map(|job| {
        let file = file.clone();
        contest.add(move || Ok(Duration::from_nanos(rezus_benches::ask_child(job, &file)?)))
    });
    contest.run(rezus_benches::size(ROUNDS, 1))?;
    let work = format!("six fields of {servers} servers, {:.0} MB", decimal(body.len()) / 1e6);
    let rivals =
        [(cel, CEL), (cel_fields, CEL_FIELDS), (json_path, JSON_PATH), (tree, "serde_json Value, no more")];
    Ok(rivals
        .into_iter()
        .map(|(rival, name)| {
            let (time, its) = (contest.median(ours), contest.median(rival));
            Row::times(&work, time, name, its, contest.ratio(ours, rival), Promise::Nothing)
        })
        .collect())
}

/// One way to read the fields.
type Reader = Box<dyn Fn(&[u8]) -> Outcome<Vec<SixFields>>>;

/// Returns the way of that name, all of it that is compiled once done.
fn by_job(job: &str) -> Outcome<Reader> {
    Ok(match job {
        "mapping" => {
            let file = MappingFile { name: "hcloud.yaml".to_owned(), text: SIX_FIELDS.to_owned() };
            let mappings = Mappings::compile(&[file]).map_err(|errors| format!("{errors:?}"))?;
            Box::new(move |body| {
                let found = extract(&mappings, body, &rows_of(&mappings, body)?);
                let fields = found.into_iter().map(|mut found| {
                    FIELDS.map(|field| {
                        found.fields.remove(&field).map_or_else(String::new, |found| found.value)
                    })
                });
                Ok(fields.collect())
            })
        }
        "cel" => {
            let program = Program::compile(EXPRESSION)?;
            Box::new(move |body| {
                let base = Context::default();
                each_server(body, |attributes| {
                    let mut context = base.new_inner_scope();
                    context.add_variable_from_value("a", cel::to_value(attributes)?);
                    texts(&program.execute(&context)?)
                })
            })
        }
        "cel fields" => {
            let program = Program::compile(EXPRESSION_OF_FIELDS)?;
            Box::new(move |body| {
                let base = Context::default();
                each_server(body, |attributes| {
                    let mut context = base.new_inner_scope();
                    for name in VARIABLES {
                        context.add_variable_from_value(name, cel::to_value(&attributes[name])?);
                    }
                    texts(&program.execute(&context)?)
                })
            })
        }
        "jsonpath" => {
            let paths = PATHS.into_iter().map(JsonPath::parse).collect::<Result<Vec<_>, _>>()?;
            Box::new(move |body| {
                each_server(body, |attributes| {
                    let found = |at: usize| paths[at].query(attributes).first().and_then(Value::as_str);
                    Ok(std::array::from_fn(|at| found(at).unwrap_or_default().to_owned()))
                })
            })
        }
        _ => return Err(format!("{job} is no job").into()),
    })
}

fn each_server(body: &[u8], read: impl Fn(&Value) -> Outcome<SixFields>) -> Outcome<Vec<SixFields>> {
    let state: Value = serde_json::from_slice(body)?;
    let blocks = state["resources"].as_array().ok_or("no resources")?;
    let instances = blocks.iter().filter_map(|block| block["instances"].as_array()).flatten();
    instances.map(|instance| read(&instance["attributes"])).collect()
}

fn texts(value: &cel::Value) -> Outcome<SixFields> {
    let cel::Value::List(list) = value else {
        return Err("no list".into());
    };
    Ok(std::array::from_fn(|at| match list.get(at) {
        Some(cel::Value::String(text)) => text.to_string(),
        _ => String::new(),
    }))
}

/// Does one job over the state in a file, in a process of its own: the allocator would else make one contestant pay for
/// what another one freed.
fn work_as_child(job: &str, file: &Path) -> Outcome<()> {
    let body = std::fs::read(file)?;
    let mappings = Mappings::built_in();
    match job {
        "project" => {
            let rows = rows_of(&mappings, &body)?;
            answer_time(|| Ok(project(&mappings, &body, &rows)))
        }
        "processor" => {
            let rows = rows_of(&mappings, &body)?;
            let before = rezus_benches::processor_time()?;
            drop(std::hint::black_box(project(&mappings, &body, &rows)));
            let took = rezus_benches::processor_time()?.saturating_sub(before);
            rezus_benches::say(&took.as_nanos().to_string());
            Ok(())
        }
        "index and project" => answer_time(|| Ok(project(&mappings, &body, &rows_of(&mappings, &body)?))),
        "tree" => answer_time(|| Ok(serde_json::from_slice::<Value>(&body)?)),
        _ => {
            let read = by_job(job)?;
            answer_time(|| read(&body))
        }
    }
}

/// Says how many nanoseconds a piece of work takes: the median of some runs after one that warms up.
fn answer_time<T>(work: impl Fn() -> Outcome<T>) -> Outcome<()> {
    drop(work()?);
    let times = (0..RUNS).map(|_| rezus_benches::timed(&work)).collect::<Outcome<Vec<_>>>()?;
    rezus_benches::say(&percentile(&times, 50).as_nanos().to_string());
    Ok(())
}

fn rows_of(mappings: &Mappings, body: &[u8]) -> Outcome<Vec<IndexRow>> {
    match document::read_with(body, &|name| mappings.secret_rules(name))? {
        Document::Plain(state) => Ok(state.rows),
        Document::Encrypted(_) => Err("it is encrypted".into()),
    }
}

fn project(mappings: &Mappings, body: &[u8], rows: &[IndexRow]) -> Projection {
    projection::project(mappings, VersionNumber::FIRST, body, rows)
}

fn span<'a>(body: &'a [u8], row: &IndexRow) -> Outcome<&'a [u8]> {
    let range = usize::try_from(row.span.start)?..usize::try_from(row.span.end)?;
    Ok(body.get(range).ok_or("a span outside of the state")?)
}

/// Every machine is there, and is joined with what belongs to it: else it would be easy to be fast.
fn check(projection: &Projection, machines: usize) -> Outcome<()> {
    let all = &projection.machines;
    let joined = all.iter().all(|machine| machine.also_known_as.len() == 1 && machine.fed_by.len() >= 3);
    let clean = all.iter().all(|machine| machine.problems.is_empty());
    if all.len() == machines && joined && clean {
        return Ok(());
    }
    let odd = all.iter().find(|machine| machine.also_known_as.len() != 1 || !machine.problems.is_empty());
    Err(format!("{} machines, joined: {joined}, clean: {clean}, such as {odd:?}", all.len()).into())
}

/// Sizes here fit 32 bits.
fn decimal(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
