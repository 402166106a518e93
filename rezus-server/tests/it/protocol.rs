//! The protocol of the HTTP backend, row by row of its table of refusals, over the router itself.

mod bodies;
mod deletion;
mod locks;
mod query_form;
mod refusals;
mod retention;
mod rollback;
mod succession;
mod tenants;
