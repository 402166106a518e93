//! What is served, for clients to find out: `/version`, `/api`, `/apis` and what is below them, in the form of one answer
//! for each group and in the aggregated form. Made once from the [table of kinds](super::kinds).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use super::accept::{Form, negotiate};
use super::document::{Document, REVALIDATE, refuse};
use super::kinds::{GROUP, KINDS, KindInfo, Subresource, VERSION};
use crate::error::ApiError;

/// The paths, for whoever must know all of them. Each takes GET alone.
pub const PATHS: [&str; 9] = [
    "/api",
    "/api/v1",
    "/apis",
    "/apis/rezuscloud.io",
    "/apis/rezuscloud.io/v1alpha1",
    "/apis/authorization.k8s.io",
    "/apis/authorization.k8s.io/v1",
    "/apis/authentication.k8s.io",
    "/apis/authentication.k8s.io/v1",
];

/// The release of Kubernetes whose API this is like: kubectl compares it with its own, and may be chosen by it.
const KUBERNETES: [&str; 2] = ["1", "33"];

/// Returns the routes.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    PATHS.into_iter().fold(Router::new(), |router, path| {
        let handler = get(move |headers: HeaderMap| async move { show(path, &headers) });
        router.route(path, handler.fallback(refuse))
    })
}

/// Returns `/version`. kubectl reads `gitVersion`; other clients want all members to be there.
pub fn version() -> Value {
    let [major, minor] = KUBERNETES;
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("v{major}.{minor}.0+rezus.{}", crate::telemetry::VERSION),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{os}/{architecture}"),
    })
}

fn show(path: &'static str, headers: &HeaderMap) -> Result<Response, ApiError> {
    static DOCUMENTS: OnceLock<BTreeMap<(&str, bool), Document>> = OnceLock::new();
    let documents = DOCUMENTS.get_or_init(documents);
    let aggregated = documents.get(&(path, true));
    let offered: &[Form] =
        if aggregated.is_some() { &[Form::Json, Form::AggregatedDiscovery] } else { &[Form::Json] };
    let form = negotiate(headers, offered)?;
    let document = aggregated.filter(|_| form == Form::AggregatedDiscovery);
    let document = document.or_else(|| documents.get(&(path, false)));
    let document = document.ok_or_else(|| ApiError::not_found("nothing is known of this path"))?;
    Ok(document.answer(headers, form, REVALIDATE))
}

/// A group in its one version.
struct Group {
    /// Nothing for the core's.
    name: &'static str,
    version: &'static str,
    resources: Vec<Resource>,
}

struct Resource {
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    subresources: &'static [Subresource],
    verbs: &'static [&'static str],
}

impl Resource {
    fn of(info: &KindInfo) -> Self {
        Self {
            kind: info.kind,
            plural: info.plural,
            singular: info.singular,
            short: info.short,
            categories: match (info.in_category, info.namespaced) {
                (true, true) => &["rezus", "all"],
                (true, false) => &["rezus"],
                (false, _) => &[],
            },
            namespaced: info.namespaced,
            subresources: info.subresources,
            verbs: info.verbs,
        }
    }

    /// A question about who is asking: it is made, and never there.
    const fn review(kind: &'static str, plural: &'static str, singular: &'static str) -> Self {
        Self {
            kind,
            plural,
            singular,
            short: &[],
            categories: &[],
            namespaced: false,
            subresources: &[],
            verbs: &["create"],
        }
    }
}

fn groups() -> [Group; 4] {
    let kinds = |of_core| KINDS.into_iter().filter(move |info| info.is_core == of_core).map(Resource::of);
    [
        Group { name: "", version: "v1", resources: kinds(true).collect() },
        Group { name: GROUP, version: VERSION, resources: kinds(false).collect() },
        Group {
            name: "authorization.k8s.io",
            version: "v1",
            resources: vec![
                Resource::review(
                    "SelfSubjectAccessReview",
                    "selfsubjectaccessreviews",
                    "selfsubjectaccessreview",
                ),
                Resource::review(
                    "SelfSubjectRulesReview",
                    "selfsubjectrulesreviews",
                    "selfsubjectrulesreview",
                ),
            ],
        },
        Group {
            name: "authentication.k8s.io",
            version: "v1",
            resources: vec![Resource::review("SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview")],
        },
    ]
}

