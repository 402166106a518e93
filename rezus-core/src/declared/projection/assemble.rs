//! One machine from the parts that describe it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::parts::{self, Mark, Part};
use super::providers;
use crate::declared::ResourceAddress;
use crate::declared::index::{IndexRow, InstanceKey};
use crate::declared::mapping::extract::{Field, Found};
use crate::declared::resource::{
    Context, Decimal, Machine, NodeAddress, Places, Power, Problem, Provenance, Role, Shapes, Spot,
};

/// How many fields a machine has, more or less.
const USUAL_FIELDS: usize = 24;

/// The parts of one machine, and what was decided about it.
#[derive(Clone, Debug)]
pub(super) struct Members<'a> {
    pub(super) main: Part<'a>,
    /// Talos resources, sorted.
    pub(super) merged: Vec<Part<'a>>,
    pub(super) dropped: Vec<usize>,
    /// What only a look at other machines shows.
    pub(super) problems: Vec<Problem>,
}

/// A machine without names of objects, and its group as the provider spells it.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) machine: Machine,
    pub(super) group: Option<Found>,
}

/// An address that may become one of a machine.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) address: NodeAddress,
    source: &'a Spot,
}

/// What machines have in common, each once.
#[derive(Debug, Default)]
pub(super) struct Common {
    places: Places,
    shapes: Shapes,
    texts: HashSet<Arc<str>>,
}

impl Common {
    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// Tells of what the object itself says, attributes aside.
    fn of_object(&mut self, row: &IndexRow, rule: &str) -> Spot {
        Spot::new(row, self.places.of(rule, |_| {}))
    }
}

impl<'a> Members<'a> {
    pub(super) fn of(main: Part<'a>) -> Self {
        Self { main, merged: Vec::new(), dropped: Vec::new(), problems: Vec::new() }
    }

    /// Takes the first as the machine, and the others as what describes it.
    pub(super) fn of_several(mut parts: impl Iterator<Item = Part<'a>>) -> Option<Self> {
        let main = parts.next()?;
        Some(Self { merged: parts.collect(), ..Self::of(main) })
    }

    fn all(&self) -> impl Iterator<Item = &Part<'a>> {
        std::iter::once(&self.main).chain(&self.merged)
    }

    /// Returns the value that is believed: the one of the greatest precedence, of several the first.
    fn best(&self, field: Field) -> Option<&'a Found> {
        let found = self.all().filter_map(|part| part.found(field));
        found.reduce(|best, other| if other.precedence > best.precedence { other } else { best })
    }
}

/// Returns the addresses of all parts, sorted. The machine's own mapping says what kind an address has, before those
/// of Talos resources.
pub(super) fn candidates<'a>(members: &Members<'a>) -> Vec<Candidate<'a>> {
    let mut seen: BTreeSet<Mark> = BTreeSet::new();
    let mut candidates: BTreeMap<NodeAddress, &Spot> = BTreeMap::new();
    for part in members.all() {
        let fresh = part
            .extract
            .addresses
            .iter()
            .filter_map(|(address, source)| Some((address, Mark::of(&address.address)?, source)));
        let fresh: Vec<_> = fresh.filter(|(_, mark, _)| !seen.contains(mark)).collect();
        for (address, mark, source) in fresh {
            seen.insert(mark);
            let kept = candidates.entry(parts::canonical(address)).or_insert(source);
            *kept = (*kept).min(source);
        }
    }
    candidates.into_iter().map(|(address, source)| Candidate { address, source }).collect()
}

