//! Reviews: read in both forms, whatever is sent, and answered by one table.

use axum::http::HeaderValue;
use proptest::prelude::*;
use rezus_core::access::{Role, Scope};
use rezus_core::base::TenantName;

use super::*;

/// Somebody with a role in one tenant, in all, or in none.
fn somebody(of_acme: Option<Role>, everywhere: Option<Role>) -> Identity {
    let acme = Scope::Tenants([TenantName::parse("acme").unwrap()].into());
    let grants = [of_acme.map(|role| (role, &acme)), everywhere.map(|role| (role, &Scope::All))];
    Identity {
        name: "ann".to_owned(),
        groups: vec!["ops".to_owned()],
        access: Access::of(grants.into_iter().flatten()),
        token: None,
    }
}

fn nobody() -> Identity {
    somebody(None, None)
}

fn viewer() -> Identity {
    somebody(Some(Role::View), None)
}

fn editor() -> Identity {
    somebody(Some(Role::Edit), None)
}

fn admin() -> Identity {
    somebody(None, Some(Role::Admin))
}

/// `verb group/resource/subresource namespace name`, `-` for nothing.
fn action(text: &str) -> Action {
    let words: Vec<&str> = text.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
    let parts: Vec<&str> = words[1].split('/').map(|part| if part == "-" { "" } else { part }).collect();
    Action::Resource(ResourceAction {
        verb: words[0].to_owned(),
        group: parts[0].to_owned(),
        resource: parts[1].to_owned(),
        subresource: parts.get(2).copied().unwrap_or_default().to_owned(),
        namespace: words[2].to_owned(),
        name: words[3].to_owned(),
    })
}

