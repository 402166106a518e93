//! The laws of `AccountStore`.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::access::{
    AccountStore, Accounts, AuditFilter, AuditRow, Grant, PrincipalName, Role, Scope, Subject, TokenId,
    TokenKind, TokenRecord, TokenSecret, User,
};
use rezus_core::base::TenantName;

use crate::sample::{noon_plus, tenant};

/// Storage of its own for one law.
#[async_trait]
pub trait AccountStoreFixture: Send + Sync {
    /// Opens the port on that storage, anew each time.
    async fn open(&self) -> Arc<dyn AccountStore>;
}

/// Makes a test of each law of `AccountStore`, in a module `account_store_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! account_store_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            account_store_laws,
            $crate::contract::account_store,
            $fixture,
            a_removed_user_takes_grants_and_tokens_along,
            a_revoked_token_stays_revoked_as_of_the_first_time,
            grants_are_replaced_and_add_up_by_role,
            groups_are_set_where_there_is_a_user,
            the_audit_trail_is_listed_newest_first_and_filtered,
            the_audit_trail_is_pruned_by_age_and_by_number,
            tokens_are_kept_as_they_were_added,
            tokens_that_are_over_are_forgotten,
            use_is_noted_and_never_goes_back,
            users_are_added_once,
        );
    };
}

fn name(text: &str) -> PrincipalName {
    PrincipalName::parse(text).unwrap()
}

fn id(number: u8) -> TokenId {
    TokenId::parse(&format!("t{number}")).unwrap()
}

/// Returns a user that can be told from others.
pub fn user(text: &str, groups: &[&str]) -> User {
    User {
        name: name(text),
        groups: groups.iter().map(|group| name(group)).collect(),
        created_at: noon_plus(i64::try_from(text.len()).unwrap()),
        created_by: format!("who made {text}"),
    }
}

