//! What a state declares in the form of Kubernetes objects, as Kubernetes clients list and watch them.

pub mod accept;
pub mod age;
pub mod catalogue;
mod compressed;
pub mod credentials;
pub mod discovery;
mod document;
pub mod form;
pub mod hub;
pub mod item;
mod join;
pub mod kinds;
mod list;
mod metrics;
pub mod object;
mod observed;
pub mod openapi;
pub mod past;
pub mod query;
pub mod review;
mod routes;
mod run;
pub mod selector;
pub mod show;
pub mod sight;
mod then;
mod watch;

use rezus_core::base::TenantName;
use rezus_core::declared::projection::{Change, FieldChange, ResourceChange, ResourceKind, diff};
use rezus_core::declared::resource::Projection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use object::Object;
pub use routes::{ACTS, PATHS, RUNS, can_be_watched, is_log, routes};
pub use run::follows;

/// A list of objects of several kinds, as `kubectl get -o json` prints it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Object>,
}

/// What of an object is read back, to compare what was expected.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Expected {
    /// The objects.
    pub items: Vec<Value>,
}

/// Shows all that a projection declares: the tenant under `name`, its node groups, its machines.
pub fn list(name: &str, projection: &Projection) -> List {
    let tenant = show::cluster(name, projection);
    let items = std::iter::once(tenant)
        .chain(projection.node_groups.iter().map(show::bare_node_group))
        .chain(projection.machines.iter().map(show::bare_machine));
    List { api_version: "v1", kind: "List", items: items.collect() }
}

/// Tells whether a text can be a label's value: up to 63 of letters, digits, `-`, `_` and `.`, a letter or digit at both
/// ends.
pub(crate) fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Tells whether a text can be a label's key: a name of up to 63 characters, with a DNS subdomain and a slash before it or
/// none.
pub(crate) fn is_label_key(key: &str) -> bool {
    selector::is_key(key)
}

/// Shows what differs between two versions of a tenant's state, resource by resource.
pub fn changes(tenant: &TenantName, old: &Projection, new: &Projection) -> Vec<Value> {
    let shown = |resource: ResourceChange| {
        let mut shown = change(&resource.change);
        let name = if resource.kind == ResourceKind::Cluster { tenant.as_str() } else { &resource.name };
        shown["kind"] = resource.kind.as_str().into();
        shown["name"] = name.into();
        shown
    };
    diff(old, new).into_iter().map(shown).collect()
}

/// Shows what became of a resource.
fn change(change: &Change) -> Value {
    let parsed = |text: &Option<String>| serde_json::from_str::<Value>(text.as_ref()?).ok();
    match change {
        Change::Added => json!({ "change": "added" }),
        Change::Removed => json!({ "change": "removed" }),
        Change::Changed { fields } => {
            let shown = |field: &FieldChange| {
                let mut shown = json!({ "field": field.field });
                for (side, value) in [("before", parsed(&field.before)), ("after", parsed(&field.after))] {
                    if let Some(value) = value {
                        shown[side] = value;
                    }
                }
                shown
            };
            json!({ "change": "changed", "fields": fields.iter().map(shown).collect::<Vec<_>>() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_kubernetes_takes() {
        for good in ["a", "A1", "eu-1", "a_b.c"] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a/b", "ä", &"x".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