pub(super) fn machine(members: &Members<'_>, rows: &[IndexRow], common: &mut Common) -> Assembled {
    let main = &members.main;
    let provenance = Vec::with_capacity(USUAL_FIELDS);
    let mut builder = Builder { members, common, provenance, problems: BTreeSet::new() };
    builder.own_fields();
    let provider_source = builder.common.text(&providers::source(&main.row.provider).unwrap_or_default());
    let addresses = builder.addresses();
    let also_known_as = builder.also_known_as();
    let group = members.best(Field::NodeGroup);
    if let Some(group) = group {
        builder.note("nodeGroup", Cow::Borrowed(&group.source));
    }
    let machine = Machine {
        object_name: String::new(),
        name: builder.name(),
        address: main.row.address.clone(),
        element: main.extract.element.clone(),
        resource_type: builder.common.text(&main.row.resource_type),
        provider: builder.common.text(&main.extract.mapping),
        provider_source,
        provider_id: builder.text(Field::ProviderId, "providerID"),
        hostname: builder.text(Field::Hostname, "hostname"),
        role: builder.role(),
        node_group: None,
        addresses,
        instance_type: builder.common_text(Field::InstanceType, "instanceType"),
        region: builder.common_text(Field::Region, "region"),
        zone: builder.common_text(Field::Zone, "zone"),
        image: builder.common_text(Field::Image, "image"),
        cpus: builder.read(Field::Cpus, "cpus", "a number of at most 15 digits", exact),
        memory_mib: builder.read(Field::MemoryMib, "memoryMiB", "a whole number of MiB", whole),
        recorded_power: builder.read(Field::Power, "recordedPower", "a power state", Power::parse),
        tainted: main.row.tainted,
        also_known_as,
        problems: builder.problems(),
        provenance: builder.provenance(),
        fed_by: fed_by(members, rows),
        context: Context {
            merged: members
                .merged
                .iter()
                .map(|part| (part.row.address.clone(), part.extract.element.clone()))
                .collect(),
            dropped: members.dropped.clone(),
            problems: sorted(members.problems.clone()),
        },
    };
    Assembled { machine, group: group.cloned() }
}

/// A number that is the same for whoever reads it as a double; one of 400 digits would cost some clients the whole list.
fn exact(text: &str) -> Option<Decimal> {
    let digits = |number: &Decimal| number.as_str().bytes().filter(u8::is_ascii_digit).count();
    Decimal::parse(text).filter(|number| digits(number) <= 15)
}

fn whole(text: &str) -> Option<u64> {
    Decimal::parse(text)?.as_str().parse().ok()
}

fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    problems.dedup();
    problems
}

/// Returns the objects that were read: the machine's own, then all others, sorted.
fn fed_by(members: &Members<'_>, rows: &[IndexRow]) -> Vec<(ResourceAddress, Option<String>)> {
    let read = members.all().flat_map(|part| &part.extract.read).filter_map(|row| rows.get(*row));
    let others: BTreeSet<_> = read
        .chain(members.merged.iter().map(|part| part.row))
        .map(|row| (&row.address, &row.deposed))
        .filter(|other| *other != (&members.main.row.address, &members.main.row.deposed))
        .collect();
    let own = std::iter::once((&members.main.row.address, &members.main.row.deposed));
    let mut all: Vec<_> =
        own.chain(others).map(|(address, deposed)| (address.clone(), deposed.clone())).collect();
    all.shrink_to_fit();
    all
}

impl Assembled {
    /// Adds a problem that only a look at other machines shows.
    pub(super) fn add_outside(&mut self, problem: &Problem) {
        for problems in [&mut self.machine.problems, &mut self.machine.context.problems] {
            problems.push(problem.clone());
            problems.sort();
            problems.dedup();
        }
    }
}

struct Builder<'m, 'a> {
    members: &'m Members<'a>,
    common: &'m mut Common,
    /// Each field once.
    provenance: Vec<(Cow<'static, str>, Cow<'a, Spot>)>,
    problems: BTreeSet<Problem>,
}

