//! A program that follows the machines of all tenants, or of one, through the server's Kubernetes API, with `kube` and
//! the types that `rezus-core` has for clients.
//!
//! ```text
//! KUBECONFIG=rezus-data/admin.kubeconfig cargo run -p rezus-examples --bin watch_machines -- --namespace demo
//! ```
//!
//! Prints the machines that are there, then a line for each that comes, changes or goes, until it is ended. Whatever
//! happens to the server or to the connection meanwhile: the lines add up to what a list says.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use futures_util::{StreamExt as _, pin_mut};
use kube::api::{Api, ApiResource, GroupVersionKind, ListParams};
use kube::core::Object;
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Client, ResourceExt as _};
use rezus_core::client::{MachineSpec, MachineStatus};

type Machine = Object<MachineSpec, MachineStatus>;

/// Print the machines that a rezus server shows, and how they change.
///
/// The variable KUBECONFIG names the file that says where the server is and who asks.
#[derive(Debug, Parser)]
struct Arguments {
    /// The tenant whose machines to follow; those of all tenants if absent.
    #[arg(long, short, value_name = "TENANT")]
    namespace: Option<String>,
    /// Have the watch itself tell what is there, rather than a list before it.
    #[arg(long)]
    streaming: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            warn(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let kind = GroupVersionKind::gvk("rezuscloud.io", "v1alpha1", "Machine");
    let kind = ApiResource::from_gvk_with_plural(&kind, "machines");
    let api: Api<Machine> = match &arguments.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let mut printed = Printed::default();
    for machine in api.list(&ListParams::default()).await? {
        printed.is_there(&machine)?;
    }

    let mut config = watcher::Config::default();
    if arguments.streaming {
        config = config.streaming_lists();
    }
    let writer = Writer::new(kind);
    let store = writer.as_reader();
    // Errors are waited out: the server may be away for a while.
    let events = reflector(writer, watcher(api, config).default_backoff());
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(machine)) => printed.is_there(&machine)?,
            Ok(Event::Delete(machine)) => printed.is_gone(&key(&machine))?,
            // What went while nobody watched was never told: only the whole tells it.
            Ok(Event::InitDone) => printed.catch_up(&store)?,
            Ok(Event::Init | Event::InitApply(_)) => {}
            Err(error) => warn(&error),
        }
    }
    Ok(())
}

/// Namespace and name.
type Key = (String, String);

fn key(machine: &Machine) -> Key {
    (machine.namespace().unwrap_or_default(), machine.name_any())
}

/// What was printed of the machines that are there. Resource versions tell less: a server that was started again gives
/// new ones to all.
#[derive(Debug, Default)]
struct Printed(BTreeMap<Key, MachineSpec>);

impl Printed {
    fn is_there(&mut self, machine: &Machine) -> io::Result<()> {
        let key = key(machine);
        let word = match self.0.get(&key) {
            Some(printed) if *printed == machine.spec => return Ok(()),
            Some(_) => "changed",
            None => "added",
        };
        line(word, &key, &details(&machine.spec))?;
        self.0.insert(key, machine.spec.clone());
        Ok(())
    }

    fn is_gone(&mut self, key: &Key) -> io::Result<()> {
        match self.0.remove(key) {
            Some(_) => line("removed", key, ""),
            None => Ok(()),
        }
    }

    fn catch_up(&mut self, store: &Store<Machine>) -> io::Result<()> {
        let mut there = store.state();
        there.sort_by_key(|machine| key(machine));
        let is_there = |gone: &Key| there.binary_search_by_key(gone, |machine| key(machine)).is_ok();
        let gone: Vec<Key> = self.0.keys().filter(|key| !is_there(key)).cloned().collect();
        for key in gone {
            self.is_gone(&key)?;
        }
        for machine in there {
            self.is_there(&machine)?;
        }
        Ok(())
    }
}

fn details(spec: &MachineSpec) -> String {
    let addresses = spec.addresses.iter().map(|address| address.address.as_str());
    let fields = [&spec.role, &spec.instance_type, &spec.zone].into_iter().flatten().map(String::as_str);
    fields.chain(addresses).collect::<Vec<_>>().join(" ")
}

fn line(word: &str, (namespace, name): &Key, details: &str) -> io::Result<()> {
    let line = format!("{word} {namespace}/{name} {details}");
    writeln!(io::stdout(), "{}", line.trim_end())
}

fn warn(error: &(impl Display + ?Sized)) {
    // Nobody can be told where printing fails.
    drop(writeln!(io::stderr(), "error: {error}"));
}
