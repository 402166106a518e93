//! Users, their groups, and what is granted to users and groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rezus_core::access::{
    AccountStore, Accounts, Directory, Grant, PrincipalName, Role, Scope, Subject, TokenKind, User,
};
use rezus_core::base::Timestamp;
use serde::{Deserialize, Serialize};

use super::tokens::{Force, last_admin, principal};
use super::views::List;
use super::{Body, Path, Query, tenant};
use crate::auth::rights::needs;
use crate::auth::{Ticket, Who, leaves_no_admin};
use crate::compose::Plane;
use crate::error::ApiError;

/// A role in a scope, as it is sent and shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantView {
    role: String,
    /// For all tenants if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<Vec<String>>,
}

impl GrantView {
    fn of(role: Role, scope: &Scope) -> Self {
        let tenants = match scope {
            Scope::All => None,
            Scope::Tenants(tenants) => Some(tenants.iter().map(ToString::to_string).collect()),
        };
        Self { role: role.to_string(), tenants }
    }

    fn read(&self) -> Result<(Role, Scope), ApiError> {
        let role = self.role.parse::<Role>().map_err(|error| ApiError::bad_request(error.to_string()))?;
        let scope = match &self.tenants {
            None => Scope::All,
            Some(names) if names.is_empty() => {
                return Err(ApiError::bad_request(
                    "`tenants` names no tenant: leave it out to mean all of them",
                ));
            }
            Some(names) => {
                Scope::Tenants(names.iter().map(|name| tenant(name)).collect::<Result<BTreeSet<_>, _>>()?)
            }
        };
        Ok((role, scope))
    }
}

fn read_all(grants: &[GrantView]) -> Result<Vec<(Role, Scope)>, ApiError> {
    grants.iter().map(GrantView::read).collect()
}

/// A user, with what is granted to it alone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserView {
    name: String,
    groups: Vec<String>,
    grants: Vec<GrantView>,
    created_at: String,
    created_by: String,
    /// How many of its tokens work.
    tokens: usize,
}

impl UserView {
    fn of(user: &User, directory: &Directory, now: Timestamp) -> Self {
        let kind = TokenKind::Api(user.name.clone());
        let tokens = directory.tokens().iter().filter(|token| token.kind == kind && token.works(now));
        let grants = directory.grants(&Subject::User(user.name.clone())).iter();
        Self {
            name: user.name.to_string(),
            groups: user.groups.iter().map(ToString::to_string).collect(),
            grants: grants.map(|(role, scope)| GrantView::of(*role, scope)).collect(),
            created_at: user.created_at.to_string(),
            created_by: user.created_by.clone(),
            tokens: tokens.count(),
        }
    }
}

/// There is no such user.
pub(super) fn no_user(name: &PrincipalName) -> ApiError {
    ApiError::not_found(format!("there is no user {name}: `rezus-server user create` makes one"))
}

async fn view(plane: &Plane, name: &PrincipalName) -> Result<UserView, ApiError> {
    let directory = plane.auth.book().directory().await?;
    let user = directory.user(name).ok_or_else(|| no_user(name))?;
    Ok(UserView::of(user, &directory, plane.clock.now()))
}

pub(super) async fn list(State(plane): State<Plane>) -> Result<Json<List<UserView>>, ApiError> {
    let directory = plane.auth.book().directory().await?;
    let now = plane.clock.now();
    Ok(Json(List { items: directory.users().map(|user| UserView::of(user, &directory, now)).collect() }))
}

pub(super) async fn show(
    State(plane): State<Plane>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<UserView>, ApiError> {
    if !who.is_admin() && who.0.name != name {
        return Err(needs(&who.0, Role::Admin, None));
    }
    Ok(Json(view(&plane, &principal(&name)?).await?))
}

/// A user to be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewUser {
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    grants: Vec<GrantView>,
}

fn read_groups(groups: &[String]) -> Result<Vec<PrincipalName>, ApiError> {
    groups.iter().map(|group| principal(group)).collect()
}

pub(super) async fn create(
    State(plane): State<Plane>,
    who: Who,
    ticket: Ticket,
    Body(new): Body<NewUser>,
) -> Result<(StatusCode, Json<UserView>), ApiError> {
    let name = principal(&new.name)?;
    ticket.object(name.as_str());
    let (groups, grants) = (read_groups(&new.groups)?, read_all(&new.grants)?);
    let user = User {
        name: name.clone(),
        groups: groups.into_iter().collect(),
        created_at: plane.clock.now(),
        created_by: who.0.name,
    };
    let create = |store: Arc<dyn AccountStore>| async move {
        let subject = Subject::User(user.name.clone());
        let taken = ApiError::conflict(format!("there is a user {} already", user.name));
        if !store.add_user(user).await? {
            return Err(taken);
        }
        Ok(store.set_grants(&subject, grants).await?)
    };
    plane.auth.book().change(create).await?;
    Ok((StatusCode::CREATED, Json(view(&plane, &name).await?)))
}

