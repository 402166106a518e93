//! Identities of every kind, and a plane that knows them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use rezus_core::access::{
    AccountStore as _, PrincipalName, Role, Scope, Subject, TokenId, TokenKind, TokenRecord, TokenSecret,
    User,
};
use rezus_core::base::{Clock as _, TenantName, Timestamp};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::FakeAccountStore;

use crate::answer::Answer;
use crate::in_process::{InProcess, elsewhere};
use crate::lock::state;

/// The tenant that those who are bound to one are bound to.
pub(crate) const OWN: &str = "own";
/// Another one.
pub(crate) const FOREIGN: &str = "foreign";

/// Everybody who is let in, by name.
pub(crate) const LET_IN: [&str; 8] =
    ["view-all", "view-own", "edit-all", "edit-own", "admin-all", "admin-own", "backend-own", "no-grants"];

/// Everybody else: what they show.
pub(crate) const STRANGERS: [&str; 4] = ["none", "bad", "expired", "revoked"];

fn now() -> Timestamp {
    ManualClock::default().now()
}

fn name(text: &str) -> PrincipalName {
    PrincipalName::parse(text).unwrap()
}

/// Returns the token of somebody.
pub(crate) fn secret(who: &str) -> TokenSecret {
    let mut bytes = [0x5a; 32];
    for (byte, letter) in bytes.iter_mut().zip(who.bytes()) {
        *byte = letter;
    }
    TokenSecret::from_random(bytes)
}

/// Returns the ID of somebody's token.
pub(crate) fn token_id(who: &str) -> String {
    who.replace('-', "")
}

fn record(who: &str, kind: TokenKind) -> TokenRecord {
    TokenRecord {
        id: TokenId::parse(&token_id(who)).unwrap(),
        digest: secret(who).digest(),
        kind,
        created_at: now(),
        created_by: "test".to_owned(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        note: String::new(),
    }
}

/// A store that knows all of them.
pub(crate) async fn accounts() -> FakeAccountStore {
    let store = FakeAccountStore::new();
    let tenants = |name: &str| Scope::Tenants(BTreeSet::from([TenantName::parse(name).unwrap()]));
    let users = [
        ("view-all", Some((Role::View, Scope::All))),
        ("view-own", Some((Role::View, tenants(OWN)))),
        ("edit-all", Some((Role::Edit, Scope::All))),
        ("edit-own", Some((Role::Edit, tenants(OWN)))),
        ("admin-all", Some((Role::Admin, Scope::All))),
        ("admin-own", Some((Role::Admin, tenants(OWN)))),
        ("no-grants", None),
        ("victim", None),
    ];
    for (who, grant) in users {
        let user =
            User { name: name(who), groups: [].into(), created_at: now(), created_by: "test".to_owned() };
        store.add_user(user).await.unwrap();
        store.set_grants(&Subject::User(name(who)), grant.into_iter().collect()).await.unwrap();
        store.add_token(record(who, TokenKind::Api(name(who)))).await.unwrap();
    }
    let admin = TokenKind::Api(name("admin-all"));
    let own = TokenKind::Backend(TenantName::parse(OWN).unwrap());
    let tokens = [
        record("backend-own", own),
        TokenRecord { expires_at: Some(now()), ..record("expired", admin.clone()) },
        TokenRecord { revoked_at: Some(now()), ..record("revoked", admin) },
    ];
    for token in tokens {
        store.add_token(token).await.unwrap();
    }
    store
}

/// A plane that knows all of them, with a state in each tenant.
pub(crate) struct Closed {
    pub(crate) plane: InProcess,
    pub(crate) accounts: FakeAccountStore,
}

impl Closed {
    pub(crate) async fn new() -> Self {
        let accounts = accounts().await;
        let plane = InProcess::closed(Arc::new(accounts.clone()));
        let closed = Self { plane, accounts };
        for tenant in [OWN, FOREIGN] {
            let target = format!("/state/{tenant}");
            closed.ask("admin-all", "POST", &target, state("l", 1)).await.expect(200, "the first state");
        }
        closed.plane.plane().auth.trail().flush().await;
        closed.accounts.prune_audit(now(), 0).await.unwrap();
        closed
    }

    /// Sends a request as somebody, from another machine.
    pub(crate) async fn ask(&self, who: &str, method: &str, target: &str, body: impl Into<Bytes>) -> Answer {
        let bearer = format!("Bearer {}", secret(who).reveal());
        let mut headers = vec![("content-type", "application/json")];
        if who != "none" {
            headers.push(("authorization", bearer.as_str()));
        }
        self.plane.send_as(elsewhere(), method, target, &headers, body).await
    }
}
