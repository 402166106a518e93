//! What `kube` finds that knows nothing of the server.

use kube::core::GroupVersionKind;
use kube::discovery::{self, Discovery, Scope, verbs};

use crate::server::{Server, kind};

/// The kinds of the group, with their plurals, and whether they have namespaces.
const KINDS: [(&str, &str, bool); 6] = [
    ("Machine", "machines", true),
    ("NodeGroup", "nodegroups", true),
    ("Provider", "providers", false),
    ("Run", "runs", true),
    ("StateVersion", "stateversions", true),
    ("Tenant", "tenants", false),
];

/// Asserts what was found.
fn check(found: &Discovery, way: &str) {
    let group = found.get("rezuscloud.io").unwrap_or_else(|| panic!("{way}: no group"));
    assert_eq!(group.preferred_version(), Some("v1alpha1"), "{way}");
    let mut kinds = group.recommended_resources();
    kinds.sort_by(|(one, _), (other, _)| one.kind.cmp(&other.kind));
    let of = |(resource, can): &(kube::api::ApiResource, discovery::ApiCapabilities)| {
        assert_eq!(resource.api_version, "rezuscloud.io/v1alpha1", "{way}: {}", resource.kind);
        for verb in [verbs::GET, verbs::LIST, verbs::WATCH] {
            assert!(can.supports_operation(verb), "{way}: {verb} {}", resource.kind);
        }
        // Runs are made; nothing else is.
        assert_eq!(can.supports_operation(verbs::CREATE), resource.kind == "Run", "{way}: {}", resource.kind);
        for verb in [verbs::UPDATE, verbs::PATCH, verbs::DELETE, verbs::DELETE_COLLECTION] {
            assert!(!can.supports_operation(verb), "{way}: {verb} {}", resource.kind);
        }
        (resource.kind.clone(), resource.plural.clone(), can.scope == Scope::Namespaced)
    };
    let kinds: Vec<_> = kinds.iter().map(of).collect();
    let expected = KINDS.map(|(kind, plural, has_namespaces)| (kind.into(), plural.into(), has_namespaces));
    assert_eq!(kinds, expected, "{way}");
    let machine = GroupVersionKind::gvk("rezuscloud.io", "v1alpha1", "Machine");
    assert_eq!(found.resolve_gvk(&machine).unwrap().0, kind(), "{way}");
    let namespace = GroupVersionKind::gvk("", "v1", "Namespace");
    assert_eq!(found.resolve_gvk(&namespace).unwrap().0.plural, "namespaces", "{way}");
}

#[tokio::test]
async fn all_kinds_are_found_in_both_ways_and_one_by_one() {
    let server = Server::start().await;
    check(&Discovery::new(server.client()).run().await.unwrap(), "one list after another");
    check(&Discovery::new(server.client()).run_aggregated().await.unwrap(), "all at once");
    let group = discovery::group(&server.client(), "rezuscloud.io").await.unwrap();
    assert_eq!(group.recommended_resources().len(), KINDS.len());
    let machine = GroupVersionKind::gvk("rezuscloud.io", "v1alpha1", "Machine");
    let (found, _) = discovery::pinned_kind(&server.client(), &machine).await.unwrap();
    assert_eq!(found, kind());
    let version = server.client().apiserver_version().await.unwrap();
    assert!(version.git_version.contains("rezus"), "{version:?}");
}