/// All answers, by path, and whether they are of the aggregated form.
fn documents() -> BTreeMap<(&'static str, bool), Document> {
    let groups = groups();
    let (core, named) = groups.split_at(1);
    let versions = json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] });
    let list: Vec<Value> = named.iter().map(Group::group).collect();
    let list = json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": list });
    let mut documents = BTreeMap::from([
        (("/api", false), Document::of(&versions)),
        (("/apis", false), Document::of(&list)),
        (("/api", true), Document::of(&aggregated(core))),
        (("/apis", true), Document::of(&aggregated(named))),
    ]);
    for group in &groups {
        let mut of_group = group.group();
        of_group["kind"] = "APIGroup".into();
        of_group["apiVersion"] = "v1".into();
        let paths = PATHS.into_iter().filter(|path| path.starts_with(&group.path()));
        for path in paths {
            let is_version = path.len() > group.path().len();
            let value = if is_version { group.resource_list() } else { of_group.clone() };
            documents.entry((path, false)).or_insert_with(|| Document::of(&value));
        }
    }
    documents
}

fn aggregated(groups: &[Group]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups.iter().map(Group::aggregated).collect::<Vec<_>>(),
    })
}

impl Group {
    fn path(&self) -> String {
        if self.name.is_empty() { "/api/".to_owned() } else { format!("/apis/{}", self.name) }
    }

    fn group_version(&self) -> String {
        if self.name.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.name, self.version) }
    }

    fn group(&self) -> Value {
        let version = json!({ "groupVersion": self.group_version(), "version": self.version });
        json!({ "name": self.name, "versions": [version], "preferredVersion": version })
    }

    fn resource_list(&self) -> Value {
        let mut resources = Vec::new();
        for resource in &self.resources {
            let mut shown = json!({
                "name": resource.plural,
                "singularName": resource.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": resource.verbs,
            });
            resource.add_names(&mut shown);
            resources.push(shown);
            for subresource in resource.subresources {
                resources.push(json!({
                    "name": format!("{}/{}", resource.plural, subresource.name),
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    "kind": resource.kind,
                    "verbs": [subresource.verb],
                }));
            }
        }
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": self.group_version(),
            "resources": resources,
        })
    }

    fn aggregated(&self) -> Value {
        let resource = |resource: &Resource| {
            let kind = json!({ "group": self.name, "version": self.version, "kind": resource.kind });
            let mut shown = json!({
                "resource": resource.plural,
                "responseKind": kind,
                "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": resource.singular,
                "verbs": resource.verbs,
            });
            resource.add_names(&mut shown);
            if !resource.subresources.is_empty() {
                let shown_of = |Subresource { name, verb }: &Subresource| json!({ "subresource": name, "responseKind": kind, "verbs": [verb] });
                shown["subresources"] = resource.subresources.iter().map(shown_of).collect();
            }
            shown
        };
        let resources: Vec<Value> = self.resources.iter().map(resource).collect();
        let version = json!({ "version": self.version, "freshness": "Current", "resources": resources });
        let metadata = if self.name.is_empty() { json!({}) } else { json!({ "name": self.name }) };
        json!({ "metadata": metadata, "versions": [version] })
    }
}

impl Resource {
    /// Short names and categories, where there are any.
    fn add_names(&self, shown: &mut Value) {
        for (member, names) in [("shortNames", self.short), ("categories", self.categories)] {
            if !names.is_empty() {
                shown[member] = json!(names);
            }
        }
    }
}
