//! The server as programs meet it that are written with `kube`: over TLS, with what its own `admin.kubeconfig` says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod crowded;
mod discovery;
mod followed;
mod program;
mod server;
