//! Whatever is asked: an answer that is no fault of the server, and no panic.

use std::sync::OnceLock;

use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::two_tenants;
use crate::in_process::{InProcess, local};

/// One plane for all cases, and what they run on.
fn shared() -> &'static (Runtime, InProcess) {
    static SHARED: OnceLock<(Runtime, InProcess)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let runtime = Runtime::new().unwrap();
        let plane = runtime.block_on(two_tenants());
        (runtime, plane)
    })
}

fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "",
        "/",
        "apis",
        "api",
        "v1",
        "rezuscloud.io",
        "v1alpha1",
        "namespaces",
        "web",
        "other",
        "machines",
        "nodegroups",
        "tenants",
        "providers",
        "stateversions",
        "runs",
        "events",
        "a",
        "status",
        "provenance",
        "history",
        "openapi",
        "v2",
        "v3",
        "version",
        "authorization.k8s.io",
        "authentication.k8s.io",
        "selfsubjectreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "%2e%2e",
        "..",
        "%00",
        "%ff",
        "a%2Fb",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "[a-zA-Z0-9._~%-]{0,20}".prop_map(|text| text.replace('%', "%25"))]
}

fn parameter() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "watch",
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "timeoutSeconds",
        "includeObject",
        "version",
        "timeout",
        "hash",
        "",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "0",
            "1",
            "true",
            "false",
            "-1",
            "18446744073709551616",
            "9007199254740991",
            "Exact",
            "NotOlderThan",
            "Metadata",
            "None",
            "a%20in%20(b,c)",
            "!a",
            "a%3Db",
            "metadata.name%3Da",
            "metadata.name%3D%5C",
            "a%3E5",
            "eyJ2IjoxLCJydiI6MSwiayI6Im1hY2hpbmVzIiwic3RhcnQiOlsiIiwiIl19",
        ])
        .prop_map(str::to_owned),
        "[a-zA-Z0-9=!,() <>.\\\\_/-]{0,24}"
            .prop_map(|text| form_urlencoded::byte_serialize(text.as_bytes()).collect()),
    ];
    (name, value).prop_map(|(name, value)| format!("{name}={value}"))
}

fn target() -> impl Strategy<Value = String> {
    let path = prop_oneof![
        2 => prop::collection::vec(piece(), 0..8).prop_map(|pieces| format!("/{}", pieces.join("/"))),
        3 => prop::sample::select(rezus_server::kube::PATHS.clone())
            .prop_map(|path| path.replace("{tenant}", "web").replace("{name}", "a")),
    ];
    // What is watched ends soon.
    (path, prop::collection::vec(parameter(), 0..5)).prop_map(|(path, query)| {
        let mut query = query;
        if query.iter().any(|one| one.starts_with("watch")) {
            query.insert(0, "timeoutSeconds=1".to_owned());
            query.insert(0, "resourceVersion=1".to_owned());
        }
        format!("{path}?{}", query.join("&"))
    })
}

fn accept() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        prop::sample::select(vec![
            "application/json",
            "*/*",
            "application/*",
            "application/vnd.kubernetes.protobuf",
            "text/plain;q=0.5",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadata",
            "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
            ";;",
            "q=",
            "application/json;q=9;q",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,30}",
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.join(","))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        prop::collection::vec(any::<u8>(), 0..64).prop_map(|bytes| [b"k8s\0".as_slice(), &bytes].concat()),
        prop::sample::select(vec![
            "{}",
            "[]",
            "{\"spec\":{}}",
            "{\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{\"verb\":\"*\"}}}",
            "{\"spec\":{\"resourceAttributes\":7}}",
            "null",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::tools::drills_are_full() { 20_000 } else { 1_500 }, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_asked_is_a_fault_of_the_server(
        method in prop::sample::select(vec!["GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"]),
        target in target(),
        accept in accept(),
        content_type in prop::sample::select(vec!["", "application/json", "application/vnd.kubernetes.protobuf", "application/apply-patch+yaml"]),
        encoding in prop::sample::select(vec!["identity", "gzip", "gzip;q=0", ";;;"]),
        body in body(),
    ) {
        // States have tests of their own, and a router that takes any path takes theirs.
        prop_assume!(!target.starts_with("/state") && !target.starts_with("/rezus"));
        let (runtime, plane) = shared();
        let mut headers = vec![("accept", accept.as_str()), ("accept-encoding", encoding)];
        if !content_type.is_empty() {
            headers.push(("content-type", content_type));
        }
        let answer = runtime.block_on(plane.send_as(local(), method, &target, &headers, body));
        // 504 is what Kubernetes says of versions to come.
        prop_assert!(answer.code < 500 || answer.code == 504, "{method} {target}: {}", answer.code);
        if answer.code >= 400 && method != "HEAD" {
            prop_assert_eq!(&answer.json()["kind"], "Status", "{} {}", method, target);
        }
    }
}

#[test]
fn what_takes_no_write_says_so_even_if_it_is_no_resource() {
    let (runtime, plane) = shared();
    for path in
        ["/version", "/healthz", "/livez", "/readyz", "/metrics", "/api", "/apis", "/api/v1", "/openapi/v3"]
    {
        let answer = runtime.block_on(plane.send("POST", path, "{}")).expect(405, path);
        let status = answer.json();
        assert_eq!((&status["kind"], &status["reason"]), (&"Status".into(), &"MethodNotAllowed".into()));
        assert!(answer.headers.contains_key("allow"), "{path}");
    }
}
