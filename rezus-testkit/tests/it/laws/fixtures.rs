//! Over the fixtures: what their expectations say.

use rezus_core::declared::Lineage;
use rezus_core::declared::document::{Document, DocumentError, read};
use rezus_core::declared::index::{IndexRow, Mode};
use rezus_core::declared::masked;
use rezus_testkit::canary::Canary;
use rezus_testkit::fixture::{self, Accept, Counts};
use serde_json::Value;

use super::{object_of, plain};

#[test]
fn a_fixture_is_accepted_or_refused_as_expected() {
    for state in fixture::states() {
        let (name, outcome) = (&state.name, read(&state.body));
        match state.expect.accept() {
            Accept::Project => assert!(matches!(outcome, Ok(Document::Plain(_))), "{name}: {outcome:?}"),
            Accept::StoreOnly => {
                assert!(matches!(outcome, Ok(Document::Encrypted(_))), "{name}: {outcome:?}");
            }
            Accept::NoState => assert_eq!(outcome, Err(DocumentError::Empty), "{name}"),
            Accept::Refuse => {
                let error = outcome.unwrap_err();
                let code = match &error {
                    DocumentError::LegacyVersion { .. } | DocumentError::NewerVersion { .. } => {
                        "unsupported-state-version"
                    }
                    _ => "not-a-state",
                };
                assert_eq!(Some(code), state.expect.reject_code(), "{name}: {error}");
                let said = format!("{error} {error:?}");
                let leaks = Canary::new(state.expect.secret_strings()).leaks(said.as_bytes());
                assert_eq!(leaks, [], "{name}: {said}");
            }
        }
    }
}

#[test]
fn a_fixture_says_of_itself_what_is_expected() {
    for state in fixture::states() {
        let (name, expect) = (&state.name, &state.expect);
        let found = match read(&state.body) {
            Ok(Document::Plain(found)) => {
                assert_eq!(found.writer.as_deref(), expect.writer(), "{name}");
                (Some(found.serial), Some(found.lineage))
            }
            Ok(Document::Encrypted(envelope)) => (envelope.serial, envelope.lineage),
            Err(_) => continue,
        };
        assert_eq!(found.0.map(|serial| serial.to_string()).as_deref(), expect.serial(), "{name}");
        assert_eq!(found.1.as_ref().map(Lineage::as_str), expect.lineage(), "{name}");
    }
}

#[test]
fn a_fixture_holds_the_objects_that_are_expected() {
    for state in projected() {
        let (name, expect) = (&state.name, &state.expect);
        let rows = plain(&state.body).unwrap().rows;
        let count = |is: &dyn Fn(&IndexRow) -> bool| {
            u64::try_from(rows.iter().filter(|row| is(row)).count()).unwrap()
        };
        let current = |row: &IndexRow| row.deposed.is_none();
        let parsed: Value = serde_json::from_slice(&state.body).unwrap();
        let found = Counts {
            resource_blocks: u64::try_from(parsed["resources"].as_array().unwrap().len()).unwrap(),
            current_objects: count(&current),
            deposed_objects: count(&|row| !current(row)),
            tainted_current: count(&|row| current(row) && row.tainted),
            managed_current: count(&|row| current(row) && row.mode == Mode::Managed),
            data_current: count(&|row| current(row) && row.mode == Mode::Data),
        };
        if let Some(counts) = expect.counts() {
            assert_eq!(found, counts, "{name}");
        } else {
            assert_eq!(rows, [], "{name}");
        }

        let is_there = |address: &str| rows.iter().any(|row| row.address.as_str() == address && current(row));
        let machines = expect.machines();
        let also_known = machines.iter().filter_map(|machine| machine["also_known_as"].as_array()).flatten();
        let addresses = expect.machine_addresses().into_iter().chain(also_known.filter_map(Value::as_str));
        for address in addresses.chain(expect.not_machine_addresses()) {
            // Deposed objects are listed with their key there, and looked for below.
            let is_deposed = expect.deposed().iter().any(|(deposed, _)| address.starts_with(deposed));
            assert!(is_there(address) || is_deposed, "{name} holds {address}");
        }
        for machine in machines {
            let row =
                rows.iter().find(|row| machine["address"] == row.address.as_str() && current(row)).unwrap();
            assert_eq!(machine["tainted"], row.tainted, "{name}: {}", row.address);
            assert_eq!(row.mode, Mode::Managed, "{name}: {}", row.address);
        }
        for (address, key) in expect.deposed() {
            let is_it =
                |row: &IndexRow| row.address.as_str() == address && row.deposed.as_deref() == Some(key);
            assert_eq!(count(&is_it), 1, "{name} holds {address} (deposed {key})");
        }
        let mut objects: Vec<_> = rows.iter().map(|row| (&row.address, &row.deposed)).collect();
        objects.sort();
        objects.dedup();
        assert_eq!(objects.len(), rows.len(), "{name}");
    }
}

#[test]
fn no_secret_of_a_fixture_is_shown() {
    let mut leaking = Vec::new();
    for state in projected() {
        let secrets = state.expect.secret_strings();
        let canary = Canary::new(&secrets);
        for row in plain(&state.body).unwrap().rows {
            let shown = masked::show(object_of(&state.body, &row), &row.masked).unwrap();
            for leak in canary.leaks(shown.as_bytes()) {
                leaking.push(format!("{}: {}: {leak}: {:?}", state.name, row.address, secrets[leak.secret]));
            }
        }
    }
    assert!(leaking.is_empty(), "{leaking:#?}");
}

/// What is hidden is hidden for a reason: where nothing of an object is marked or on a list, all of it is shown.
#[test]
fn every_pointer_of_a_fixture_leads_somewhere() {
    for state in projected() {
        for row in plain(&state.body).unwrap().rows {
            let object: Value = serde_json::from_slice(object_of(&state.body, &row)).unwrap();
            for pointer in &row.masked {
                assert!(object.pointer(pointer).is_some(), "{}: {}: {pointer}", state.name, row.address);
            }
        }
    }
}

fn projected() -> impl Iterator<Item = fixture::StateFixture> {
    fixture::states().into_iter().filter(|state| state.expect.accept() == Accept::Project)
}
