//! Who may do what: users and groups, what is granted to them, the tokens they show, and the trail of what was done.
//!
//! Pure values and rules; the [`AccountStore`] keeps them. It knows tenants by name alone.

mod audit;
mod directory;
mod identity;
mod name;
mod role;
mod store;
mod token;

pub use audit::{AuditFilter, AuditRow};
pub use directory::{Accounts, Directory, TokenFault, User};
pub use identity::{ANONYMOUS, Access, Identity};
pub use name::{PrincipalName, PrincipalNameError};
pub use role::{Grant, Role, RoleError, Scope, Subject};
pub use store::{AccountStore, AccountStoreError};
pub use token::{TokenDigest, TokenError, TokenId, TokenIdError, TokenKind, TokenRecord, TokenSecret};