#[test]
fn what_may_be_done_is_what_the_role_allows() {
    // For: nobody, a viewer and an editor of acme, an admin.
    for (text, expected) in [
        ("list rezuscloud.io/machines acme -", [false, true, true, true]),
        ("get rezuscloud.io/machines acme m1", [false, true, true, true]),
        ("get rezuscloud.io/machines/status acme m1", [false, true, true, true]),
        ("get rezuscloud.io/machines/provenance acme m1", [false, true, true, true]),
        ("watch rezuscloud.io/machines - -", [false, true, true, true]),
        ("list rezuscloud.io/machines other -", [false, false, false, true]),
        ("list -/events acme -", [false, true, true, true]),
        ("list -/namespaces - -", [false, true, true, true]),
        // kubectl always says a namespace.
        ("list rezuscloud.io/tenants default -", [false, true, true, true]),
        ("get rezuscloud.io/tenants - acme", [false, true, true, true]),
        ("get rezuscloud.io/tenants - other", [false, false, false, true]),
        ("get rezuscloud.io/tenants/kubeconfig - acme", [false, false, true, true]),
        ("get rezuscloud.io/tenants/talosconfig - other", [false, false, false, true]),
        ("get rezuscloud.io/tenants/kubeconfig - -", [false, false, false, true]),
        ("list rezuscloud.io/tenants/kubeconfig - acme", [false, false, false, false]),
        ("list rezuscloud.io/runs acme -", [false, true, true, true]),
        ("create rezuscloud.io/runs acme -", [false, false, true, true]),
        ("create rezuscloud.io/runs other -", [false, false, false, true]),
        ("create rezuscloud.io/runs - -", [false, false, false, true]),
        ("create rezuscloud.io/runs/approve acme r", [false, false, true, true]),
        ("create rezuscloud.io/runs/cancel acme r", [false, false, true, true]),
        ("create rezuscloud.io/runs/dismiss acme r", [false, false, true, true]),
        ("get rezuscloud.io/runs/approve acme r", [false; 4]),
        ("get rezuscloud.io/runs/log acme r", [false, true, true, true]),
        ("delete rezuscloud.io/runs acme r", [false; 4]),
        ("patch rezuscloud.io/runs acme r", [false; 4]),
        ("create rezuscloud.io/machines acme -", [false; 4]),
        ("list rezuscloud.io/providers - -", [false, true, true, true]),
        ("create authorization.k8s.io/selfsubjectaccessreviews - -", [true, true, true, true]),
        ("create authentication.k8s.io/selfsubjectreviews - -", [true, true, true, true]),
        ("get authentication.k8s.io/selfsubjectreviews - -", [false; 4]),
        ("delete rezuscloud.io/machines acme m1", [false; 4]),
        ("create -/namespaces - -", [false; 4]),
        ("* rezuscloud.io/machines acme -", [false; 4]),
        ("* */* - -", [false; 4]),
        ("list */* - -", [false; 4]),
        ("list -/* acme -", [false, true, true, true]),
        ("list rezuscloud.io/* acme -", [false, true, true, true]),
        ("list rezuscloud.io/* other -", [false, false, false, true]),
        // Secrets are among what can be got of tenants.
        ("get rezuscloud.io/* acme -", [false, false, false, true]),
        ("get rezuscloud.io/machines/* acme -", [false, true, true, true]),
        ("list rezuscloud.io/machines/* acme -", [false; 4]),
        ("delete rezuscloud.io/* acme -", [false; 4]),
        ("get -/pods acme -", [false; 4]),
        ("list apps/machines acme -", [false; 4]),
        ("bless rezuscloud.io/machines acme -", [false; 4]),
        ("- rezuscloud.io/machines acme -", [false; 4]),
    ] {
        let found =
            [nobody(), viewer(), editor(), admin()].map(|who| rights::decide(&who, &action(text)).is_ok());
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_no_says_why() {
    for (text, why) in [
        (
            "delete rezuscloud.io/machines acme m1",
            "machines is read-only: change the tenant's configuration and apply it with tofu or terraform",
        ),
        (
            "delete rezuscloud.io/runs acme r",
            "runs are made, approved and cancelled, and neither changed nor deleted",
        ),
        (
            "list rezuscloud.io/machines other -",
            r#"User "ann" cannot list resource "machines" in API group "rezuscloud.io" in the namespace "other""#,
        ),
        (
            "get rezuscloud.io/tenants/kubeconfig - acme",
            r#"User "ann" cannot get resource "tenants/kubeconfig" in API group "rezuscloud.io" at the cluster scope"#,
        ),
        (
            "* -/* acme -",
            "not all of it: namespaces is read-only: change the tenant's configuration and apply it with tofu or terraform",
        ),
        ("get -/pods/log acme -", "no such resource is served in that API group"),
        (
            "bless -/events acme -",
            "the verbs of resources are get, list, watch, create, update, patch, delete, deletecollection",
        ),
        (
            "list -/events NO/tenant's -",
            r#"User "ann" cannot list resource "events" in API group "" in a namespace that is no tenant"#,
        ),
    ] {
        assert_eq!(rights::decide(&viewer(), &action(text)), Err(why.to_owned()), "{text}");
    }
}

#[test]
fn paths_that_are_no_resources_are_open_to_read() {
    for (verb, path, expected) in [
        ("get", "/version", true),
        ("get", "/healthz", true),
        ("get", "/openapi/v3", true),
        ("get", "/apis/rezuscloud.io", true),
        ("get", "/apis", true),
        ("get", "/", false),
        ("get", "*", false),
        ("get", "/rezus/v1/tenants", false),
        ("get", "/versions", false),
        ("post", "/version", false),
        ("*", "/version", false),
        ("", "/version", false),
    ] {
        let action = Action::Path(PathAction { path: path.to_owned(), verb: verb.to_owned() });
        assert_eq!(rights::decide(&viewer(), &action).is_ok(), expected, "{verb} {path}");
    }
}

/// All actions that rules name, as [`action`] reads them.
fn actions(rules: &Value, namespace: &str) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut actions = Vec::new();
    for rule in rules["resourceRules"].as_array().unwrap() {
        let name = texts(&rule["resourceNames"]).pop().unwrap_or_else(|| "-".to_owned());
        for group in texts(&rule["apiGroups"]) {
            let group = if group.is_empty() { "-" } else { group.as_str() };
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    actions.push(format!("{verb} {group}/{resource} {namespace} {name}"));
                }
            }
        }
    }
    actions
}

