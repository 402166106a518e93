//! Accounts and the audit trail in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rezus_core::access::{
    AccountStore, AccountStoreError, Accounts, AuditFilter, AuditRow, Grant, PrincipalName, Role, Scope,
    Subject, TokenId, TokenRecord, User,
};
use rezus_core::base::Timestamp;

use super::{Fault, InjectedFault};

/// An [`AccountStore`] in memory that fails on demand. A clone is another handle of the same storage.
#[derive(Clone, Default)]
pub struct FakeAccountStore(Arc<Mutex<Storage>>);

#[derive(Default)]
struct Storage {
    users: BTreeMap<PrincipalName, User>,
    grants: BTreeMap<(Subject, Role), Scope>,
    tokens: Vec<TokenRecord>,
    audit: Vec<AuditRow>,
    faults: Vec<Fault>,
}

impl FakeAccountStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next read or write fail.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Storage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Storage) -> T) -> Result<T, AccountStoreError> {
        let mut storage = self.lock();
        take(&mut storage.faults, Fault::Read)?;
        Ok(read(&storage))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Storage) -> T) -> Result<T, AccountStoreError> {
        let mut storage = self.lock();
        take(&mut storage.faults, Fault::BeforeWrite)?;
        let written = write(&mut storage);
        take(&mut storage.faults, Fault::AfterWrite)?;
        Ok(written)
    }
}

/// Fails if such a fault was injected.
fn take(faults: &mut Vec<Fault>, fault: Fault) -> Result<(), AccountStoreError> {
    match faults.iter().position(|injected| *injected == fault) {
        Some(place) => {
            faults.remove(place);
            Err(AccountStoreError::Unavailable { source: Box::new(InjectedFault(fault)) })
        }
        None => Ok(()),
    }
}

impl std::fmt::Debug for FakeAccountStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeAccountStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl AccountStore for FakeAccountStore {
    async fn accounts(&self) -> Result<Accounts, AccountStoreError> {
        self.read(|storage| {
            let mut tokens = storage.tokens.clone();
            tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
            let grant = |((subject, role), scope): (&(Subject, Role), &Scope)| Grant {
                subject: subject.clone(),
                role: *role,
                scope: scope.clone(),
            };
            Accounts {
                users: storage.users.values().cloned().collect(),
                grants: storage.grants.iter().map(grant).collect(),
                tokens,
            }
        })
    }

    async fn add_user(&self, user: User) -> Result<bool, AccountStoreError> {
        self.write(|storage| {
            let is_new = !storage.users.contains_key(&user.name);
            if is_new {
                storage.users.insert(user.name.clone(), user);
            }
            is_new
        })
    }

    async fn set_groups(
        &self,
        user: &PrincipalName,
        groups: Vec<PrincipalName>,
    ) -> Result<bool, AccountStoreError> {
        self.write(|storage| match storage.users.get_mut(user) {
            Some(user) => {
                user.groups = groups.into_iter().collect();
                true
            }
            None => false,
        })
    }

    async fn remove_user(&self, user: &PrincipalName, at: Timestamp) -> Result<bool, AccountStoreError> {
        self.write(|storage| {
            let subject = Subject::User(user.clone());
            storage.grants.retain(|(granted, _), _| *granted != subject);
            let kind = rezus_core::access::TokenKind::Api(user.clone());
            for token in storage.tokens.iter_mut().filter(|token| token.kind == kind) {
                token.revoked_at.get_or_insert(at);
            }
            storage.users.remove(user).is_some()
        })
    }

    async fn set_grants(
        &self,
        subject: &Subject,
        grants: Vec<(Role, Scope)>,
    ) -> Result<(), AccountStoreError> {
        self.write(|storage| {
            storage.grants.retain(|(granted, _), _| granted != subject);
            for (role, scope) in grants {
                let key = (subject.clone(), role);
                let merged = match (storage.grants.remove(&key), scope) {
                    (Some(Scope::Tenants(mut held)), Scope::Tenants(more)) => {
                        held.extend(more);
                        Scope::Tenants(held)
                    }
                    (None, scope) => scope,
                    (Some(_), _) => Scope::All,
                };
                if merged != Scope::Tenants(std::collections::BTreeSet::new()) {
                    storage.grants.insert(key, merged);
                }
            }
        })
    }

    async fn add_token(&self, token: TokenRecord) -> Result<bool, AccountStoreError> {
        self.write(|storage| {
            let is_new =
                !storage.tokens.iter().any(|held| held.id == token.id || held.digest == token.digest);
            if is_new {
                storage.tokens.push(token);
            }
            is_new
        })
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<bool, AccountStoreError> {
        self.write(|storage| match storage.tokens.iter_mut().find(|token| token.id == *id) {
            Some(token) => {
                token.revoked_at.get_or_insert(at);
                true
            }
            None => false,
        })
    }

    async fn touch_tokens(&self, used: Vec<(TokenId, Timestamp)>) -> Result<(), AccountStoreError> {
        self.write(|storage| {
            for (id, at) in used {
                if let Some(token) = storage.tokens.iter_mut().find(|token| token.id == id) {
                    token.last_used_at = token.last_used_at.max(Some(at));
                }
            }
        })
    }

    async fn prune_tokens(&self, before: Timestamp) -> Result<u64, AccountStoreError> {
        self.write(|storage| {
            let held = storage.tokens.len();
            let is_over = |at: Option<Timestamp>| at.is_some_and(|at| at < before);
            storage.tokens.retain(|token| !is_over(token.revoked_at) && !is_over(token.expires_at));
            count(held - storage.tokens.len())
        })
    }

    async fn append_audit(&self, rows: Vec<AuditRow>) -> Result<(), AccountStoreError> {
        self.write(|storage| storage.audit.extend(rows))
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, AccountStoreError> {
        self.read(|storage| {
            let rows = storage.audit.iter().rev().filter(|row| filter.takes(row));
            rows.take(filter.limit).cloned().collect()
        })
    }

    async fn prune_audit(&self, before: Timestamp, keep: u64) -> Result<u64, AccountStoreError> {
        self.write(|storage| {
            let held = storage.audit.len();
            storage.audit.retain(|row| row.at >= before);
            let keep = usize::try_from(keep).unwrap_or(usize::MAX);
            let over = storage.audit.len().saturating_sub(keep);
            storage.audit.drain(..over);
            count(held - storage.audit.len())
        })
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