/// What is to be changed of a user: each replaces what there was.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserChange {
    groups: Option<Vec<String>>,
    grants: Option<Vec<GrantView>>,
}

pub(super) async fn change(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(Force { force }): Query<Force>,
    Body(change): Body<UserChange>,
) -> Result<Json<UserView>, ApiError> {
    let name = principal(&name)?;
    let groups = change.groups.as_deref().map(read_groups).transpose()?;
    let grants = change.grants.as_deref().map(read_all).transpose()?;
    let (user, now) = (name.clone(), plane.clock.now());
    let change = move |store: Arc<dyn AccountStore>| async move {
        let accounts = store.accounts().await?;
        if !accounts.users.iter().any(|known| known.name == user) {
            return Err(no_user(&user));
        }
        let subject = Subject::User(user.clone());
        let without = leaves_no_admin(&accounts, now, |accounts| {
            for known in accounts.users.iter_mut().filter(|known| known.name == user) {
                if let Some(groups) = &groups {
                    known.groups = groups.iter().cloned().collect();
                }
            }
            if let Some(grants) = &grants {
                replace(accounts, &subject, grants);
            }
        });
        if without && !force {
            return Err(last_admin("changed"));
        }
        if let Some(groups) = groups {
            store.set_groups(&user, groups).await?;
        }
        if let Some(grants) = grants {
            store.set_grants(&subject, grants).await?;
        }
        Ok(())
    };
    plane.auth.book().change(change).await?;
    Ok(Json(view(&plane, &name).await?))
}

fn replace(accounts: &mut Accounts, subject: &Subject, grants: &[(Role, Scope)]) {
    accounts.grants.retain(|grant| grant.subject != *subject);
    accounts.grants.extend(grants.iter().map(|(role, scope)| Grant {
        subject: subject.clone(),
        role: *role,
        scope: scope.clone(),
    }));
}

pub(super) async fn remove(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(Force { force }): Query<Force>,
) -> Result<StatusCode, ApiError> {
    let (name, now) = (principal(&name)?, plane.clock.now());
    let remove = move |store: Arc<dyn AccountStore>| async move {
        let accounts = store.accounts().await?;
        let without = leaves_no_admin(&accounts, now, |accounts| {
            accounts.users.retain(|user| user.name != name);
        });
        if without && !force {
            return Err(last_admin("removed"));
        }
        if store.remove_user(&name, now).await? { Ok(()) } else { Err(no_user(&name)) }
    };
    plane.auth.book().change(remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A group, with what is granted to its members.
#[derive(Debug, Serialize)]
pub(super) struct GroupView {
    group: String,
    grants: Vec<GrantView>,
}

impl GroupView {
    fn of(name: &PrincipalName, directory: &Directory) -> Self {
        let grants = directory.grants(&Subject::Group(name.clone())).iter();
        let grants = grants.map(|(role, scope)| GrantView::of(*role, scope)).collect();
        Self { group: name.to_string(), grants }
    }
}

pub(super) async fn groups(State(plane): State<Plane>) -> Result<Json<List<GroupView>>, ApiError> {
    let directory = plane.auth.book().directory().await?;
    let groups: BTreeSet<&PrincipalName> =
        directory.users().flat_map(|user| &user.groups).chain(directory.granted_groups()).collect();
    Ok(Json(List { items: groups.into_iter().map(|name| GroupView::of(name, &directory)).collect() }))
}

/// What is granted to a group from now on, in place of what was.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupGrants {
    group: String,
    grants: Vec<GrantView>,
}

pub(super) async fn grant_to_group(
    State(plane): State<Plane>,
    ticket: Ticket,
    Query(Force { force }): Query<Force>,
    Body(new): Body<GroupGrants>,
) -> Result<Json<GroupView>, ApiError> {
    let (name, grants) = (principal(&new.group)?, read_all(&new.grants)?);
    ticket.object(name.as_str());
    let (subject, now) = (Subject::Group(name.clone()), plane.clock.now());
    let change = move |store: Arc<dyn AccountStore>| async move {
        let accounts = store.accounts().await?;
        let without = leaves_no_admin(&accounts, now, |accounts| replace(accounts, &subject, &grants));
        if without && !force {
            return Err(last_admin("changed"));
        }
        Ok(store.set_grants(&subject, grants).await?)
    };
    plane.auth.book().change(change).await?;
    let directory = plane.auth.book().directory().await?;
    Ok(Json(GroupView::of(&name, &directory)))
}
