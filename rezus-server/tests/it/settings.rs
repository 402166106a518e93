//! What operators set of tenants: configurations, labels, freezes.

mod archives;
mod configure;
mod encryption;
mod freeze;
mod labels;
mod refused;

use serde_json::Value;

use crate::cli::{self, Ran};
use crate::server::Server;

/// Runs a command against a server, through its data directory's socket.
async fn run(server: &Server, arguments: &[&str]) -> Ran {
    let data_dir = server.data_dir().to_str().unwrap();
    cli::run(&[arguments, &["--data-dir", data_dir]].concat()).await
}

/// What a server shows of a tenant.
async fn shown(server: &Server, tenant: &str) -> Value {
    server.get(&format!("/rezus/v1/tenants/{tenant}")).await.expect(200, tenant).json()
}

/// A server with a tenant `prod`.
async fn server() -> Server {
    let server = Server::start().await;
    run(&server, &["tenant", "create", "prod"]).await.done();
    server
}

/// An archive of files with these names.
fn archive(names: &[&str]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for name in names {
        entry(&mut archive, name, tar::EntryType::Regular);
    }
    archive.into_inner().unwrap()
}

/// Adds an entry, whatever its name.
fn entry(archive: &mut tar::Builder<Vec<u8>>, name: &str, kind: tar::EntryType) {
    let content: &[u8] = if kind == tar::EntryType::Regular { b"# a file" } else { b"" };
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(u64::try_from(content.len()).unwrap());
    if kind == tar::EntryType::Symlink {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    archive.append(&header, content).unwrap();
}

const CONFIGURATION: &str = "/rezus/v1/tenants/prod/configuration";
const TAR: [(&str, &str); 1] = [("content-type", "application/x-tar")];
