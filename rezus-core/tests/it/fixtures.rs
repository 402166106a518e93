//! The fixtures: what is a state, what is in it, and that no secret of it is shown.

use std::path::PathBuf;

use base64::Engine as _;
use rezus_core::declared::document::{Document, DocumentError, PlainState, read};
use rezus_core::declared::index::Mode;
use rezus_core::declared::masked;
use serde_json::Value;

struct Fixture {
    name: String,
    body: Vec<u8>,
    expect: Value,
}

fn fixtures() -> Vec<Fixture> {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../rezus-testkit/fixtures"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tfstate") {
            let expect = std::fs::read(path.with_extension("expect.json")).unwrap();
            found.push(Fixture {
                name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                body: std::fs::read(&path).unwrap(),
                expect: serde_json::from_slice(&expect).unwrap(),
            });
        }
    }
    assert!(found.len() > 20, "fixtures are missing");
    found
}

impl Fixture {
    fn plain(&self) -> Option<PlainState> {
        match read(&self.body) {
            Ok(Document::Plain(state)) => Some(state),
            Ok(Document::Encrypted(_)) | Err(_) => None,
        }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.expect.pointer(pointer).and_then(Value::as_str)
    }

    fn list(&self, pointer: &str) -> Vec<&Value> {
        self.expect.pointer(pointer).and_then(Value::as_array).into_iter().flatten().collect()
    }

    fn secrets(&self) -> Vec<&str> {
        self.list("/secret_strings").into_iter().filter_map(Value::as_str).collect()
    }

    /// Returns each object as it is stored and as it is shown, with its address.
    fn objects(&self, state: &PlainState) -> Vec<(String, Value, Value)> {
        let objects = state.rows.iter().map(|row| {
            let span = usize::try_from(row.span.start).unwrap()..usize::try_from(row.span.end).unwrap();
            let shown = masked::show(&self.body[span.clone()], &row.masked).unwrap();
            let stored = serde_json::from_slice(&self.body[span]).unwrap();
            (row.address.to_string(), stored, serde_json::from_str(&shown).unwrap())
        });
        objects.collect()
    }
}

#[test]
fn each_is_taken_for_what_it_is() {
    for fixture in fixtures() {
        let (name, document) = (&fixture.name, read(&fixture.body));
        match &fixture.expect["accept"] {
            Value::Bool(true) => assert!(matches!(document, Ok(Document::Plain(_))), "{name}: {document:?}"),
            Value::String(text) if text == "store-only" => {
                let Ok(Document::Encrypted(envelope)) = document else { panic!("{name}: {document:?}") };
                assert_eq!(envelope.serial.map(|s| s.to_string()).as_deref(), fixture.text("/format/serial"));
                assert_eq!(
                    envelope.lineage.as_ref().map(rezus_core::declared::Lineage::as_str),
                    fixture.text("/format/lineage")
                );
            }
            Value::Null => assert_eq!(document, Err(DocumentError::Empty), "{name}"),
            _ => {
                let error = document.unwrap_err();
                let is_unsupported = matches!(error, DocumentError::LegacyVersion { .. });
                assert_eq!(
                    is_unsupported,
                    fixture.text("/reject/code") == Some("unsupported-state-version"),
                    "{name}"
                );
                assert!(!error.is_malformed(), "{name}");
                for secret in fixture.secrets() {
                    assert!(
                        !error.to_string().contains(secret) && !format!("{error:?}").contains(secret),
                        "{name}"
                    );
                }
            }
        }
    }
}