#[test]
fn rules_list_what_reviews_allow_and_nothing_else() {
    for who in [nobody(), viewer(), editor(), admin()] {
        for namespace in ["acme", "other"] {
            let listed = actions(&rights::rules(&who, namespace), namespace);
            for text in &listed {
                assert_eq!(rights::decide(&who, &action(text)), Ok(()), "{who:?} {text}");
            }
            let all = actions(&rights::rules(&admin(), namespace), namespace);
            for text in all.iter().filter(|text| !listed.contains(text)) {
                assert!(rights::decide(&who, &action(text)).is_err(), "{who:?} {text}");
            }
        }
    }
    let viewer = rights::rules(&viewer(), "acme");
    assert!(!viewer.to_string().contains("kubeconfig"), "{viewer}");
    let editor = rights::rules(&editor(), "acme");
    let secrets = json!({
        "verbs": ["get"],
        "apiGroups": ["rezuscloud.io"],
        "resourceNames": ["acme"],
        "resources": ["tenants/kubeconfig", "tenants/talosconfig"],
    });
    assert!(editor["resourceRules"].as_array().unwrap().contains(&secrets), "{editor}");
    assert_eq!(editor["incomplete"], false);
    assert_eq!(actions(&rights::rules(&nobody(), "acme"), "acme").len(), 3, "the reviews themselves");
}

#[test]
fn answers_have_the_shape_that_clients_read() {
    let access = Review::Access(action("list rezuscloud.io/machines acme -"));
    assert_eq!(
        access.answer(&viewer()),
        json!({
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {},
            "status": { "allowed": true },
        })
    );
    assert_eq!(
        Review::Identity.answer(&viewer()),
        json!({
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "status": { "userInfo": { "username": "ann", "groups": ["ops"] } },
        })
    );
}

/// A field of a message, of a text or a message below it.
fn field(number: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 127 {
        bytes.push(u8::try_from(length & 127).unwrap() | 128);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend(content);
    bytes
}

fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, version), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, type_meta), field(2, raw), field(3, ""), field(4, "")].concat()
}

fn read(kind: Kind, media: Option<&str>, body: &[u8]) -> Result<Review, StatusCode> {
    let mut headers = HeaderMap::new();
    if let Some(media) = media {
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
    }
    Review::read(kind, &headers, body).map_err(|error| error.code())
}

const PROTOBUF: Option<&str> = Some("application/vnd.kubernetes.protobuf");
const AUTHORIZATION: &str = "authorization.k8s.io/v1";

