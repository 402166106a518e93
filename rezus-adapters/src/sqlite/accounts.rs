//! Rows of users, grants and tokens.

use std::collections::{BTreeMap, BTreeSet};

use rezus_core::access::{
    Accounts, Grant, PrincipalName, Role, Scope, Subject, TokenDigest, TokenId, TokenKind, TokenRecord, User,
};
use rezus_core::base::{TenantName, Timestamp};
use rusqlite::{Connection, Row, named_params};

use super::error::JobError;

/// Reads all accounts, as of one moment.
pub(super) fn read(connection: &Connection) -> Result<Accounts, JobError> {
    let transaction = connection.unchecked_transaction()?;
    Ok(Accounts { users: users(&transaction)?, grants: grants(&transaction)?, tokens: tokens(&transaction)? })
}

fn principal(name: &str) -> Result<PrincipalName, JobError> {
    PrincipalName::parse(name).map_err(|_| JobError::Damaged("a user's or group's name"))
}

fn tenant(name: &str) -> Result<TenantName, JobError> {
    TenantName::parse(name).map_err(|_| JobError::Damaged("a tenant's name"))
}

fn users(connection: &Connection) -> Result<Vec<User>, JobError> {
    let mut groups: BTreeMap<String, BTreeSet<PrincipalName>> = BTreeMap::new();
    let mut select = connection.prepare_cached("SELECT user_name, group_name FROM memberships")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let group: String = row.get(1)?;
        groups.entry(row.get(0)?).or_default().insert(principal(&group)?);
    }
    let mut select =
        connection.prepare_cached("SELECT name, created_at, created_by FROM users ORDER BY name")?;
    let mut rows = select.query([])?;
    let mut users = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        users.push(User {
            groups: groups.remove(&name).unwrap_or_default(),
            name: principal(&name)?,
            created_at: Timestamp::from_millis(row.get(1)?),
            created_by: row.get(2)?,
        });
    }
    Ok(users)
}

fn grants(connection: &Connection) -> Result<Vec<Grant>, JobError> {
    let mut scopes: BTreeMap<(Subject, Role), Scope> = BTreeMap::new();
    let mut select = connection.prepare_cached("SELECT subject_kind, subject, role, tenant FROM grants")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        let (role, named): (String, String) = (row.get(2)?, row.get(3)?);
        let subject = match kind.as_str() {
            "user" => Subject::User(principal(&name)?),
            "group" => Subject::Group(principal(&name)?),
            _ => return Err(JobError::Damaged("a grant")),
        };
        let role = role.parse().map_err(|_| JobError::Damaged("a role"))?;
        let scope = scopes.entry((subject, role)).or_insert_with(|| Scope::Tenants(BTreeSet::new()));
        match scope {
            Scope::Tenants(tenants) if !named.is_empty() => {
                tenants.insert(tenant(&named)?);
            }
            Scope::Tenants(_) => *scope = Scope::All,
            Scope::All => {}
        }
    }
    Ok(scopes.into_iter().map(|((subject, role), scope)| Grant { subject, role, scope }).collect())
}

fn tokens(connection: &Connection) -> Result<Vec<TokenRecord>, JobError> {
    let mut select = connection.prepare_cached("SELECT * FROM tokens ORDER BY created_at, id")?;
    let rows = select.query_map([], |row| Ok(token(row)))?;
    rows.map(|row| row?).collect()
}

fn token(row: &Row<'_>) -> Result<TokenRecord, JobError> {
    let (user, of_tenant): (Option<String>, Option<String>) = (row.get("user_name")?, row.get("tenant")?);
    let id: String = row.get("id")?;
    let time =
        |column: &str| Ok::<_, JobError>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis));
    Ok(TokenRecord {
        id: TokenId::parse(&id).map_err(|_| JobError::Damaged("a token's ID"))?,
        digest: TokenDigest::new(row.get("digest")?),
        kind: match (user, of_tenant) {
            (Some(user), None) => TokenKind::Api(principal(&user)?),
            (None, Some(name)) => TokenKind::Backend(tenant(&name)?),
            _ => return Err(JobError::Damaged("a token")),
        },
        created_at: Timestamp::from_millis(row.get("created_at")?),
        created_by: row.get("created_by")?,
        expires_at: time("expires_at")?,
        last_used_at: time("last_used_at")?,
        revoked_at: time("revoked_at")?,
        note: row.get("note")?,
    })
}

