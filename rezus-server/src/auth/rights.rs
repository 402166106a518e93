//! Which role each route needs, and how what it does is called in the audit trail. What has no row here is open to nobody.

use rezus_core::access::{Identity, Role};
use rezus_core::base::TenantName;

use crate::error::ApiError;

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// To be somebody.
    Anybody,
    /// At least this role in some tenant: the handler shows what is of the caller's tenants.
    Somewhere(Role),
    /// At least this role in the tenant that the path names.
    InTenant(Role),
    /// At least this role in all tenants.
    Everywhere(Role),
    /// To open some state: which one the handler finds out, and asks [`state`].
    State,
    /// What nobody has.
    Nobody,
}

/// A route's right, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it asks.
    pub right: Right,
    /// Its name in the audit trail: of all that writes, locks, or shows a secret.
    pub action: Option<&'static str>,
}

use Right::{Anybody, Everywhere, InTenant, Nobody, Somewhere, State};
use Role::{Admin, Edit, View};

/// One row for each method of each route that is no resource of the Kubernetes API.
pub const RULES: &[(&str, &str, Right, Option<&str>)] = &[
    ("GET", "/metrics", Everywhere(View), None),
    ("GET", "/rezus/v1/server", Anybody, None),
    ("POST", "/rezus/v1/prune", Everywhere(Admin), Some("version.prune")),
    ("GET", "/rezus/v1/locks", Somewhere(View), None),
    ("GET", "/rezus/v1/tenants", Somewhere(View), None),
    ("POST", "/rezus/v1/tenants", Somewhere(Admin), Some("tenant.create")),
    ("GET", "/rezus/v1/tenants/{tenant}", InTenant(View), None),
    ("PATCH", "/rezus/v1/tenants/{tenant}", InTenant(Admin), Some("tenant.configure")),
    ("DELETE", "/rezus/v1/tenants/{tenant}", InTenant(Admin), Some("tenant.remove")),
    ("PUT", "/rezus/v1/tenants/{tenant}/configuration", InTenant(Admin), Some("tenant.configuration")),
    ("PUT", "/rezus/v1/tenants/{tenant}/freeze", InTenant(Edit), Some("tenant.freeze")),
    ("DELETE", "/rezus/v1/tenants/{tenant}/freeze", InTenant(Edit), Some("tenant.unfreeze")),
    ("GET", "/rezus/v1/tenants/{tenant}/locks", InTenant(View), None),
    ("DELETE", "/rezus/v1/tenants/{tenant}/locks", InTenant(Edit), Some("lock.break")),
    ("GET", "/rezus/v1/tenants/{tenant}/refusals", InTenant(View), None),
    ("GET", "/rezus/v1/tenants/{tenant}/versions", InTenant(View), None),
    ("GET", "/rezus/v1/tenants/{tenant}/versions/{version}", InTenant(View), None),
    ("PATCH", "/rezus/v1/tenants/{tenant}/versions/{version}", InTenant(Edit), Some("version.pin")),
    ("GET", "/rezus/v1/tenants/{tenant}/versions/{version}/body", InTenant(Edit), Some("version.read")),
    ("POST", "/rezus/v1/tenants/{tenant}/rollback", InTenant(Edit), Some("state.rollback")),
    ("GET", "/rezus/v1/tenants/{tenant}/diff", InTenant(View), None),
    ("GET", "/rezus/v1/tenants/{tenant}/resources", InTenant(View), None),
    ("GET", "/rezus/v1/tenants/{tenant}/readings", InTenant(View), None),
    ("POST", "/rezus/v1/tenants/{tenant}/index", InTenant(Edit), Some("index.rebuild")),
    ("GET", "/rezus/v1/tokens", Anybody, None),
    ("POST", "/rezus/v1/tokens", Somewhere(Admin), Some("token.create")),
    ("DELETE", "/rezus/v1/tokens/{id}", Anybody, Some("token.revoke")),
    ("GET", "/rezus/v1/users", Everywhere(Admin), None),
    ("POST", "/rezus/v1/users", Everywhere(Admin), Some("user.create")),
    ("GET", "/rezus/v1/users/{name}", Anybody, None),
    ("PATCH", "/rezus/v1/users/{name}", Everywhere(Admin), Some("user.change")),
    ("DELETE", "/rezus/v1/users/{name}", Everywhere(Admin), Some("user.remove")),
    ("GET", "/rezus/v1/grants", Everywhere(Admin), None),
    ("PUT", "/rezus/v1/grants", Everywhere(Admin), Some("group.grant")),
    ("GET", "/rezus/v1/audit", Somewhere(Admin), None),
    ("GET", "/prometheus/api/v1/query", Somewhere(View), None),
    ("POST", "/prometheus/api/v1/query", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/query_range", Somewhere(View), None),
    ("POST", "/prometheus/api/v1/query_range", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/query_exemplars", Somewhere(View), None),
    ("POST", "/prometheus/api/v1/query_exemplars", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/series", Somewhere(View), None),
    ("POST", "/prometheus/api/v1/series", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/labels", Somewhere(View), None),
    ("POST", "/prometheus/api/v1/labels", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/label/{name}/values", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/metadata", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/rules", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/alerts", Somewhere(View), None),
    ("GET", "/prometheus/api/v1/status/buildinfo", Somewhere(View), None),
    ("GET", "/state", State, Some("state.read")),
    ("POST", "/state", State, Some("state.write")),
    ("PUT", "/state", State, Some("state.write")),
    ("DELETE", "/state", State, Some("state.delete")),
    ("LOCK", "/state", State, Some("lock")),
    ("UNLOCK", "/state", State, Some("unlock")),
    ("GET", "/state/{tenant}", State, Some("state.read")),
    ("POST", "/state/{tenant}", State, Some("state.write")),
    ("PUT", "/state/{tenant}", State, Some("state.write")),
    ("DELETE", "/state/{tenant}", State, Some("state.delete")),
    ("LOCK", "/state/{tenant}", State, Some("lock")),
    ("UNLOCK", "/state/{tenant}", State, Some("unlock")),
    ("LOCK", "/state/{tenant}/lock", State, Some("lock")),
    ("POST", "/state/{tenant}/lock", State, Some("lock")),
    ("PUT", "/state/{tenant}/lock", State, Some("lock")),
    ("UNLOCK", "/state/{tenant}/lock", State, Some("unlock")),
    ("DELETE", "/state/{tenant}/lock", State, Some("unlock")),
];

/// Returns the rule of a request: by the route that it matched, or by its path where that is of the Kubernetes API.
pub fn of(method: &str, route: &str, path: &str) -> Rule {
    let method = if method == "HEAD" { "GET" } else { method };
    if let Some((_, _, right, action)) =
        RULES.iter().find(|(known, path, ..)| *known == method && *path == route)
    {
        return Rule { right: *right, action: *action };
    }
    let open = |right| Rule { right, action: None };
    if route.is_empty() || RULES.iter().any(|(_, path, ..)| *path == route) {
        // No route, or no method of it: whoever is somebody is told so.
        return open(Anybody);
    }
    match segments(path).as_slice() {
        ["apis", "authorization.k8s.io" | "authentication.k8s.io", ..]
        | ["openapi", ..]
        | ["api" | "apis"]
        | ["api" | "apis", _]
        | ["apis", _, _] => open(Anybody),
        ["apis", _, _, "tenants", _, "kubeconfig" | "talosconfig", ..] => {
            Rule { right: InTenant(Edit), action: Some("credential.read") }
        }
        ["apis", _, _, "namespaces", _, "runs"] if method == "POST" => {
            Rule { right: InTenant(Edit), action: Some("run.create") }
        }
        ["apis", _, _, "namespaces", _, "runs", _, act] if method == "POST" => match *act {
            "approve" => Rule { right: InTenant(Edit), action: Some("run.approve") },
            "cancel" => Rule { right: InTenant(Edit), action: Some("run.cancel") },
            "dismiss" => Rule { right: InTenant(Edit), action: Some("run.dismiss") },
            _ => open(InTenant(View)),
        },
        ["api" | "apis", ..] if tenant_in(path).is_some() => open(InTenant(View)),
        ["api" | "apis", ..] => open(Somewhere(View)),
        _ => open(Nobody),
    }
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// Returns what stands for a tenant in a path of the Kubernetes API: a namespace's name, or a Tenant's.
pub fn tenant_in(path: &str) -> Option<String> {
    match segments(path).as_slice() {
        ["api", _, "namespaces", name, ..] | ["apis", _, _, "namespaces" | "tenants", name, ..] => {
            Some((*name).to_owned())
        }
        _ => None,
    }
}

/// Tells whether somebody has a right, in the tenant of this name where it is of one.
///
/// # Errors
///
/// The role that is wanting.
pub fn check(identity: &Identity, right: Right, tenant: Option<&str>) -> Result<(), Role> {
    let access = &identity.access;
    let (held, needed) = match right {
        Anybody => return Ok(()),
        Nobody => return Err(Admin),
        State if access.backend_of().is_some() => return Ok(()),
        State => (access.role_somewhere(), Edit),
        Somewhere(role) => (access.role_somewhere(), role),
        Everywhere(role) => (access.role_everywhere(), role),
        InTenant(role) => {
            let tenant = tenant.and_then(|name| TenantName::parse(name).ok());
            // Of what is no tenant's name, only who may everywhere learns more.
            (tenant.map_or(access.role_everywhere(), |tenant| access.role_in(&tenant)), role)
        }
    };
    if held >= Some(needed) { Ok(()) } else { Err(needed) }
}

/// What is done to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateUse {
    /// Reading, writing, locking, unlocking.
    Work,
    /// Deleting it as a whole.
    Delete,
}

/// Tells whether somebody may do this to a tenant's state.
///
/// # Errors
///
/// [`ApiError`] 403.
pub fn state(identity: &Identity, tenant: &TenantName, what: StateUse) -> Result<(), ApiError> {
    let access = &identity.access;
    let needed = match what {
        StateUse::Work => Edit,
        StateUse::Delete => Admin,
    };
    let by_token = what == StateUse::Work && access.backend_of() == Some(tenant);
    if by_token || access.role_in(tenant) >= Some(needed) {
        Ok(())
    } else {
        Err(needs(identity, needed, Some(tenant.as_str())))
    }
}

/// Says which role is wanting.
pub fn needs(identity: &Identity, role: Role, tenant: Option<&str>) -> ApiError {
    let user = &identity.name;
    // What is no tenant's name is not repeated.
    let tenant = tenant.and_then(|name| TenantName::parse(name).ok());
    ApiError::forbidden(match (tenant, identity.access.backend_of()) {
        (Some(tenant), Some(own)) => format!(
            "User \"{user}\" opens the state of {own} alone: tenant {tenant} needs the role {role}, or a token of its own"
        ),
        (Some(tenant), None) => format!("User \"{user}\" needs the role {role} in tenant {tenant}"),
        (None, _) => format!("User \"{user}\" needs the role {role}"),
    })
}

/// Words a refusal as a kube-apiserver does, if the path is of a resource.
pub fn refusal_of_kind(identity: &Identity, method: &str, path: &str) -> Option<ApiError> {
    let segments = segments(path);
    let (group, rest) = match segments.as_slice() {
        ["apis", group, _, rest @ ..] => (*group, rest),
        ["api", _, rest @ ..] => ("", rest),
        _ => return None,
    };
    let (namespace, resource, name) = match rest {
        ["namespaces", namespace, resource, name, ..] => (Some(*namespace), *resource, Some(*name)),
        ["namespaces", namespace, resource] => (Some(*namespace), *resource, None),
        [resource, name, ..] => (None, *resource, Some(*name)),
        [resource] => (None, *resource, None),
        [] => return None,
    };
    // Only what is harmless is repeated.
    let shown = |text: &str| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')).take(253).collect()
    };
    let resource = shown(resource);
    let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{}", shown(group)) };
    let verb = match method {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ if name.is_some() => "get",
        _ => "list",
    };
    let name = name.map(|name| format!(" \"{}\"", shown(name))).unwrap_or_default();
    let place = namespace.map_or_else(
        || " at the cluster scope".to_owned(),
        |namespace| format!(" in the namespace \"{}\"", shown(namespace)),
    );
    Some(ApiError::forbidden(format!(
        "{qualified}{name} is forbidden: User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{}\"{place}",
        identity.name,
        shown(group),
    )))
}

#[cfg(test)]
mod tests;
