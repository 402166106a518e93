//! Who is recognised, and who is not.

use super::*;
use crate::access::{TokenId, TokenSecret};
use crate::base::TenantName;

const NOW: Timestamp = Timestamp::from_millis(1_000);

fn name(text: &str) -> PrincipalName {
    PrincipalName::parse(text).unwrap()
}

fn user(text: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| name(group)).collect();
    User { name: name(text), groups, created_at: NOW, created_by: "test".to_owned() }
}

fn token(seed: u8, kind: TokenKind) -> TokenRecord {
    TokenRecord {
        id: TokenId::parse(&format!("t{seed}")).unwrap(),
        digest: TokenSecret::from_random([seed; 32]).digest(),
        kind,
        created_at: NOW,
        created_by: "test".to_owned(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        note: String::new(),
    }
}

fn grant(subject: Subject, role: Role, scope: Scope) -> Grant {
    Grant { subject, role, scope }
}

fn accounts() -> Accounts {
    let prod = Scope::Tenants(BTreeSet::from([TenantName::parse("prod").unwrap()]));
    let api = |user: &str| TokenKind::Api(name(user));
    Accounts {
        users: vec![user("ana", &["ops"]), user("root", &[])],
        grants: vec![
            grant(Subject::User(name("ana")), Role::View, Scope::All),
            grant(Subject::User(name("root")), Role::Admin, Scope::All),
            grant(Subject::Group(name("ops")), Role::Edit, prod),
        ],
        tokens: vec![
            token(1, api("ana")),
            token(2, api("root")),
            token(3, TokenKind::Backend(TenantName::parse("prod").unwrap())),
            TokenRecord { expires_at: Some(NOW), ..token(4, api("ana")) },
            TokenRecord { expires_at: Some(Timestamp::from_millis(1_001)), ..token(5, api("ana")) },
            TokenRecord { revoked_at: Some(NOW), ..token(6, api("ana")) },
            token(7, api("gone")),
        ],
    }
}

fn open(directory: &Directory, seed: u8) -> Result<Identity, TokenFault> {
    let digest = TokenSecret::from_random([seed; 32]).digest();
    directory.by_token(&digest, NOW).map(|(identity, _)| identity)
}

#[test]
fn a_token_opens_what_its_user_and_their_groups_are_granted() {
    let directory = Directory::new(accounts());
    let ana = open(&directory, 1).unwrap();
    assert_eq!((ana.name.as_str(), ana.groups.as_slice()), ("ana", ["ops".to_owned()].as_slice()));
    assert_eq!(ana.access.role_everywhere(), Some(Role::View));
    assert_eq!(ana.access.role_in(&TenantName::parse("prod").unwrap()), Some(Role::Edit));
    assert_eq!(ana.token.unwrap().as_str(), "t1");
    let backend = open(&directory, 3).unwrap();
    assert_eq!(backend.name, "backend:prod:t3");
    assert_eq!(backend.access.backend_of().map(TenantName::as_str), Some("prod"));
}

#[test]
fn a_token_that_is_over_opens_nothing_and_the_fault_is_told() {
    let directory = Directory::new(accounts());
    assert_eq!(open(&directory, 4), Err(TokenFault::Expired));
    assert!(open(&directory, 5).is_ok());
    assert_eq!(open(&directory, 6), Err(TokenFault::Revoked));
    assert_eq!(open(&directory, 7), Err(TokenFault::Unknown));
    assert_eq!(open(&directory, 9), Err(TokenFault::Unknown));
}

#[test]
fn a_certificate_counts_for_a_known_user_or_a_granted_group() {
    let directory = Directory::new(accounts());
    let groups = ["ops".to_owned()];
    let eve = directory.by_certificate("eve", &groups).unwrap();
    assert_eq!(eve.access.role_everywhere(), None);
    assert_eq!(eve.access.role_in(&TenantName::parse("prod").unwrap()), Some(Role::Edit));
    assert!(directory.by_certificate("eve", &["sales".to_owned()]).is_none());
    assert!(directory.by_certificate("system:admin", &groups).is_none());
    let ana = directory.by_certificate("ana", &[]).unwrap();
    assert_eq!(ana.groups, ["ops"]);
}

#[test]
fn there_is_an_admin_as_long_as_a_token_of_one_works() {
    let mut accounts = accounts();
    assert!(Directory::new(accounts.clone()).has_admin(NOW));
    accounts.tokens[1].revoked_at = Some(NOW);
    assert!(!Directory::new(accounts.clone()).has_admin(NOW));
    accounts.tokens[1].revoked_at = None;
    accounts.grants.remove(1);
    assert!(!Directory::new(accounts).has_admin(NOW));
}
