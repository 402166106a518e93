//! What the core promises of mappings, whatever a state holds.

use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::prelude::*;
use rezus_core::declared::document::{Document, PlainState, read_with};
use rezus_core::declared::index::IndexRow;
use rezus_core::declared::mapping::extract::{Extract, extract};
use rezus_core::declared::mapping::{Mappings, run_some};
use rezus_testkit::{fixture, strategy};

fn built_in() -> &'static Mappings {
    static MAPPINGS: OnceLock<Mappings> = OnceLock::new();
    MAPPINGS.get_or_init(Mappings::built_in)
}

fn plain(mappings: &Mappings, body: &[u8]) -> Option<PlainState> {
    match read_with(body, &|name| mappings.secret_rules(name)) {
        Ok(Document::Plain(state)) => Some(state),
        Ok(Document::Encrypted(_)) | Err(_) => None,
    }
}

fn object<'b>(body: &'b [u8], row: &IndexRow) -> &'b [u8] {
    let bound = |offset: u64| usize::try_from(offset).unwrap();
    &body[bound(row.span.start)..bound(row.span.end)]
}

/// Makes an extract again from the objects alone that it read, the last one first.
fn again(mappings: &Mappings, body: &[u8], rows: &[IndexRow], wanted: &Extract) -> Option<Extract> {
    let order: Vec<usize> = wanted.read.iter().rev().copied().collect();
    let objects: Vec<(&IndexRow, &[u8])> =
        order.iter().map(|at| (&rows[*at], object(body, &rows[*at]))).collect();
    let is_same = |found: &Extract| order[found.row] == wanted.row && found.element == wanted.element;
    let mut found = run_some(mappings, &objects).into_iter().find(is_same)?;
    found.row = wanted.row;
    found.read = found.read.iter().map(|at| order[*at]).collect();
    Some(found)
}

#[test]
fn an_object_and_those_it_read_are_enough_to_project_it_again() {
    let mappings = built_in();
    let mut seen = 0;
    for fixture in fixture::states() {
        let Some(state) = plain(mappings, &fixture.body) else { continue };
        for found in extract(mappings, &fixture.body, &state.rows) {
            assert_eq!(again(mappings, &fixture.body, &state.rows, &found).as_ref(), Some(&found));
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn no_secret_is_in_what_mappings_find() {
    let mappings = built_in();
    for fixture in fixture::states() {
        let Some(state) = plain(mappings, &fixture.body) else { continue };
        let found = format!("{:?}", extract(mappings, &fixture.body, &state.rows));
        for secret in fixture.expect.secret_strings() {
            assert!(!found.contains(secret), "{} shows a secret", fixture.name);
        }
    }
}

#[test]
fn every_value_is_where_its_source_says() {
    let mappings = built_in();
    for fixture in fixture::states() {
        let Some(state) = plain(mappings, &fixture.body) else { continue };
        for found in extract(mappings, &fixture.body, &state.rows) {
            let fields = found.fields.values().map(|found| &found.source);
            for source in fields.chain(found.addresses.iter().map(|(_, source)| source)) {
                let row = state.rows.iter().find(|row| {
                    row.address == source.address && row.deposed.as_deref() == source.deposed.as_deref()
                });
                let at = row.map(IndexRow::json_path).unwrap();
                assert!(source.path().starts_with(&at), "{} is not below {at}", source.path());
                assert!(!source.place.rule.is_empty());
            }
        }
    }
}

/// Replaces some scalars of a state by odd ones, at random places.
fn mutated(body: &[u8], places: &[(prop::sample::Index, usize)]) -> Vec<u8> {
    let odd: [&[u8]; 8] = [
        b"null",
        b"[]",
        b"{}",
        b"1e400",
        b"\"\\ud800\"",
        b"[[[\"x\"]]]",
        b"{\"value\":1,\"type\":\"number\"}",
        b"true",
    ];
    let mut out = body.to_vec();
    for (place, which) in places {
        let starts: Vec<usize> =
            out.windows(3).enumerate().filter(|(_, w)| *w == b": \"").map(|(i, _)| i + 2).collect();
        if starts.is_empty() {
            continue;
        }
        let start = starts[place.index(starts.len())];
        let end = out[start + 1..].iter().position(|byte| *byte == b'"').map(|at| start + 1 + at + 1);
        if let Some(end) = end {
            out.splice(start..end, odd[*which].iter().copied());
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn generated_states_are_projected_without_panic(state in strategy::states()) {
        let mappings = built_in();
        if let Some(plain) = plain(mappings, &state.body) {
            let found = extract(mappings, &state.body, &plain.rows);
            let shown = format!("{found:?}");
            for secret in &state.model.secrets {
                prop_assert!(!shown.contains(secret.as_str()));
            }
            for extract in &found {
                let made_again = again(mappings, &state.body, &plain.rows, extract);
                prop_assert_eq!(made_again.as_ref(), Some(extract));
            }
        }
    }

    #[test]
    fn odd_values_cost_fields_and_nothing_else(
        which in any::<prop::sample::Index>(),
        places in vec((any::<prop::sample::Index>(), 0_usize..8), 1..20),
    ) {
        let mappings = built_in();
        let fixtures = fixture::states();
        let body = mutated(&fixtures[which.index(fixtures.len())].body, &places);
        if let Some(state) = plain(mappings, &body) {
            for found in extract(mappings, &body, &state.rows) {
                let made_again = again(mappings, &body, &state.rows, &found);
                prop_assert_eq!(made_again.as_ref(), Some(&found));
            }
        }
    }

    #[test]
    fn any_text_is_a_mapping_or_refused(text in "(mapping: x\n)?(types:\n)?[ -~\n]{0,200}") {
        let file = rezus_core::declared::mapping::MappingFile { name: "f".to_owned(), text };
        if let Err(errors) = Mappings::compile(&[file]) {
            prop_assert!(!errors.is_empty());
        }
    }
}
