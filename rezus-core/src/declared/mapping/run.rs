//! Runs the rules over objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Inner;
use super::compile::field_name;
use super::context::{Provider, type_name};
use super::dom::Object;
use super::eval::{At, Eval, Item, Want};
use super::extract::{Extract, Found};
use super::ip;
use super::rule::{AddressList, Block};
use super::visit::{Base, Complaint, MORE_FOR_ELEMENT, Visit, Way};
use super::world::World;
use crate::declared::cores;
use crate::declared::index::IndexRow;
use crate::declared::resource::{AddressType, NodeAddress, Places, Problem};

/// Evaluates all rules for all objects at hand.
pub(super) fn run(mappings: &Inner, rows: Vec<(&IndexRow, &[u8])>) -> Vec<Extract> {
    let names: Vec<Arc<str>> =
        mappings.providers.iter().map(|provider| provider.name.as_str().into()).collect();
    let world = World::new(mappings, rows);
    cores::spread(world.len(), |range| {
        let mut made = Made { places: Places::default(), extracts: Vec::new() };
        for at in range {
            object(&world, at, &names, &mut made);
        }
        made.extracts
    })
}

/// What was made so far.
struct Made {
    places: Places,
    extracts: Vec<Extract>,
}

/// Evaluates the rules for one object.
fn object(world: &World<'_>, at: usize, names: &[Arc<str>], made: &mut Made) {
    let Some(row) = world.row(at).filter(|row| row.deposed.is_none()) else { return };
    let name = type_name(row);
    let source = Provider::of(&row.provider).source;
    let Some(rules) = world.mappings.rules(&name, source).filter(|rules| !rules.blocks.is_empty()) else {
        return;
    };
    let Some(mapping) = names.get(rules.provider) else { return };
    if world.mappings.used.contains(&*name) {
        if let Some(object) = world.object(at) {
            one(world, at, object, &rules.blocks, mapping, made);
        }
    } else if let Some(object) = world.read(at) {
        one(world, at, &object, &rules.blocks, mapping, made);
    }
}

/// Evaluates the first block that fits an object.
fn one<'d, 'a: 'd>(
    world: &'d World<'a>,
    row: usize,
    object: &'d Object<'d>,
    blocks: &'d [Block],
    mapping: &Arc<str>,
    made: &mut Made,
) {
    if object.is_broken {
        return;
    }
    let mut eval = Eval::new(world);
    let root = eval.visit.root(&object.attributes, row);
    let at = At { row, object, base: Base { root, element: None } };
    let fits = |eval: &mut Eval<'d, 'a>, block: &Block| {
        let version = object.schema_version;
        block.schema.is_none_or(|(from, to)| (from..=to).contains(&version))
            && block.conditions.iter().all(|condition| eval.condition(condition, at))
    };
    let Some(block) = blocks.iter().find(|block| fits(&mut eval, block)) else { return };
    let Some(each) = &block.each else {
        let extract = extract(&mut eval, at, block, mapping, &mut made.places);
        made.extracts.push(extract);
        return;
    };
    let elements = eval.visit.find(&each.path, at.base);
    eval.visit.allow(elements.len() * MORE_FOR_ELEMENT);
    let mut seen = BTreeSet::new();
    for element in elements {
        let base = Base { root, element: Some(element) };
        let key = each.key.as_ref().and_then(|key| eval.visit.quiet_texts(key, base).into_iter().next());
        let place = place_label(&eval.visit, element);
        let mut label = key.map_or_else(|| place.clone(), String::from);
        if !seen.insert(label.clone()) {
            label = format!("{label}#{place}");
        }
        eval.label = Some(label);
        eval.read.clear();
        let extract = extract(&mut eval, At { base, ..at }, block, mapping, &mut made.places);
        made.extracts.push(extract);
    }
}

/// Evaluates a block for an object, or for one element of it.
fn extract<'d, 'a: 'd>(
    eval: &mut Eval<'d, 'a>,
    at: At<'d>,
    block: &'d Block,
    mapping: &Arc<str>,
    places: &mut Places,
) -> Extract {
    let mut extract = Extract {
        row: at.row,
        element: eval.label.clone(),
        kind: block.kind,
        mapping: Arc::clone(mapping),
        fields: BTreeMap::new(),
        addresses: Vec::new(),
        shared_addresses: Vec::new(),
        problems: Vec::new(),
        read: vec![at.row],
    };
    for (field, rules) in &block.fields {
        eval.visit.complaint = None;
        let found = eval.first(rules, at, Want::Text).into_iter().next();
        let found = found.and_then(|item| {
            let source = eval.spot(&item, places)?;
            Some(Found { value: item.text.into_owned(), source, precedence: item.precedence })
        });
        match (found, eval.visit.complaint) {
            (Some(found), _) => {
                extract.fields.insert(*field, found);
            }
            (None, Some(complaint)) => problem(&mut extract, field_name(*field), complaint),
            (None, None) => {}
        }
    }
    let mut seen = BTreeSet::new();
    for (list, rules) in &block.addresses {
        for rule in rules {
            eval.visit.complaint = None;
            let want = match list {
                AddressList::Internal | AddressList::External | AddressList::Shared => Want::Ip,
                AddressList::Mixed => Want::IpOrName,
                AddressList::Hostname => Want::Name,
            };
            for item in eval.rule(rule, at, want) {
                add_address(eval, *list, &item, places, &mut seen, &mut extract);
            }
            if let Some(complaint) = eval.visit.complaint {
                problem(&mut extract, "addresses", complaint);
            }
        }
    }
    let mut known = BTreeSet::from([at.row]);
    extract.read.extend(eval.read.iter().filter(|row| known.insert(**row)));
    extract
}

fn add_address(
    eval: &Eval<'_, '_>,
    list: AddressList,
    item: &Item<'_>,
    places: &mut Places,
    seen: &mut BTreeSet<String>,
    extract: &mut Extract,
) {
    let kind = match (list, ip::parse(&item.text)) {
        (AddressList::Shared, _) => {
            if !extract.shared_addresses.iter().any(|known| *known == *item.text) {
                extract.shared_addresses.push(item.text.to_string());
            }
            return;
        }
        (AddressList::Hostname, _) | (AddressList::Mixed, None) => AddressType::Hostname,
        (AddressList::Mixed, Some(address)) if !ip::is_private(address) => AddressType::ExternalIp,
        (AddressList::External, _) => AddressType::ExternalIp,
        (AddressList::Internal | AddressList::Mixed, _) => AddressType::InternalIp,
    };
    if seen.insert(item.text.to_string())
        && let Some(source) = eval.spot(item, places)
    {
        extract.addresses.push((NodeAddress { kind, address: item.text.to_string() }, source));
    }
}

fn problem(extract: &mut Extract, field: &str, complaint: Complaint) {
    let problem = Problem { field: field.to_owned(), reason: complaint.reason() };
    if !extract.problems.contains(&problem) {
        extract.problems.push(problem);
    }
}

/// Spells the places that the way to an element took.
fn place_label(visit: &Visit<'_>, element: usize) -> String {
    let mut place = visit.get(element);
    if let Some(Way::Member(name)) = place.map(|place| place.way) {
        return name.to_owned();
    }
    let mut parts = Vec::new();
    while let Some(found) = place {
        if let Way::Element(number) = found.way {
            parts.push(number.to_string());
        }
        place = found.above.and_then(|above| visit.get(above));
    }
    parts.reverse();
    parts.join(".")
}
