//! A tool of somebody else's that reads machines out of a state file through the core alone: no server, no runtime, no
//! I/O but its own.
//!
//! ```text
//! cargo run -p rezus-examples --bin embed_projection -- examples/backend/demo.tfstate
//! ```
//!
//! Prints each machine with its role, its group and its addresses, and where its name comes from.

use std::io::{self, Write as _};
use std::process::ExitCode;

use rezus_core::declared::VersionNumber;
use rezus_core::declared::document::{self, Document};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projection::project;
use rezus_core::declared::resource::{Machine, Projection, Role};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        return fail("name a state file");
    };
    let body = match std::fs::read(&path) {
        Ok(body) => body,
        Err(error) => return fail(&error.to_string()),
    };
    let mappings = Mappings::built_in();
    // What mappings know to be secret has to be known when the state is read: rules find nothing there.
    match document::read_with(&body, &|resource_type| mappings.secret_rules(resource_type)) {
        Ok(Document::Plain(state)) => {
            // A file has no history: whatever it holds is the first version.
            let projection = project(&mappings, VersionNumber::FIRST, &body, &state.rows);
            match print(&projection) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&error.to_string()),
            }
        }
        Ok(Document::Encrypted(envelope)) => {
            fail(&format!("encrypted, serial {:?}: only tofu with its key can read it", envelope.serial))
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn print(projection: &Projection) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for machine in &projection.machines {
        print_machine(&mut out, machine)?;
    }
    for (resource_type, count) in &projection.cluster.unmapped {
        writeln!(out, "{count} of {resource_type}: no mapping knows it")?;
    }
    Ok(())
}

fn print_machine(out: &mut impl io::Write, machine: &Machine) -> io::Result<()> {
    let role = machine.role.map_or("no role", Role::as_str);
    let group = machine.node_group.as_deref().unwrap_or("no group");
    writeln!(out, "{} ({role}, {group})", machine.object_name)?;
    for address in &machine.addresses {
        writeln!(out, "  {} {}", address.kind.as_str(), address.address)?;
    }
    match (&machine.name, machine.provenance.get("name")) {
        (Some(name), Some(source)) => {
            writeln!(out, "  {name:?} is {} of {}, by {}", source.path, source.address, source.rule)?;
        }
        _ => writeln!(out, "  no name: called after {}", machine.address)?,
    }
    for problem in &machine.problems {
        writeln!(out, "  {}: {}", problem.field, problem.reason)?;
    }
    Ok(())
}

fn fail(message: &str) -> ExitCode {
    // Nobody can be told where printing fails.
    drop(writeln!(io::stderr(), "error: {message}"));
    ExitCode::FAILURE
}
