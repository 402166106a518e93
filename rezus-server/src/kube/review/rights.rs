//! Who may do what, and why not: the one table that access reviews and rules reviews answer from.

use rezus_core::access::{Identity, Role};
use rezus_core::base::TenantName;
use serde_json::{Value, json};

use super::{Action, PathAction, ResourceAction};
use crate::kube::kinds::{KINDS, RUN};

/// All verbs that Kubernetes has for resources.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// What anybody who is let in can GET; with a `*` at its end, all that begins so.
const PATHS: [&str; 9] =
    ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi/*", "/readyz", "/version"];

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Something that is served: a resource, or a subresource of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Served {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verbs: &'static [&'static str],
    whose: Whose,
    /// Which role reads it. What can be made takes an editor.
    needs: Role,
}

/// What decides whose a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Its namespace is a tenant's name.
    Namespace,
    /// Its own name is a tenant's.
    Name,
    /// It is for all who see anything.
    All,
    /// It is about who asks.
    Asker,
}

/// All that is served.
fn served() -> Vec<Served> {
    let mut served = Vec::new();
    for info in KINDS {
        let whose = match info.kind {
            "Tenant" | "Namespace" => Whose::Name,
            "Provider" => Whose::All,
            _ => Whose::Namespace,
        };
        let main = Served {
            group: info.group(),
            resource: info.plural,
            subresource: "",
            verbs: info.verbs,
            whose,
            needs: Role::View,
        };
        served.push(main);
        served.extend(info.subresources.iter().map(|subresource| Served {
            subresource: subresource.name,
            verbs: std::slice::from_ref(&subresource.verb),
            needs: match subresource.name {
                "kubeconfig" | "talosconfig" => Role::Edit,
                _ => Role::View,
            },
            ..main
        }));
    }
    for (group, resource) in [
        (AUTHORIZATION, "selfsubjectaccessreviews"),
        (AUTHORIZATION, "selfsubjectrulesreviews"),
        (AUTHENTICATION, "selfsubjectreviews"),
    ] {
        served.push(Served {
            group,
            resource,
            subresource: "",
            verbs: &["create"],
            whose: Whose::Asker,
            needs: Role::View,
        });
    }
    served
}

impl Served {
    fn may(&self, asker: &Identity, verb: &str, namespace: &str, name: &str) -> bool {
        let needs = if verb == "create" { Role::Edit } else { self.needs };
        let in_tenant = |tenant: &str| {
            tenant.parse().map_or(asker.access.role_everywhere(), |tenant| asker.access.role_in(&tenant))
                >= Some(needs)
        };
        let in_any = match needs {
            // What is listed over all tenants is cut down to what the asker sees.
            Role::View => asker.access.role_somewhere().is_some(),
            Role::Edit | Role::Admin => asker.access.role_everywhere() >= Some(needs),
        };
        match (self.whose, namespace, name) {
            (Whose::Asker, _, _) => true,
            (Whose::All, _, _) | (Whose::Namespace, "", _) | (Whose::Name, _, "") => in_any,
            (Whose::Namespace, tenant, _) | (Whose::Name, _, tenant) => in_tenant(tenant),
        }
    }
}

/// Tells whether something may be done; if not, why.
pub(super) fn decide(asker: &Identity, action: &Action) -> Result<(), String> {
    match action {
        Action::Path(PathAction { path, verb }) => {
            let is_open =
                |open: &&str| open.strip_suffix('*').map_or(path == open, |start| path.starts_with(start));
            if verb == "get" && path != "*" && PATHS.iter().any(is_open) {
                return Ok(());
            }
            Err(format!(
                "of paths that are no resources, User \"{}\" can get {}",
                asker.name,
                PATHS.join(", ")
            ))
        }
        Action::Resource(action) => decide_resource(asker, action),
    }
}

/// `*` is all there is: it may be done if each may.
fn decide_resource(asker: &Identity, action: &ResourceAction) -> Result<(), String> {
    let is_all = [&action.verb, &action.group, &action.resource, &action.subresource]
        .into_iter()
        .any(|asked| asked == "*");
    decide_each(asker, action)
        .map_err(|reason| if is_all { format!("not all of it: {reason}") } else { reason })
}

fn decide_each(asker: &Identity, action: &ResourceAction) -> Result<(), String> {
    let is = |asked: &str, is: &str| asked == "*" || asked == is;
    let ResourceAction { namespace, verb, group, resource, subresource, name } = action;
    let mut found = served();
    // All resources are all their subresources too, as far as those have the verb.
    let of_any =
        |one: &Served| resource == "*" && subresource.is_empty() && one.verbs.contains(&verb.as_str());
    found.retain(|one| {
        is(group, one.group)
            && is(resource, one.resource)
            && (of_any(one) || is(subresource, one.subresource))
    });
    if found.is_empty() {
        return Err("no such resource is served in that API group".to_owned());
    }
    let verbs: Vec<&str> = VERBS.into_iter().filter(|one| is(verb, one)).collect();
    if verbs.is_empty() {
        return Err(format!("the verbs of resources are {}", VERBS.join(", ")));
    }
    for served in found {
        for verb in &verbs {
            let resource = served.resource;
            if !served.verbs.contains(verb) {
                return Err(match served.whose {
                    Whose::Asker => format!("{resource} can be created, and nothing else"),
                    Whose::Namespace if resource == RUN.plural => format!(
                        "{resource} are made, approved and cancelled, and neither changed nor deleted"
                    ),
                    Whose::Namespace | Whose::Name | Whose::All => format!(
                        "{resource} is read-only: change the tenant's configuration and apply it with tofu or terraform"
                    ),
                });
            }
            if !served.may(asker, verb, namespace, name) {
                let (user, namespace) = (&asker.name, namespace.as_str());
                // What is no tenant's name is not repeated: it may be anything.
                let place = match (served.whose, TenantName::parse(namespace)) {
                    (Whose::Namespace, Ok(tenant)) => format!("in the namespace \"{tenant}\""),
                    (Whose::Namespace, Err(_)) if !namespace.is_empty() => {
                        "in a namespace that is no tenant".to_owned()
                    }
                    (Whose::Namespace | Whose::Name | Whose::All | Whose::Asker, _) => {
                        "at the cluster scope".to_owned()
                    }
                };
                let slash = if served.subresource.is_empty() { "" } else { "/" };
                let resource = format!("{resource}{slash}{}", served.subresource);
                let group = served.group;
                return Err(format!(
                    "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
                ));
            }
        }
    }
    Ok(())
}

/// Returns all that may be done in a namespace, found by asking for each.
pub(super) fn rules(asker: &Identity, namespace: &str) -> Value {
    let mut rules: Vec<(Value, Vec<String>)> = Vec::new();
    for one in served() {
        let may = |verb: &&&str| one.may(asker, verb, namespace, "");
        let of_all: Vec<&str> = one.verbs.iter().filter(may).copied().collect();
        // What is not of all tenants may be of this one.
        let may = |verb: &&&str| {
            one.whose == Whose::Name && !namespace.is_empty() && one.may(asker, verb, namespace, namespace)
        };
        let of_this: Vec<&str> =
            one.verbs.iter().filter(may).filter(|verb| !of_all.contains(verb)).copied().collect();
        for (verbs, is_of_all) in [(of_all, true), (of_this, false)] {
            if verbs.is_empty() {
                continue;
            }
            let mut rule = json!({ "verbs": verbs, "apiGroups": [one.group] });
            if !is_of_all {
                rule["resourceNames"] = json!([namespace]);
            }
            let slash = if one.subresource.is_empty() { "" } else { "/" };
            let resource = format!("{}{slash}{}", one.resource, one.subresource);
            match rules.iter_mut().find(|(known, _)| *known == rule) {
                Some((_, resources)) => resources.push(resource),
                None => rules.push((rule, vec![resource])),
            }
        }
    }
    let rules = rules.into_iter().map(|(mut rule, resources)| {
        rule["resources"] = json!(resources);
        rule
    });
    json!({
        "resourceRules": rules.collect::<Vec<_>>(),
        "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": PATHS }],
        "incomplete": false,
    })
}