impl<'a> Builder<'_, 'a> {
    fn note(&mut self, field: impl Into<Cow<'static, str>>, source: Cow<'a, Spot>) {
        self.provenance.push((field.into(), source));
    }

    fn provenance(&mut self) -> Provenance {
        self.provenance.sort_by(|(a, _), (b, _)| a.cmp(b));
        let sorted = self.provenance.iter().map(|(field, source)| (&**field, &**source));
        Provenance::of_sorted(sorted, &mut self.common.shapes)
    }

    /// Notes where that comes from which the object itself says, attributes aside.
    fn own_fields(&mut self) {
        let row = self.members.main.row;
        let mut fields = vec![("address", "address"), ("resourceType", "type"), ("provider", "mapping")];
        if !row.provider.is_empty() {
            fields.push(("providerSource", "provider"));
        }
        fields.push(("tainted", "status"));
        for (field, rule) in fields {
            let source = self.common.of_object(row, rule);
            self.note(field, Cow::Owned(source));
        }
    }

    /// Returns the name; that of a Talos resource is its key, unless its mapping knows better.
    fn name(&mut self) -> Option<String> {
        let named = self.text(Field::Name, "name");
        let main = &self.members.main;
        match &main.row.key {
            Some(InstanceKey::Text(key)) if named.is_none() && main.is_talos() && !key.is_empty() => {
                let source = self.common.of_object(main.row, "index_key");
                self.note("name", Cow::Owned(source));
                Some(key.clone())
            }
            _ => named,
        }
    }

    fn text(&mut self, field: Field, name: &'static str) -> Option<String> {
        self.found(field, name).map(ToOwned::to_owned)
    }

    /// Returns a text that other machines are likely to have as well.
    fn common_text(&mut self, field: Field, name: &'static str) -> Option<Arc<str>> {
        self.found(field, name).map(|text| self.common.text(text))
    }

    fn found(&mut self, field: Field, name: &'static str) -> Option<&'a str> {
        let found = self.members.best(field)?;
        self.note(name, Cow::Borrowed(&found.source));
        Some(&found.value)
    }

    fn read<T>(
        &mut self,
        field: Field,
        name: &'static str,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let found = self.members.best(field)?;
        let value = read(&found.value);
        if value.is_some() {
            self.note(name, Cow::Borrowed(&found.source));
        } else {
            let reason = format!("what {} holds is not {what}", place(&found.source));
            self.problems.insert(Problem { field: name.to_owned(), reason });
        }
        value
    }

    fn role(&mut self) -> Option<Role> {
        let role = self.read(Field::Role, "role", "a role", Role::parse)?;
        let best = self.members.best(Field::Role)?;
        let all = self.members.all().filter_map(|part| part.found(Field::Role));
        let other = all
            .filter_map(|found| Some((Role::parse(&found.value)?, found)))
            .find(|(other, _)| *other != role);
        if let Some((other, found)) = other {
            let (role, other) = (role.as_str(), other.as_str());
            let (here, there) = (&best.source.address, &found.source.address);
            self.problems.insert(Problem {
                field: "role".to_owned(),
                reason: format!(
                    "{role} by {here} ({}), which is believed, but {other} by {there} ({})",
                    best.source.place.rule, found.source.place.rule
                ),
            });
        }
        Some(role)
    }

    fn addresses(&mut self) -> Vec<NodeAddress> {
        let candidates = candidates(self.members).into_iter().enumerate();
        let kept = candidates.filter(|(place, _)| !self.members.dropped.contains(place));
        let mut addresses = Vec::new();
        for (place, (_, Candidate { address, source })) in kept.enumerate() {
            self.note(format!("addresses[{place}].address"), Cow::Borrowed(source));
            addresses.push(address);
        }
        addresses.shrink_to_fit();
        addresses
    }

    fn also_known_as(&mut self) -> Vec<ResourceAddress> {
        let mut known: BTreeMap<&ResourceAddress, Cow<'a, Spot>> = BTreeMap::new();
        for part in &self.members.merged {
            let addresses = part.extract.addresses.iter().map(|(_, source)| source);
            let source = addresses
                .min()
                .map_or_else(|| Cow::Owned(self.common.of_object(part.row, "address")), Cow::Borrowed);
            known.entry(&part.row.address).or_insert(source);
        }
        let mut addresses = Vec::new();
        for (place, (address, source)) in known.into_iter().enumerate() {
            self.note(format!("alsoKnownAs[{place}]"), source);
            addresses.push(address.clone());
        }
        addresses.shrink_to_fit();
        addresses
    }

    /// Returns all problems; those of a Talos resource say whose they are.
    fn problems(&mut self) -> Vec<Problem> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(self.members.main.extract.problems.iter().cloned());
        for part in &self.members.merged {
            problems.extend(part.extract.problems.iter().map(|problem| Problem {
                field: problem.field.clone(),
                reason: format!("{}: {}", part.row.address, problem.reason),
            }));
        }
        problems.extend(self.members.problems.iter().cloned());
        problems.into_iter().collect()
    }
}

/// Says where a value is, for a message.
fn place(source: &Spot) -> String {
    match &*source.place.rule {
        "" => source.address.to_string(),
        rule => format!("{} ({rule})", source.address),
    }
}