#[test]
fn both_forms_are_read_alike() {
    let long = "n".repeat(300);
    let expected = Action::Resource(ResourceAction {
        namespace: "acme".to_owned(),
        verb: "list".to_owned(),
        group: "rezuscloud.io".to_owned(),
        resource: "machines".to_owned(),
        subresource: "status".to_owned(),
        name: long.clone(),
    });
    let attributes = [
        field(1, "acme"),
        field(2, "list"),
        field(3, "rezuscloud.io"),
        field(4, "*"),
        field(5, "machines"),
        field(6, "status"),
        field(7, &long),
        // What is not known: a number, two fixed ones, selectors.
        vec![10 << 3, 0xff, 1, 11 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0, 12 << 3 | 5, 0, 0, 0, 0],
        field(8, [1, 2, 3]),
    ]
    .concat();
    let raw = [field(1, []), field(2, field(1, attributes)), field(3, field(1, [9]))].concat();
    let body = envelope(AUTHORIZATION, Kind::Access.kind(), &raw);
    assert_eq!(read(Kind::Access, PROTOBUF, &body), Ok(Review::Access(expected.clone())));
    let json = json!({
        "kind": "SelfSubjectAccessReview",
        "apiVersion": AUTHORIZATION,
        "metadata": { "creationTimestamp": null },
        "spec": { "resourceAttributes": {
            "namespace": "acme", "verb": "list", "group": "rezuscloud.io", "version": "*",
            "resource": "machines", "subresource": "status", "name": long,
        } },
        "status": { "allowed": false },
    })
    .to_string();
    for media in [None, Some("application/json"), Some("Application/JSON; charset=utf-8")] {
        assert_eq!(read(Kind::Access, media, json.as_bytes()), Ok(Review::Access(expected.clone())));
    }

    let path = Action::Path(PathAction { path: "/version".to_owned(), verb: "get".to_owned() });
    let raw = field(2, field(2, [field(1, "/version"), field(2, "get")].concat()));
    let body = envelope(AUTHORIZATION, Kind::Access.kind(), &raw);
    assert_eq!(read(Kind::Access, PROTOBUF, &body), Ok(Review::Access(path.clone())));
    let json = br#"{"spec":{"nonResourceAttributes":{"path":"/version","verb":"get"}}}"#;
    assert_eq!(read(Kind::Access, None, json), Ok(Review::Access(path)));

    let body = envelope(AUTHORIZATION, Kind::Rules.kind(), &field(2, field(1, "acme")));
    assert_eq!(read(Kind::Rules, PROTOBUF, &body), Ok(Review::Rules("acme".to_owned())));
    assert_eq!(
        read(Kind::Rules, None, br#"{"spec":{"namespace":"acme"}}"#),
        Ok(Review::Rules("acme".to_owned()))
    );
    let body = envelope("authentication.k8s.io/v1", Kind::Identity.kind(), &field(1, []));
    assert_eq!(read(Kind::Identity, PROTOBUF, &body), Ok(Review::Identity));
    assert_eq!(read(Kind::Identity, None, b"{}"), Ok(Review::Identity));
}

#[test]
fn what_is_no_review_is_refused() {
    let access = |spec: &[u8]| envelope(AUTHORIZATION, Kind::Access.kind(), &field(2, spec));
    let sound = access(&field(1, field(2, "get")));
    assert!(read(Kind::Access, PROTOBUF, &sound).is_ok());
    for (what, media, body) in [
        ("no JSON", None, b"nonsense".to_vec()),
        ("nothing", None, Vec::new()),
        ("a list", None, b"[]".to_vec()),
        ("neither", None, b"{\"spec\":{}}".to_vec()),
        ("both", None, br#"{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}"#.to_vec()),
        ("another kind", None, br#"{"kind":"Pod","spec":{"resourceAttributes":{}}}"#.to_vec()),
        ("another version", None, br#"{"apiVersion":"v1","spec":{"resourceAttributes":{}}}"#.to_vec()),
        ("no envelope", PROTOBUF, sound[4..].to_vec()),
        ("an empty envelope", PROTOBUF, b"k8s\0".to_vec()),
        ("half of it", PROTOBUF, sound[..sound.len() - 9].to_vec()),
        ("neither", PROTOBUF, access(&[])),
        ("a group", PROTOBUF, access(&[1 << 3 | 3])),
        ("field 0", PROTOBUF, access(&[2, 0])),
        ("an endless number", PROTOBUF, access(&[0x80; 16])),
        ("no text", PROTOBUF, access(&field(1, field(2, [0xff])))),
        ("another kind", PROTOBUF, envelope("v1", "Pod", &field(2, field(1, field(2, "get"))))),
        ("compressed", PROTOBUF, [sound.clone(), field(3, "gzip")].concat()),
        ("a length beyond all", PROTOBUF, [b"k8s\0\x12".to_vec(), vec![0xff; 9], vec![1]].concat()),
    ] {
        assert_eq!(read(Kind::Access, media, &body), Err(StatusCode::BAD_REQUEST), "{what}");
    }
    for media in ["text/plain", "application/yaml", "", "application/vnd.kubernetes.protobuffer"] {
        assert_eq!(
            read(Kind::Access, Some(media), &sound),
            Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            "{media}"
        );
    }
}

#[test]
fn an_error_does_not_repeat_the_body() {
    let body = br#"{"spec":"canary-secret"}"#;
    let error = Review::read(Kind::Access, &HeaderMap::new(), body).unwrap_err();
    assert!(!format!("{error:?}").contains("canary-secret"), "{error:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0..100_usize) {
        drop(protobuf::read(&bytes));
        drop(protobuf::read(&[b"k8s\0".as_slice(), &bytes].concat()));
        // Deep in a sound body.
        let sound = envelope(AUTHORIZATION, Kind::Access.kind(), &field(2, field(1, field(2, "get"))));
        let mut spoilt = sound.clone();
        spoilt.splice(at.min(sound.len()).., bytes);
        drop(protobuf::read(&spoilt));
    }

    #[test]
    fn whatever_was_written_is_read(texts in proptest::collection::vec(".{0,20}", 6)) {
        let attributes = [1, 2, 3, 5, 6, 7].into_iter().zip(&texts).map(|(number, text)| field(number, text));
        let attributes: Vec<u8> = attributes.flatten().collect();
        let body = envelope(AUTHORIZATION, Kind::Access.kind(), &field(2, field(1, attributes)));
        let action = protobuf::read(&body).unwrap().spec.resource_attributes.unwrap();
        let ResourceAction { namespace, verb, group, resource, subresource, name } = action;
        prop_assert_eq!([namespace, verb, group, resource, subresource, name].to_vec(), texts);
    }
}
