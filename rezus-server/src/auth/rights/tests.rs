//! Rules of requests, and how refusals are worded.

use rezus_core::access::{Access, Scope};

use super::*;

fn viewer() -> Identity {
    let prod = Scope::Tenants([TenantName::parse("prod").unwrap()].into());
    Identity { name: "ana".to_owned(), groups: Vec::new(), access: Access::of([(View, &prod)]), token: None }
}

#[test]
fn what_writes_or_shows_a_secret_has_a_name_in_the_trail() {
    for (method, route, right, action) in RULES {
        // A query may be too long for a URL.
        let is_query = route.starts_with("/prometheus/");
        let is_read =
            is_query || *method == "GET" && !route.starts_with("/state") && !route.ends_with("/body");
        assert_eq!(is_read, action.is_none(), "{method} {route}");
        assert_ne!(*right, Nobody, "{method} {route}");
        assert_eq!(matches!(right, InTenant(_)), route.contains("/tenants/{tenant}"), "{method} {route}");
    }
}

#[test]
fn paths_of_the_kubernetes_api_are_told_apart() {
    let right = |path: &str| of("GET", "/whatever", path).right;
    for path in
        ["/api", "/apis/", "/apis/rezuscloud.io", "/apis/rezuscloud.io/v1alpha1", "/api/v1", "/openapi/v3/x"]
    {
        assert_eq!(right(path), Anybody, "{path}");
    }
    let base = "/apis/rezuscloud.io/v1alpha1";
    for path in ["machines", "tenants", "providers/x"] {
        assert_eq!(right(&format!("{base}/{path}")), Somewhere(View), "{path}");
    }
    assert_eq!(right("/api/v1/namespaces"), Somewhere(View));
    for path in ["/api/v1/namespaces/a", "/api/v1/namespaces/a/events"] {
        assert_eq!((right(path), tenant_in(path).as_deref()), (InTenant(View), Some("a")), "{path}");
    }
    for path in ["tenants/a", "tenants/a/status", "namespaces/a/machines", "namespaces/a//machines/m/history"]
    {
        let path = format!("{base}/{path}");
        assert_eq!((right(&path), tenant_in(&path).as_deref()), (InTenant(View), Some("a")), "{path}");
    }
    for credential in ["kubeconfig", "talosconfig"] {
        let rule = of("GET", "/whatever", &format!("{base}/tenants/a/{credential}"));
        assert_eq!(rule, Rule { right: InTenant(Edit), action: Some("credential.read") });
    }
    assert_eq!(right("/elsewhere"), Nobody);
    assert_eq!(of("BREW", "/state", "/state").right, Anybody);
    assert_eq!(of("HEAD", "/metrics", "/metrics").right, Everywhere(View));
}

#[test]
fn a_refusal_is_worded_as_kubernetes_words_it() {
    let path = "/apis/rezuscloud.io/v1alpha1/namespaces/t/machines/x";
    let message = |path| format!("{:?}", refusal_of_kind(&viewer(), "GET", path).unwrap());
    let expected = "machines.rezuscloud.io \\\"x\\\" is forbidden: User \\\"ana\\\" cannot get resource \\\"machines\\\" in API group \\\"rezuscloud.io\\\" in the namespace \\\"t\\\"";
    assert!(message(path).contains(expected), "{}", message(path));
    let path = "/apis/rezuscloud.io/v1alpha1/namespaces/t/machines";
    let expected = "machines.rezuscloud.io is forbidden: User \\\"ana\\\" cannot list resource";
    assert!(message(path).contains(expected), "{}", message(path));
    assert!(refusal_of_kind(&viewer(), "GET", "/rezus/v1/tokens").is_none());
}

#[test]
fn what_is_no_tenants_name_is_for_those_who_may_everywhere() {
    assert!(check(&Identity::admin("root"), InTenant(Admin), Some("NO NAME")).is_ok());
    assert_eq!(check(&viewer(), InTenant(View), Some("NO NAME")), Err(View));
    assert_eq!(check(&viewer(), InTenant(View), Some("other")), Err(View));
    assert_eq!(check(&viewer(), InTenant(View), Some("prod")), Ok(()));
    assert_eq!(check(&viewer(), InTenant(Edit), Some("prod")), Err(Edit));
}
