//! `user` and `group`: who there is, and what is granted to them.

use std::collections::BTreeSet;
use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use rezus_core::base::TenantName;
use serde_json::{Value, json};

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Output, Target, print_json};
use crate::compose::now;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RoleName {
    /// See everything but secrets.
    View,
    /// Read and write states as well, break locks, roll back.
    Edit,
    /// Do everything.
    Admin,
}

impl RoleName {
    fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }
}

/// A role in a scope.
#[derive(Debug, Args)]
pub(super) struct RoleIn {
    /// Which role.
    #[arg(long, value_enum)]
    role: RoleName,
    /// In this tenant; may be given more than once. In all tenants, present and future, if absent.
    #[arg(long, value_name = "TENANT")]
    tenant: Vec<TenantName>,
}

#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Make a user. `token create --user NAME` makes a token of it.
    Create {
        /// Its name.
        name: String,
        /// A group that it is in; may be given more than once.
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// What it may do; `user grant` adds more.
        #[arg(long, value_enum)]
        role: Option<RoleName>,
        /// In which tenant; may be given more than once. In all tenants if absent.
        #[arg(long, value_name = "TENANT", requires = "role")]
        tenant: Vec<TenantName>,
        #[command(flatten)]
        target: Target,
    },
    /// List all users.
    List {
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one user.
    Show {
        /// Which one.
        name: String,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Grant a user a role, on top of what it has.
    Grant {
        /// To whom.
        name: String,
        #[command(flatten)]
        role: RoleIn,
        #[command(flatten)]
        target: Target,
    },
    /// Take a role away from a user: in the named tenants, or altogether.
    Revoke {
        /// From whom.
        name: String,
        #[command(flatten)]
        role: RoleIn,
        /// Also if no admin would be left.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Put a user into groups, and into no others.
    Groups {
        /// Which user.
        name: String,
        /// The groups; none to leave all.
        groups: Vec<String>,
        /// Also if no admin would be left.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a user with all that is granted to it, and revoke its tokens.
    Remove {
        /// Which one.
        name: String,
        /// Also if no admin would be left.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum GroupCommand {
    /// List all groups with what is granted to them.
    List {
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Grant the members of a group a role, on top of what they have.
    Grant {
        /// To which group.
        group: String,
        #[command(flatten)]
        role: RoleIn,
        #[command(flatten)]
        target: Target,
    },
    /// Take a role away from a group: in the named tenants, or altogether.
    Revoke {
        /// From which group.
        group: String,
        #[command(flatten)]
        role: RoleIn,
        /// Also if no admin would be left.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
}

/// A name as a segment of a path.
pub(super) fn segment(name: &str) -> String {
    // Of the same escapes as a form's, but for the space.
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

fn path(name: &str) -> String {
    format!("/rezus/v1/users/{}", segment(name))
}

fn query(force: bool) -> &'static [(&'static str, &'static str)] {
    if force { &[("force", "true")] } else { &[] }
}

fn granted(role: RoleName, tenants: &[TenantName]) -> Value {
    let names: Vec<&str> = tenants.iter().map(TenantName::as_str).collect();
    if names.is_empty() {
        json!({ "role": role.as_str() })
    } else {
        json!({ "role": role.as_str(), "tenants": names })
    }
}

/// What is left of grants without a role in these tenants, or without the role.
fn without(grants: &[Value], RoleIn { role, tenant }: &RoleIn) -> Result<Vec<Value>, CliError> {
    let mut left = Vec::new();
    let mut found = false;
    for grant in grants {
        if grant["role"] != role.as_str() {
            left.push(grant.clone());
            continue;
        }
        if tenant.is_empty() {
            found = true;
            continue;
        }
        let Some(held) = grant["tenants"].as_array() else {
            return Err(CliError::Usage(format!(
                "the role {} is granted in all tenants, and cannot be taken away in one: revoke it without --tenant, then grant it in those that are to keep it",
                role.as_str()
            )));
        };
        let gone: BTreeSet<&str> = tenant.iter().map(TenantName::as_str).collect();
        let kept: Vec<&str> =
            held.iter().filter_map(Value::as_str).filter(|name| !gone.contains(name)).collect();
        found |= kept.len() < held.len();
        if !kept.is_empty() {
            left.push(json!({ "role": role.as_str(), "tenants": kept }));
        }
    }
    if found {
        Ok(left)
    } else {
        Err(CliError::Usage(format!("the role {} is not granted there", role.as_str())))
    }
}

/// Shows grants as `edit in prod, test; view everywhere`.
fn grants(grants: &Value) -> String {
    let one = |grant: &Value| {
        let names = grant["tenants"].as_array().map(|names| {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            format!("in {}", names.join(", "))
        });
        format!("{} {}", cell(&grant["role"]), names.unwrap_or_else(|| "everywhere".to_owned()))
    };
    let shown: Vec<String> = grants.as_array().into_iter().flatten().map(one).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join("; ") }
}

fn list_of(names: &Value) -> String {
    let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

fn print_user(user: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    writeln!(out, "{:<15}{}", "User:", cell(&user["name"]))?;
    writeln!(out, "{:<15}{}", "Groups:", list_of(&user["groups"]))?;
    writeln!(out, "{:<15}{}", "Granted:", grants(&user["grants"]))?;
    writeln!(out, "{:<15}{}", "Tokens:", cell(&user["tokens"]))?;
    writeln!(out, "{:<15}{} by {}", "Created:", cell(&user["createdAt"]), cell(&user["createdBy"]))?;
    Ok(())
}

/// Sends a change and returns what is there now.
async fn change(client: &Client, name: &str, force: bool, body: &Value) -> Result<Value, CliError> {
    Ok(client.send("PATCH", &path(name), query(force), body.to_string().into()).await?.json()?)
}

fn grants_of(value: &Value) -> Vec<Value> {
    value["grants"].as_array().cloned().unwrap_or_default()
}

impl UserCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::Create { name, group, role, tenant, target } => {
                let grants: Vec<Value> = role.iter().map(|role| granted(*role, &tenant)).collect();
                let body = json!({ "name": name, "groups": group, "grants": grants });
                Client::open(&target).await?.post("/rezus/v1/users", &body).await?;
                writeln!(out, "{name}: created; `rezus-server token create --user {name}` makes a token")?;
                Ok(())
            }
            Self::List { output, target } => {
                let list = Client::open(&target).await?.get("/rezus/v1/users", &[]).await?;
                if output == Output::Json {
                    return print_json(&list, out);
                }
                let row = |user: &Value| {
                    vec![
                        cell(&user["name"]),
                        list_of(&user["groups"]),
                        grants(&user["grants"]),
                        cell(&user["tokens"]),
                        table::age(&user["createdAt"], now()),
                    ]
                };
                let heads = ["USER", "GROUPS", "GRANTED", "TOKENS", "AGE"];
                Ok(table::print(&heads, items(&list).iter().map(row), out)?)
            }
            Self::Show { name, output, target } => {
                let user = Client::open(&target).await?.get(&path(&name), &[]).await?;
                if output == Output::Json { print_json(&user, out) } else { print_user(&user, out) }
            }
            Self::Grant { name, role, target } => {
                let client = Client::open(&target).await?;
                let mut grants = grants_of(&client.get(&path(&name), &[]).await?);
                grants.push(granted(role.role, &role.tenant));
                print_user(&change(&client, &name, false, &json!({ "grants": grants })).await?, out)
            }
            Self::Revoke { name, role, force, target } => {
                let client = Client::open(&target).await?;
                let left = without(&grants_of(&client.get(&path(&name), &[]).await?), &role)?;
                print_user(&change(&client, &name, force, &json!({ "grants": left })).await?, out)
            }
            Self::Groups { name, groups, force, target } => {
                let client = Client::open(&target).await?;
                print_user(&change(&client, &name, force, &json!({ "groups": groups })).await?, out)
            }
            Self::Remove { name, force, target } => {
                let client = Client::open(&target).await?;
                client.send("DELETE", &path(&name), query(force), bytes::Bytes::new()).await?.success()?;
                writeln!(out, "{name}: removed; its tokens are revoked")?;
                Ok(())
            }
        }
    }
}

impl GroupCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let (group, role, force, target) = match self {
            Self::List { output, target } => {
                let list = Client::open(&target).await?.get("/rezus/v1/grants", &[]).await?;
                if output == Output::Json {
                    return print_json(&list, out);
                }
                let row = |group: &Value| vec![cell(&group["group"]), grants(&group["grants"])];
                return Ok(table::print(&["GROUP", "GRANTED"], items(&list).iter().map(row), out)?);
            }
            Self::Grant { group, role, target } => (group, (role, true), false, target),
            Self::Revoke { group, role, force, target } => (group, (role, false), force, target),
        };
        let client = Client::open(&target).await?;
        let list = client.get("/rezus/v1/grants", &[]).await?;
        let held = items(&list).iter().find(|held| held["group"] == group.as_str());
        let mut grants = held.map(grants_of).unwrap_or_default();
        match role {
            (role, true) => grants.push(granted(role.role, &role.tenant)),
            (role, false) => grants = without(&grants, &role)?,
        }
        let body = json!({ "group": group, "grants": grants }).to_string();
        let now = client.send("PUT", "/rezus/v1/grants", query(force), body.into()).await?.json()?;
        writeln!(out, "{group}: {}", self::grants(&now["grants"]))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role_in(tenants: &[&str]) -> RoleIn {
        let tenant = tenants.iter().map(|name| TenantName::parse(name).unwrap()).collect();
        RoleIn { role: RoleName::Edit, tenant }
    }

    #[test]
    fn a_role_is_taken_away_where_it_was_granted_and_nowhere_else() {
        let held = [json!({ "role": "view" }), json!({ "role": "edit", "tenants": ["a", "b"] })];
        let left = without(&held, &role_in(&["a"])).unwrap();
        assert_eq!(left, [json!({ "role": "view" }), json!({ "role": "edit", "tenants": ["b"] })]);
        assert_eq!(without(&held, &role_in(&["a", "b"])).unwrap(), [json!({ "role": "view" })]);
        assert_eq!(without(&held, &role_in(&[])).unwrap(), [json!({ "role": "view" })]);
        assert!(without(&held, &role_in(&["c"])).unwrap_err().to_string().contains("not granted"));
        let everywhere = [json!({ "role": "edit" })];
        assert!(without(&everywhere, &role_in(&["a"])).unwrap_err().to_string().contains("all tenants"));
    }

    #[test]
    fn names_are_segments_of_paths() {
        assert_eq!(segment("Platform Team+1?"), "Platform%20Team%2B1%3F");
        assert_eq!(segment("ana@example.org"), "ana%40example.org");
    }
}
