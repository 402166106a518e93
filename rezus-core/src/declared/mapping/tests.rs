//! Tests of the language: each step, each need.

use super::extract::Field;
use super::*;
use crate::declared::document::{Document, PlainState, read_with};

mod language;
mod refusals;
mod secrets;

/// Compiles one mapping alone.
fn only(text: &str) -> Mappings {
    let text = format!("mapping: test\ntypes:\n{text}");
    compiled(&text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

fn compiled(text: &str) -> Result<Mappings, Vec<MappingError>> {
    let (mut numbers, mut errors, mut inner) = (Numbers::default(), Vec::new(), Inner::default());
    let found = compile::compile("test.yaml", text, &mut numbers, &mut errors);
    if let Some(found) = found {
        inner.add_secrets(&found);
        inner.add(Origin::BuiltIn, "test.yaml", found, &mut errors);
    }
    inner.note_uses();
    if errors.is_empty() { Ok(Mappings { inner: Arc::new(inner) }) } else { Err(errors) }
}

/// A resource block of a state.
fn block(mode: &str, kind: &str, name: &str, instances: &[&str]) -> String {
    let source = "provider[\\\"registry.opentofu.org/acme/acme\\\"]";
    let instances = instances.join(",");
    format!(
        r#"{{"mode":"{mode}","type":"{kind}","name":"{name}","provider":"{source}","instances":[{instances}]}}"#
    )
}

fn state(blocks: &[String]) -> String {
    format!(r#"{{"version":4,"serial":1,"lineage":"x","outputs":{{}},"resources":[{}]}}"#, blocks.join(","))
}

fn plain(mappings: &Mappings, body: &str) -> PlainState {
    match read_with(body.as_bytes(), &|name| mappings.secret_rules(name)) {
        Ok(Document::Plain(state)) => state,
        other => panic!("{other:?}\n{body}"),
    }
}

fn extracts(mappings: &Mappings, blocks: &[String]) -> Vec<Extract> {
    let body = state(blocks);
    let rows = plain(mappings, &body).rows;
    let all = run(mappings, body.as_bytes(), &rows);
    for extract in &all {
        assert_eq!(again(mappings, &body, &rows, extract), *extract, "from its own objects alone");
    }
    all
}

/// Makes an extract again from the objects that it read, in another order.
fn again(mappings: &Mappings, body: &str, rows: &[IndexRow], extract: &Extract) -> Extract {
    let mut order = extract.read.clone();
    order.reverse();
    let objects: Vec<(&IndexRow, &[u8])> = order
        .iter()
        .map(|at| {
            let row = &rows[*at];
            let span = usize::try_from(row.span.start).unwrap()..usize::try_from(row.span.end).unwrap();
            (row, &body.as_bytes()[span])
        })
        .collect();
    let found = run_some(mappings, &objects);
    let same = |found: &&Extract| order[found.row] == extract.row && found.element == extract.element;
    let mut found = found.iter().find(same).cloned().unwrap();
    found.row = extract.row;
    found.read = found.read.iter().map(|at| order[*at]).collect();
    found
}

/// Evaluates one rule for the field `name`, on one object's attributes.
fn name_of(rule: &str, attributes: &str) -> Option<String> {
    field_of("name", Field::Name, rule, attributes)
}

fn field_of(name: &str, field: Field, rule: &str, attributes: &str) -> Option<String> {
    let mappings = only(&format!("  m:\n    kind: Machine\n    fields:\n      {name}: {rule}\n"));
    let instance = format!(r#"{{"index_key":"cp/0","schema_version":1,"attributes":{attributes}}}"#);
    let found = extracts(&mappings, &[block("managed", "m", "node", &[&instance])]);
    found[0].fields.get(&field).map(|found| found.value.clone())
}

/// Evaluates rules for a list of addresses; a letter for the kind before each.
fn addresses_of(lists: &str, attributes: &str) -> Vec<String> {
    let mappings = only(&format!("  m:\n    kind: Machine\n    fields:\n      addresses: {lists}\n"));
    let instance = format!(r#"{{"attributes":{attributes}}}"#);
    let found = extracts(&mappings, &[block("managed", "m", "node", &[&instance])]);
    spelt(&found[0])
}

fn spelt(extract: &Extract) -> Vec<String> {
    let spell = |address: &crate::declared::resource::NodeAddress| {
        format!("{}:{}", &address.kind.as_str()[..1], address.address)
    };
    extract.addresses.iter().map(|(address, _)| spell(address)).collect()
}

fn value(extract: &Extract, field: Field) -> Option<&str> {
    extract.fields.get(&field).map(|found| found.value.as_str())
}

#[test]
fn the_built_in_mappings_compile() {
    match Mappings::compile(&[]) {
        Ok(mappings) => assert!(mappings.providers().len() > 1),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", errors.join("\n"));
        }
    }
}