#[test]
fn rows_are_the_objects_that_terraform_counts() {
    for fixture in fixtures() {
        let (name, Some(state)) = (&fixture.name, fixture.plain()) else {
            continue;
        };
        if let Some(serial) = fixture.text("/format/serial") {
            assert_eq!(state.serial.to_string(), serial, "{name}");
            assert_eq!(&fixture.body[state.serial_span.clone().unwrap()], serial.as_bytes(), "{name}");
            assert_eq!(Some(state.lineage.as_str()), fixture.text("/format/lineage"), "{name}");
            assert_eq!(state.writer.as_deref(), fixture.text("/format/terraform_version"), "{name}");
        }
        assert_eq!(state.is_empty(), name.starts_with("empty"), "{name}");
        let count = |test: fn(&rezus_core::declared::index::IndexRow) -> bool| {
            state.rows.iter().filter(|row| test(row)).count()
        };
        let counted = [
            ("current_objects", count(|row| row.deposed.is_none())),
            ("deposed_objects", count(|row| row.deposed.is_some())),
            ("tainted_current", count(|row| row.deposed.is_none() && row.tainted)),
            ("managed_current", count(|row| row.deposed.is_none() && row.mode == Mode::Managed)),
            ("data_current", count(|row| row.deposed.is_none() && row.mode == Mode::Data)),
        ];
        for (what, found) in counted {
            let expected = fixture.expect["counts"][what].as_u64();
            assert!(
                expected.is_none_or(|expected| usize::try_from(expected) == Ok(found)),
                "{name}: {what} {found}"
            );
        }
        for machine in fixture.list("/machines") {
            let address = machine["address"].as_str().unwrap();
            assert!(state.rows.iter().any(|row| row.address.as_str() == address), "{name}: {address}");
        }
        for object in fixture.list("/deposed") {
            let is_it = |row: &rezus_core::declared::index::IndexRow| {
                Some(row.address.as_str()) == object["address"].as_str()
                    && row.deposed.as_deref() == object["deposed_key"].as_str()
            };
            assert!(state.rows.iter().any(is_it), "{name}: {object}");
        }
        for row in &state.rows {
            let parsed = rezus_core::declared::ResourceAddress::parse(row.address.as_str());
            assert_eq!(parsed.as_ref(), Ok(&row.address), "{name}");
        }
    }
}

#[test]
fn no_secret_string_is_shown() {
    for fixture in fixtures() {
        let Some(state) = fixture.plain() else { continue };
        for (address, _, shown) in fixture.objects(&state) {
            each_text(&shown, &mut |text| {
                for secret in fixture.secrets() {
                    assert!(!reveals(text, secret), "{}: {address} shows {secret}", fixture.name);
                }
            });
        }
        let rows = format!("{:?}", state.rows);
        assert!(fixture.secrets().iter().all(|secret| !rows.contains(secret)), "{}: rows", fixture.name);
    }
}

#[test]
fn no_secret_path_is_shown() {
    for fixture in fixtures() {
        let Some(state) = fixture.plain() else { continue };
        let objects = fixture.objects(&state);
        for place in fixture.list("/secret_paths") {
            let address = place["address"].as_str().unwrap();
            let path = place["path"].as_array().unwrap();
            for (_, stored, shown) in objects.iter().filter(|(found, _, _)| found == address) {
                if at(&stored["attributes"], path).is_some_and(|value| !value.is_null()) {
                    let shown = at(&shown["attributes"], path);
                    assert!(
                        shown.is_none_or(|value| value == "(sensitive)"),
                        "{}: {address} {path:?}",
                        fixture.name
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_no_secret_is_shown() {
    for fixture in fixtures() {
        let Some(state) = fixture.plain() else { continue };
        for row in &state.rows {
            assert!(
                !row.masked.contains(&String::new()),
                "{}: {} is hidden as a whole",
                fixture.name,
                row.address
            );
        }
        for machine in fixture.list("/machines") {
            let Some(id) = machine["provider_id"].as_str() else {
                continue;
            };
            let objects = fixture.objects(&state);
            let shown = objects
                .iter()
                .filter(|(address, _, _)| Some(address.as_str()) == machine["address"].as_str());
            let mut is_shown = false;
            for (_, _, shown) in shown {
                let text = shown.to_string();
                is_shown |= text.contains(id);
            }
            assert!(is_shown, "{}: {machine}", fixture.name);
        }
    }
}

fn at<'v>(value: &'v Value, path: &[Value]) -> Option<&'v Value> {
    let Some((step, rest)) = path.split_first() else {
        return Some(value);
    };
    let below = match step {
        Value::String(name) => value.get(name),
        step => value.get(usize::try_from(step.as_u64()?).ok()?),
    };
    match below {
        Some(below) => at(below, rest),
        None => value.get("value").filter(|_| value.get("type").is_some()).and_then(|inner| at(inner, path)),
    }
}

fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(members) => {
            for (name, member) in members {
                visit(name);
                each_text(member, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Tells whether a text contains a secret, plain or encoded, or is what it encodes.
fn reveals(text: &str, secret: &str) -> bool {
    let decoded = |text: &str| {
        let engine = base64::engine::general_purpose::STANDARD;
        engine
            .decode(text)
            .or_else(|_| base64::engine::general_purpose::URL_SAFE.decode(text))
            .unwrap_or_default()
    };
    let contains =
        |bytes: &[u8], part: &[u8]| part.len() >= 6 && bytes.windows(part.len()).any(|window| window == part);
    let inner = decoded(secret);
    contains(text.as_bytes(), secret.as_bytes())
        || contains(&decoded(text), secret.as_bytes())
        || (std::str::from_utf8(&inner).is_ok() && contains(text.as_bytes(), &inner))
}
