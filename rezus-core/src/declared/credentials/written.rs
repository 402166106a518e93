//! Credentials as the files that `kubectl` and `talosctl` read.

use std::fmt::Write as _;

use zeroize::Zeroizing;

use super::{ClientCertificate, KubernetesAccess, TalosAccess};

impl KubernetesAccess {
    /// Returns a kubeconfig: YAML (client-go, `clientcmd/api/v1`) with one cluster, user and context of the name `name`.
    pub fn kubeconfig(&self, name: &str) -> Zeroizing<String> {
        let (name, server) = (quoted(name), quoted(&self.server));
        let ClientCertificate { ca, certificate, key } = &self.client;
        let (ca, certificate, key) = (ca.as_str(), certificate.as_str(), key.as_str());
        written(
            &self.client,
            6 * name.len() + server.len(),
            format_args!(
                "apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {name}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
"
            ),
        )
    }
}

impl TalosAccess {
    /// Returns a talosconfig: YAML (Talos, `client/config.Config`) with one context of the name `name`.
    pub fn talosconfig(&self, name: &str) -> Zeroizing<String> {
        let name = quoted(name);
        let endpoints: Vec<String> = self.endpoints.iter().map(|endpoint| quoted(endpoint)).collect();
        let endpoints = endpoints.join(", ");
        let ClientCertificate { ca, certificate, key } = &self.client;
        let (ca, certificate, key) = (ca.as_str(), certificate.as_str(), key.as_str());
        written(
            &self.client,
            2 * name.len() + endpoints.len(),
            format_args!(
                "context: {name}
contexts:
  {name}:
    endpoints: [{endpoints}]
    ca: {ca}
    crt: {certificate}
    key: {key}
"
            ),
        )
    }
}

/// Writes a text that holds a client's certificate and `names` bytes of names, without moving it: what moves leaves a copy
/// behind.
fn written(client: &ClientCertificate, names: usize, text: std::fmt::Arguments<'_>) -> Zeroizing<String> {
    let ClientCertificate { ca, certificate, key } = client;
    let room = ca.len() + certificate.len() + key.len() + names + 512;
    let mut written = Zeroizing::new(String::with_capacity(room));
    // Writing to a string does not fail.
    let _: Result<(), std::fmt::Error> = written.write_fmt(text);
    written
}

/// A text as YAML: every JSON string is one.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
