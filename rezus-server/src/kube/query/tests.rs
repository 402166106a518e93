//! Which parameters mean what, and which are refused.

use axum::http::StatusCode;

use super::*;
use crate::kube::kinds::MACHINE;

fn parse(query: &str) -> Result<Options, ApiError> {
    Options::parse(query, &MACHINE)
}

fn list_of(query: &str) -> (Option<usize>, At) {
    match parse(query).unwrap().ask {
        Ask::List { limit, at } => (limit, at),
        Ask::Watch { .. } => panic!("{query} is a watch"),
    }
}

fn watch_of(query: &str) -> (Since, bool, Option<Duration>) {
    match parse(query).unwrap().ask {
        Ask::Watch { from, bookmarks, timeout } => (from, bookmarks, timeout),
        Ask::List { .. } => panic!("{query} is a list"),
    }
}

#[test]
fn lists_are_of_when_they_are_asked_for() {
    assert_eq!(list_of(""), (None, At::Newest));
    assert_eq!(list_of("&limit=500"), (Some(500), At::Newest));
    assert_eq!(list_of("limit=0&resourceVersion=0"), (None, At::Newest));
    assert_eq!(list_of("limit=-3&resourceVersion="), (None, At::Newest));
    assert_eq!(list_of("resourceVersion=7"), (None, At::NotBefore(7)));
    assert_eq!(list_of("resourceVersion=7&resourceVersionMatch=NotOlderThan"), (None, At::NotBefore(7)));
    assert_eq!(list_of("resourceVersion=7&resourceVersionMatch=Exact"), (None, At::Exact(7)));
    assert_eq!(list_of("watch=0&watch=1&nonsense=%zz"), (None, At::Newest));
    let cursor = Cursor::new(9, "machines", Some("prod"), ("prod", "web"));
    assert_eq!(list_of(&format!("continue={}&limit=2", cursor.token())), (Some(2), At::Rest(cursor)));
}

#[test]
fn watches_begin_where_they_are_told() {
    let present = |is_marked, not_before| Since::Present { is_marked, not_before };
    assert_eq!(watch_of("watch=true"), (present(false, 0), false, None));
    assert_eq!(watch_of("watch&resourceVersion=0"), (present(false, 0), false, None));
    assert_eq!(
        watch_of("watch=maybe&resourceVersion=12&allowWatchBookmarks=TRUE"),
        (Since::After(12), true, None)
    );
    let initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert_eq!(watch_of(initial), (present(false, 0), false, None));
    assert_eq!(
        watch_of(&format!("{initial}&allowWatchBookmarks=1&resourceVersion=5&timeoutSeconds=3")),
        (present(true, 5), true, Some(Duration::from_secs(3)))
    );
    let none = "watch=1&sendInitialEvents=False&resourceVersionMatch=NotOlderThan";
    assert_eq!(watch_of(none), (Since::Now, false, None));
    assert_eq!(watch_of(&format!("{none}&resourceVersion=5")), (Since::After(5), false, None));
}

#[test]
fn what_cannot_be_read_is_refused() {
    for (query, named) in [
        ("limit=ten", "limit"),
        ("watch=1&timeoutSeconds=5m", "timeoutSeconds"),
        ("resourceVersion=abc", "resourceVersion"),
        ("watch=1&resourceVersion=-1", "resourceVersion"),
        ("continue=%00", "continue"),
        ("continue=e30", "continue"),
        ("includeObject=All", "includeObject"),
        ("labelSelector=a%20b", "unable to parse requirement"),
        ("fieldSelector=spec.nosuch%3D1", "field label not supported: spec.nosuch"),
        ("version=x", "version"),
        ("version=1&watch=1", "version"),
        ("version=1&limit=5", "version"),
    ] {
        let error = parse(query).unwrap_err();
        assert_eq!(error.code(), StatusCode::BAD_REQUEST, "{query}");
        assert!(error.message().contains(named), "{query}: {}", error.message());
    }
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=5&resourceVersionMatch=Newest",
        "continue=abc&resourceVersionMatch=Exact&resourceVersion=4",
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "watch=1&sendInitialEvents=true",
        "watch=1&resourceVersionMatch=NotOlderThan",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
    ] {
        let error = parse(query).unwrap_err();
        assert_eq!(error.code(), StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        assert!(error.message().starts_with("ListOptions.meta.k8s.io \"\" is invalid: "), "{query}");
    }
}