/// Returns a token that can be told from others.
pub fn token(number: u8, kind: TokenKind) -> TokenRecord {
    TokenRecord {
        id: id(number),
        digest: TokenSecret::from_random([number; 32]).digest(),
        kind,
        created_at: noon_plus(i64::from(number)),
        created_by: "admin".to_owned(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        note: format!("note {number}"),
    }
}

fn api(number: u8, user: &str) -> TokenRecord {
    token(number, TokenKind::Api(name(user)))
}

/// Returns a row of the audit trail that can be told from others.
pub fn audit_row(number: u16, who: &str, in_tenant: Option<&str>) -> AuditRow {
    AuditRow {
        at: noon_plus(i64::from(number)),
        who: who.to_owned(),
        groups: vec!["ops".to_owned(), "a \"group\"".to_owned()],
        token: Some(id(7)),
        from: "192.0.2.7".to_owned(),
        action: "state.write".to_owned(),
        tenant: in_tenant.map(tenant),
        object: number.to_string(),
        code: 200 + number,
    }
}

fn named(names: &[&str]) -> Scope {
    Scope::Tenants(names.iter().map(|name| tenant(name)).collect::<BTreeSet<TenantName>>())
}

/// A second user of a name is none; every handle sees the first, sorted among the others.
pub async fn users_are_added_once(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    assert_eq!(store.accounts().await.unwrap(), Accounts::default());
    assert!(store.add_user(user("zoe", &[])).await.unwrap());
    assert!(store.add_user(user("ana", &["ops", "dev"])).await.unwrap());
    assert!(!store.add_user(user("ana", &["other"])).await.unwrap());
    for handle in [&store, &fixture.open().await] {
        let users = handle.accounts().await.unwrap().users;
        assert_eq!(users, [user("ana", &["dev", "ops"]), user("zoe", &[])]);
    }
}

/// Groups are replaced as a whole; nobody has none.
pub async fn groups_are_set_where_there_is_a_user(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    store.add_user(user("ana", &["ops", "dev"])).await.unwrap();
    assert!(store.set_groups(&name("ana"), vec![name("dev"), name("qa"), name("dev")]).await.unwrap());
    assert!(!store.set_groups(&name("bob"), vec![name("dev")]).await.unwrap());
    assert_eq!(store.accounts().await.unwrap().users, [user("ana", &["dev", "qa"])]);
}

/// What a user was granted and could show goes with it; what others have stays.
pub async fn a_removed_user_takes_grants_and_tokens_along(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    for (number, who) in [(1, "ana"), (2, "bob")] {
        store.add_user(user(who, &["ops"])).await.unwrap();
        store.set_grants(&Subject::User(name(who)), vec![(Role::Edit, Scope::All)]).await.unwrap();
        store.add_token(api(number, who)).await.unwrap();
    }
    store.set_grants(&Subject::Group(name("ana")), vec![(Role::View, Scope::All)]).await.unwrap();
    store.revoke_token(&id(2), noon_plus(50)).await.unwrap();
    assert!(store.remove_user(&name("ana"), noon_plus(100)).await.unwrap());
    assert!(!store.remove_user(&name("ana"), noon_plus(200)).await.unwrap());
    let left = store.accounts().await.unwrap();
    assert_eq!(left.users, [user("bob", &["ops"])]);
    let grant = |subject, role| Grant { subject, role, scope: Scope::All };
    let expected =
        [grant(Subject::User(name("bob")), Role::Edit), grant(Subject::Group(name("ana")), Role::View)];
    assert_eq!(left.grants, expected);
    let revoked: Vec<_> = left.tokens.iter().map(|token| token.revoked_at).collect();
    assert_eq!(revoked, [Some(noon_plus(100)), Some(noon_plus(50))]);
    // Who comes under the name is not the one that went.
    store.add_user(user("ana", &[])).await.unwrap();
    assert_eq!(store.accounts().await.unwrap().users[0].groups.len(), 0);
}

/// The last word counts, for that subject alone; a role for all tenants takes in those that are named.
pub async fn grants_are_replaced_and_add_up_by_role(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    let (ana, group) = (Subject::User(name("ana")), Subject::Group(name("ana")));
    let of = async |subject: &Subject| {
        let grants = store.accounts().await.unwrap().grants;
        let grants = grants.into_iter().filter(|grant| grant.subject == *subject);
        grants.map(|grant| (grant.role, grant.scope)).collect::<Vec<_>>()
    };
    store.set_grants(&group, vec![(Role::Admin, Scope::All)]).await.unwrap();
    store.set_grants(&ana, vec![(Role::Edit, named(&["a"])), (Role::View, Scope::All)]).await.unwrap();
    assert_eq!(of(&ana).await, [(Role::View, Scope::All), (Role::Edit, named(&["a"]))]);
    let several = vec![
        (Role::Edit, named(&["b"])),
        (Role::Edit, named(&["c"])),
        (Role::View, named(&["d"])),
        (Role::View, Scope::All),
        (Role::Admin, named(&[])),
    ];
    store.set_grants(&ana, several).await.unwrap();
    assert_eq!(of(&ana).await, [(Role::View, Scope::All), (Role::Edit, named(&["b", "c"]))]);
    store.set_grants(&ana, Vec::new()).await.unwrap();
    assert_eq!(of(&ana).await, []);
    assert_eq!(of(&group).await, [(Role::Admin, Scope::All)]);
}

/// All of a token's record comes back; a second of its ID or digest is refused.
pub async fn tokens_are_kept_as_they_were_added(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    let full = TokenRecord {
        expires_at: Some(noon_plus(900)),
        last_used_at: Some(noon_plus(800)),
        revoked_at: Some(noon_plus(850)),
        ..token(2, TokenKind::Backend(tenant("prod")))
    };
    assert!(store.add_token(full.clone()).await.unwrap());
    assert!(store.add_token(api(1, "ana")).await.unwrap());
    let same_id = TokenRecord { id: id(1), ..api(3, "ana") };
    let same_digest = TokenRecord { digest: api(1, "ana").digest, ..api(4, "ana") };
    assert!(!store.add_token(same_id).await.unwrap());
    assert!(!store.add_token(same_digest).await.unwrap());
    for handle in [&store, &fixture.open().await] {
        assert_eq!(handle.accounts().await.unwrap().tokens, [api(1, "ana"), full.clone()]);
    }
}

/// A second revocation changes nothing; of no token there is none.
pub async fn a_revoked_token_stays_revoked_as_of_the_first_time(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    store.add_token(api(1, "ana")).await.unwrap();
    store.add_token(api(2, "ana")).await.unwrap();
    assert!(store.revoke_token(&id(1), noon_plus(10)).await.unwrap());
    assert!(store.revoke_token(&id(1), noon_plus(20)).await.unwrap());
    assert!(!store.revoke_token(&id(9), noon_plus(20)).await.unwrap());
    let revoked: Vec<_> =
        store.accounts().await.unwrap().tokens.iter().map(|token| token.revoked_at).collect();
    assert_eq!(revoked, [Some(noon_plus(10)), None]);
}

/// The latest time stands, however late an earlier one is told.
pub async fn use_is_noted_and_never_goes_back(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    store.add_token(api(1, "ana")).await.unwrap();
    store.add_token(api(2, "ana")).await.unwrap();
    store.touch_tokens(vec![(id(1), noon_plus(20)), (id(9), noon_plus(20))]).await.unwrap();
    store.touch_tokens(vec![(id(1), noon_plus(10))]).await.unwrap();
    let used: Vec<_> =
        store.accounts().await.unwrap().tokens.iter().map(|token| token.last_used_at).collect();
    assert_eq!(used, [Some(noon_plus(20)), None]);
}

/// Those that were over before a time go; those that work, or were over later, stay.
pub async fn tokens_that_are_over_are_forgotten(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    store.add_token(api(1, "ana")).await.unwrap();
    for (number, at) in [(2, 99), (3, 100)] {
        store.add_token(TokenRecord { expires_at: Some(noon_plus(at)), ..api(number, "ana") }).await.unwrap();
        store
            .add_token(TokenRecord { revoked_at: Some(noon_plus(at)), ..api(number + 10, "ana") })
            .await
            .unwrap();
    }
    assert_eq!(store.prune_tokens(noon_plus(100)).await.unwrap(), 2);
    let left = store.accounts().await.unwrap().tokens;
    let left: Vec<&str> = left.iter().map(|token| token.id.as_str()).collect();
    assert_eq!(left, ["t1", "t3", "t13"]);
}

/// Rows come back whole, the last appended first, whatever their times say.
pub async fn the_audit_trail_is_listed_newest_first_and_filtered(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    let bare = AuditRow { token: None, groups: Vec::new(), ..audit_row(1, "", None) };
    let rows = [
        audit_row(5, "ana", Some("prod")),
        bare,
        audit_row(2, "bob", Some("prod")),
        audit_row(3, "ana", Some("test")),
    ];
    store.append_audit(rows[..2].to_vec()).await.unwrap();
    store.append_audit(rows[2..].to_vec()).await.unwrap();
    let store = fixture.open().await;
    let list = async |in_tenant: Option<&str>, who: Option<&str>, limit| {
        let filter = AuditFilter { tenant: in_tenant.map(tenant), who: who.map(ToOwned::to_owned), limit };
        store.audit(&filter).await.unwrap()
    };
    let [first, second, third, fourth] = rows;
    assert_eq!(list(None, None, 9).await, [fourth.clone(), third.clone(), second.clone(), first.clone()]);
    assert_eq!(list(None, None, 1).await, std::slice::from_ref(&fourth));
    assert_eq!(list(Some("prod"), None, 9).await, [third, first.clone()]);
    assert_eq!(list(None, Some("ana"), 9).await, [fourth, first.clone()]);
    assert_eq!(list(Some("prod"), Some("ana"), 9).await, [first]);
    assert_eq!(list(None, Some(""), 9).await, [second]);
    assert_eq!(list(Some("none"), None, 9).await, []);
}

/// What is too old goes, and of the rest what is too much, the first appended first.
pub async fn the_audit_trail_is_pruned_by_age_and_by_number(fixture: &dyn AccountStoreFixture) {
    let store = fixture.open().await;
    store.append_audit((1..=6).map(|number| audit_row(number, "ana", None)).collect()).await.unwrap();
    let filter = AuditFilter { limit: 9, ..AuditFilter::default() };
    let codes = async || {
        let rows = store.audit(&filter).await.unwrap();
        rows.iter().map(|row| row.code - 200).collect::<Vec<_>>()
    };
    assert_eq!(store.prune_audit(noon_plus(1), 6).await.unwrap(), 0);
    assert_eq!(store.prune_audit(noon_plus(3), 100).await.unwrap(), 2);
    assert_eq!(codes().await, [6, 5, 4, 3]);
    assert_eq!(store.prune_audit(noon_plus(0), 3).await.unwrap(), 1);
    assert_eq!(codes().await, [6, 5, 4]);
    assert_eq!(store.prune_audit(noon_plus(6), 1).await.unwrap(), 2);
    assert_eq!(codes().await, [6]);
    assert_eq!(store.prune_audit(noon_plus(0), 0).await.unwrap(), 1);
    assert_eq!(codes().await.len(), 0);
}
