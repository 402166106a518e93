//! The domain of rezus: what a tenant's state declares, what was observed of it, and the wall between the two.
//!
//! This crate is pure: no I/O, no clock, no runtime. What touches the outside is a *port*, an object-safe async
//! trait that adapters implement.
//!
//! | module | feature | holds |
//! | --- | --- | --- |
//! | [`base`] | always | names and time: the only things both planes share |
//! | `access` | `access` | who may do what: users, tokens, grants, the audit trail |
//! | `declared` | `declared` | the spec plane: OpenTofu/Terraform states, versions, locks, the derived index |
//! | `observed` | `observed` | the status plane: observations and how old they are |
//! | `series` | `series` | the history of the status plane: samples of series over time; `promql` adds queries over them |
//! | `runs` | `runs` | tofu or terraform at work: requests, phases, what was reported; it knows `declared`, which does not know it |
//! | `client` | `client` | what the API shows, as types for its clients; `schema` adds their JSON schemas |
//!
//! `access`, `declared`, `observed` and `client` do not know each other, and `series` knows none of them. Each builds without the others, so an import across
//! a wall does not compile.

#[cfg(feature = "access")]
pub mod access;
pub mod base;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "declared")]
pub mod declared;
#[cfg(feature = "observed")]
pub mod observed;
#[cfg(feature = "runs")]
pub mod runs;
#[cfg(feature = "series")]
pub mod series;
