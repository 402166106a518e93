//! What differs between projections, and what is remembered of objects.

use super::*;
use crate::base::TenantName;
use crate::declared::Lineage;

fn of(fields: &[(Field, &str)]) -> State {
    State::default().machine("hcloud_server.a", fields, &["10.0.0.1"])
}

#[test]
fn differences_are_fields_of_resources() {
    let old = of(&[(Field::Name, "a"), (Field::NodeGroup, "g"), (Field::Image, "1")])
        .machine("hcloud_server.b", &[(Field::Name, "b"), (Field::NodeGroup, "g")], &[])
        .project();
    let new = of(&[(Field::Name, "a"), (Field::NodeGroup, "g"), (Field::Image, "2"), (Field::Cpus, "1.50")])
        .machine("hcloud_server.c", &[(Field::Name, "c"), (Field::NodeGroup, "h")], &[])
        .project();
    let changes = diff(&old, &new);
    let shown = |change: &ResourceChange| match &change.change {
        Change::Added => format!("{} + {}", change.kind.as_str(), change.name),
        Change::Removed => format!("{} - {}", change.kind.as_str(), change.name),
        Change::Changed { fields } => {
            let field = |field: &FieldChange| format!("{} {:?} {:?}", field.field, field.before, field.after);
            let fields: Vec<_> = fields.iter().map(field).collect();
            format!("{} ~ {}: {}", change.kind.as_str(), change.name, fields.join(", "))
        }
    };
    assert_eq!(
        changes.iter().map(shown).collect::<Vec<_>>(),
        [
            r#"NodeGroup ~ g: count Some("2") Some("1"), machines Some("[\"a\",\"b\"]") Some("[\"a\"]")"#,
            "NodeGroup + h",
            r#"Machine ~ a: image Some("\"1\"") Some("\"2\""), cpus None Some("1.5")"#,
            "Machine - b",
            "Machine + c",
        ]
    );
    assert!(diff(&new, &new).is_empty());
}

#[test]
fn a_change_of_the_cluster_has_no_name() {
    let old = State::default().project();
    let new = State::default().cluster("talos_cluster.a", &[(Field::ClusterName, "x")]).project();
    let [change] = diff(&old, &new).try_into().unwrap();
    assert_eq!((change.kind, &*change.name), (ResourceKind::Cluster, ""));
}

#[test]
fn a_spec_moves_its_generation_and_nothing_else_does() {
    let (tenant, lineage) = (TenantName::parse("acme").unwrap(), Lineage::new("l"));
    let version = |number| VersionNumber::new(number).unwrap();
    let entry = |state: &State, previous: Option<&History>, number| {
        let projection = state.project();
        let identified = identified(&projection);
        let one = identified.iter().find(|one| one.kind == ResourceKind::Machine).unwrap();
        let subject = Subject { tenant: &tenant, lineage: &lineage, kind: one.kind, identity: &one.identity };
        History::next(previous, subject, version(number), one.digest)
    };
    let first = entry(&of(&[(Field::Name, "a")]), None, 3);
    assert_eq!((first.first_version, first.generation()), (version(3), 3));
    let same = entry(&of(&[(Field::Name, "a")]).object("null_resource.x"), Some(&first), 4);
    assert_eq!(same, first);
    let changed = entry(&of(&[(Field::Name, "a"), (Field::Image, "i")]), Some(&same), 5);
    assert_eq!((&changed.uid, changed.first_version, changed.generation()), (&first.uid, version(3), 5));
    let again = entry(&of(&[(Field::Name, "a")]), None, 7);
    assert_ne!(again.uid, first.uid);
    let other = State::default().machine("hcloud_server.b", &[(Field::Name, "a")], &[]);
    let other = entry(&other, Some(&changed), 8);
    assert_eq!((other.first_version, other.generation()), (version(8), 8), "another object of that name");
}

#[test]
fn uids_are_fixed_for_ever() {
    let (tenant, lineage) = (TenantName::parse("acme").unwrap(), Lineage::new("l"));
    let of = |kind, identity| uid(&tenant, &lineage, kind, identity, VersionNumber::FIRST);
    // By Python's uuid.uuid5.
    assert_eq!(of(ResourceKind::Machine, "hcloud_server.a"), "72b1f60f-4ab8-55eb-83be-5399f3e52a77");
    assert_ne!(of(ResourceKind::Machine, "a"), of(ResourceKind::NodeGroup, "a"));
}
