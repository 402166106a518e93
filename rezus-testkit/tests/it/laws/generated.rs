//! Over generated states: nothing missing, nothing extra, nothing shown that must not be.

#![expect(clippy::unwrap_used, reason = "test code")]

use proptest::prelude::*;
use rezus_core::declared::index::{IndexRow, InstanceKey, Mode};
use rezus_core::declared::masked;
use rezus_testkit::canary::Canary;
use rezus_testkit::strategy::{
    self, Key, ObjectModel, large_state_with_secrets, states, terraform_data_state,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{object_of, plain};

/// What a whole parse by another reader finds.
#[derive(Deserialize)]
struct Parsed<'a> {
    #[serde(borrow)]
    resources: Vec<ParsedBlock<'a>>,
}

#[derive(Deserialize)]
struct ParsedBlock<'a> {
    #[serde(borrow)]
    instances: Vec<&'a RawValue>,
}

/// Returns position and bytes of each object.
fn parsed_objects(body: &[u8]) -> Vec<((u32, u32), std::ops::Range<u64>)> {
    let parsed: Parsed<'_> = serde_json::from_slice(body).unwrap();
    let mut objects = Vec::new();
    for (block, resource) in (0..).zip(&parsed.resources) {
        for (instance, object) in (0..).zip(&resource.instances) {
            let text = object.get();
            let start = u64::try_from(text.as_ptr().addr() - body.as_ptr().addr()).unwrap();
            objects.push(((block, instance), start..start + u64::try_from(text.len()).unwrap()));
        }
    }
    objects
}

/// Compares a row with the model.
fn agree(row: &IndexRow, model: &ObjectModel) -> Result<(), TestCaseError> {
    let mode = match model.mode {
        strategy::Mode::Managed => Mode::Managed,
        strategy::Mode::Data => Mode::Data,
    };
    let key = model.key.as_ref().map(|key| match key {
        Key::Number(number) => InstanceKey::Number(*number),
        Key::Text(text) => InstanceKey::Text(text.clone()),
    });
    prop_assert_eq!(row.address.as_str(), model.address());
    prop_assert_eq!(&row.deposed, &model.deposed);
    prop_assert_eq!(&row.module, &model.module);
    prop_assert_eq!(row.mode, mode);
    prop_assert_eq!(&row.resource_type, &model.resource_type);
    prop_assert_eq!(&row.name, &model.name);
    prop_assert_eq!(&row.key, &key);
    prop_assert_eq!(&row.provider, &model.provider);
    prop_assert_eq!(row.tainted, model.tainted);
    Ok(())
}

proptest! {
    #[test]
    fn rows_are_those_of_a_whole_parse(state in states()) {
        let read = plain(&state.body).map_err(TestCaseError::fail)?;
        let found: Vec<_> = read.rows.iter().map(|row| (row.position, row.span.clone())).collect();
        prop_assert_eq!(found, parsed_objects(&state.body));
        for row in &read.rows {
            prop_assert_eq!(crc32fast::hash(object_of(&state.body, row)), row.checksum);
        }
    }

    #[test]
    fn rows_are_those_of_the_model(state in states()) {
        let read = plain(&state.body).map_err(TestCaseError::fail)?;
        let model = &state.model;
        prop_assert_eq!(read.serial.get(), model.serial);
        prop_assert_eq!(read.lineage.as_str(), model.lineage.as_deref().unwrap_or_default());
        prop_assert_eq!(&read.writer, &model.writer);
        prop_assert_eq!(usize::try_from(read.outputs), Ok(model.outputs.len()));
        let serial = read.serial_span.map(|span| state.body[span].to_vec());
        prop_assert_eq!(serial, Some(model.serial.to_string().into_bytes()));
        prop_assert_eq!(read.rows.len(), model.objects.len());
        for (row, model) in read.rows.iter().zip(&model.objects) {
            agree(row, model)?;
        }
    }

    #[test]
    fn no_secret_is_shown_and_all_else_is(state in states()) {
        let read = plain(&state.body).map_err(TestCaseError::fail)?;
        let canary = Canary::new(&state.model.secrets);
        for (row, model) in read.rows.iter().zip(&state.model.objects) {
            let shown = masked::show(object_of(&state.body, row), &row.masked);
            let shown = shown.map_err(|error| TestCaseError::fail(error.to_string()))?;
            if let Some(leak) = canary.leaks(shown.as_bytes()).first() {
                let secret = &state.model.secrets[leak.secret];
                return Err(TestCaseError::fail(format!("{}: {leak}, {secret:?}, in {shown}", row.address)));
            }
            for text in &model.shown {
                prop_assert!(shown.contains(text), "{text} is hidden in {shown}");
            }
            if model.hidden {
                prop_assert_eq!(&row.masked, &[String::new()], "{}", row.address);
            }
        }
    }

    /// What the model calls a secret is in the state: the law above is about something.
    #[test]
    fn every_secret_of_the_model_is_in_the_state(state in states()) {
        let found = Canary::new(&state.model.secrets).leaks(&state.body);
        for (number, secret) in state.model.secrets.iter().enumerate() {
            prop_assert!(found.iter().any(|leak| leak.secret == number), "{secret:?} is nowhere");
        }
        for model in &state.model.objects {
            prop_assert!(model.secrets.iter().all(|secret| state.model.secrets.contains(secret)));
        }
    }

    /// Whatever a byte of it is changed to, a state is read or refused, and rows lie within the body.
    #[test]
    fn a_damaged_state_is_read_or_refused(state in states(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut body = state.body;
        let at = at.index(body.len());
        if cut { body.truncate(at) } else { body[at] = byte }
        if let Ok(read) = plain(&body) {
            let found: Vec<_> = read.rows.iter().map(|row| row.span.clone()).collect();
            let is_object = |span: &std::ops::Range<u64>| {
                let span = usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap();
                body.get(span).is_some_and(|object| serde_json::from_slice::<&RawValue>(object).is_ok())
            };
            prop_assert!(found.iter().all(is_object));
            prop_assert!(serde_json::from_slice::<&RawValue>(&body).is_ok(), "what is no JSON was read");
        }
    }
}

#[test]
fn large_states_are_read_whole() {
    let body = large_state_with_secrets(3_000, 5, 120);
    let read = plain(&body).unwrap();
    assert_eq!(read.rows.len(), 3_000);
    let found: Vec<_> = read.rows.iter().map(|row| (row.position, row.span.clone())).collect();
    assert_eq!(found, parsed_objects(&body));
    for row in &read.rows {
        let shown = masked::show(object_of(&body, row), &row.masked).unwrap();
        assert!(!shown.contains("canary-"));
        assert!(!shown.contains("Y2FuYXJ5LT"));
    }
    assert_eq!(plain(&terraform_data_state(100, 1)).unwrap().rows.len(), 100);
}