/// Adds a user, unless there is one of the name.
pub(super) fn add_user(connection: &Connection, user: &User) -> Result<bool, JobError> {
    let added = connection
        .prepare_cached("INSERT INTO users VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute((user.name.as_str(), user.created_at.as_millis(), user.created_by.as_str()))?;
    if added > 0 {
        insert_groups(connection, &user.name, user.groups.iter())?;
    }
    Ok(added > 0)
}

fn insert_groups<'a>(
    connection: &Connection,
    user: &PrincipalName,
    groups: impl Iterator<Item = &'a PrincipalName>,
) -> Result<(), JobError> {
    let mut insert =
        connection.prepare_cached("INSERT INTO memberships VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    for group in groups {
        insert.execute((user.as_str(), group.as_str()))?;
    }
    Ok(())
}

fn leave_groups(connection: &Connection, user: &PrincipalName) -> Result<(), JobError> {
    connection.prepare_cached("DELETE FROM memberships WHERE user_name = ?1")?.execute([user.as_str()])?;
    Ok(())
}

/// Sets a user's groups, if there is one of the name.
pub(super) fn set_groups(
    connection: &Connection,
    user: &PrincipalName,
    groups: &[PrincipalName],
) -> Result<bool, JobError> {
    let exists = connection.prepare_cached("SELECT 1 FROM users WHERE name = ?1")?.exists([user.as_str()])?;
    if exists {
        leave_groups(connection, user)?;
        insert_groups(connection, user, groups.iter())?;
    }
    Ok(exists)
}

/// Removes a user with its grants, and revokes its tokens.
pub(super) fn remove_user(
    connection: &Connection,
    user: &PrincipalName,
    at: Timestamp,
) -> Result<bool, JobError> {
    leave_groups(connection, user)?;
    set_grants(connection, &Subject::User(user.clone()), &[])?;
    connection
        .prepare_cached("UPDATE tokens SET revoked_at = ?2 WHERE user_name = ?1 AND revoked_at IS NULL")?
        .execute((user.as_str(), at.as_millis()))?;
    let removed = connection.prepare_cached("DELETE FROM users WHERE name = ?1")?.execute([user.as_str()])?;
    Ok(removed > 0)
}

/// Replaces somebody's grants.
pub(super) fn set_grants(
    connection: &Connection,
    subject: &Subject,
    grants: &[(Role, Scope)],
) -> Result<(), JobError> {
    let (kind, name) = match subject {
        Subject::User(name) => ("user", name),
        Subject::Group(name) => ("group", name),
    };
    connection
        .prepare_cached("DELETE FROM grants WHERE subject_kind = ?1 AND subject = ?2")?
        .execute((kind, name.as_str()))?;
    let mut insert =
        connection.prepare_cached("INSERT INTO grants VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?;
    for (role, scope) in grants {
        match scope {
            Scope::All => {
                insert.execute((kind, name.as_str(), role.as_str(), ""))?;
            }
            Scope::Tenants(tenants) => {
                for tenant in tenants {
                    insert.execute((kind, name.as_str(), role.as_str(), tenant.as_str()))?;
                }
            }
        }
    }
    Ok(())
}

/// Adds a token, unless there is one of its ID or digest.
pub(super) fn add_token(connection: &Connection, token: &TokenRecord) -> Result<bool, JobError> {
    let (user, tenant) = match &token.kind {
        TokenKind::Api(user) => (Some(user.as_str()), None),
        TokenKind::Backend(tenant) => (None, Some(tenant.as_str())),
    };
    let added = connection
        .prepare_cached(
            "INSERT INTO tokens VALUES (:id, :digest, :user, :tenant, :created_at, :created_by, :expires_at,
                :last_used_at, :revoked_at, :note) ON CONFLICT DO NOTHING",
        )?
        .execute(named_params! {
            ":id": token.id.as_str(),
            ":digest": token.digest.as_bytes(),
            ":user": user,
            ":tenant": tenant,
            ":created_at": token.created_at.as_millis(),
            ":created_by": token.created_by,
            ":expires_at": token.expires_at.map(Timestamp::as_millis),
            ":last_used_at": token.last_used_at.map(Timestamp::as_millis),
            ":revoked_at": token.revoked_at.map(Timestamp::as_millis),
            ":note": token.note,
        })?;
    Ok(added > 0)
}
