//! What a state holds to reach its cluster with: the client certificates of Kubernetes and Talos.
//!
//! Only the parts are taken, never a whole kubeconfig: one in a state could name a program to be run by whoever uses it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::declared::ResourceAddress;
use crate::declared::index::{IndexRow, Mode};

/// The types of resources that hold credentials.
pub const TYPES: [&str; 3] =
    ["talos_cluster_kubeconfig", "talos_client_configuration", "talos_machine_secrets"];

/// A client's certificate and key, and the authority that it trusts. Each is PEM in base64, as Kubernetes and Talos write
/// them into their configurations.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    ca: String,
    certificate: String,
    key: String,
}

/// What a credential opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// The cluster's Kubernetes API.
    Kubernetes,
    /// The Talos API of its machines.
    Talos,
}

/// What reaches the Kubernetes API of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesAccess {
    /// Which resource holds it.
    pub address: ResourceAddress,
    /// Where the API answers: `https://...`.
    pub server: String,
    /// What the client shows.
    pub client: ClientCertificate,
}

/// What reaches the Talos API of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalosAccess {
    /// Which resource holds it.
    pub address: ResourceAddress,
    /// The cluster's name, where that is told.
    pub cluster_name: Option<String>,
    /// Where the API answers: addresses or names.
    pub endpoints: Vec<String>,
    /// What the client shows.
    pub client: ClientCertificate,
}

/// Why a resource that should hold a credential gives none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// What it should open.
    pub opens: Opens,
    /// Which resource.
    pub address: ResourceAddress,
    /// Which of its attributes.
    pub field: &'static str,
    /// What is wrong with it; never its value.
    pub reason: &'static str,
}

/// All that a state holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// For Kubernetes.
    pub kubernetes: Option<KubernetesAccess>,
    /// For Talos.
    pub talos: Option<TalosAccess>,
    /// What could not be used.
    pub rejected: Vec<Rejected>,
}

/// The certificates only: the key is a secret.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl fmt::Display for Opens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kubernetes => "Kubernetes",
            Self::Talos => "Talos",
        })
    }
}

impl ClientCertificate {
    /// The client's certificate as PEM.
    pub fn certificate_pem(&self) -> Vec<u8> {
        STANDARD.decode(&self.certificate).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Instance {
    #[serde(default)]
    attributes: Option<Attributes>,
}

/// The attributes of all three types. Other members, and what is of another type than it should be, are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Attributes {
    #[serde(deserialize_with = "lenient")]
    kubernetes_client_configuration: Option<Parts>,
    #[serde(deserialize_with = "lenient")]
    client_configuration: Option<Parts>,
    #[serde(deserialize_with = "lenient")]
    cluster_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    endpoints: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts {
    #[serde(deserialize_with = "lenient")]
    host: Option<String>,
    #[serde(deserialize_with = "lenient")]
    ca_certificate: Option<String>,
    #[serde(deserialize_with = "lenient")]
    client_certificate: Option<String>,
    #[serde(deserialize_with = "lenient")]
    client_key: Option<String>,
}

/// What is of another type counts as absent.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

impl Parts {
    fn client(self) -> Result<ClientCertificate, (&'static str, &'static str)> {
        let pem = |field: &'static str, label: &str, text: Option<String>| {
            let text = text.filter(|text| !text.is_empty()).ok_or((field, "it is absent"))?;
            let bytes = STANDARD.decode(&text).map_err(|_| (field, "it is not base64"))?;
            let is_pem = String::from_utf8(bytes).is_ok_and(|pem| {
                pem.contains("-----BEGIN ") && pem.contains(label) && pem.contains("-----END ")
            });
            if is_pem { Ok(text) } else { Err((field, "it is no PEM of its kind")) }
        };
        Ok(ClientCertificate {
            ca: pem("ca_certificate", "CERTIFICATE-----", self.ca_certificate)?,
            certificate: pem("client_certificate", "CERTIFICATE-----", self.client_certificate)?,
            key: pem("client_key", "PRIVATE KEY-----", self.client_key)?,
        })
    }
}

/// Finds the credentials among objects of [`TYPES`], each with its bytes. Of several that hold one, managed resources come
/// before data sources, then the smaller address.
pub fn find<B: AsRef<[u8]>>(objects: &[(IndexRow, B)]) -> Credentials {
    let mut current: Vec<_> = objects.iter().filter(|(row, _)| row.deposed.is_none()).collect();
    current.sort_by(|(a, _), (b, _)| {
        (a.mode != Mode::Managed, &a.address).cmp(&(b.mode != Mode::Managed, &b.address))
    });
    let mut found = Credentials::default();
    let (mut cluster_name, mut endpoints) = (None, Vec::new());
    for (row, bytes) in current {
        let instance = serde_json::from_slice::<Instance>(bytes.as_ref()).ok();
        let attributes = instance.and_then(|instance| instance.attributes).unwrap_or_default();
        if row.resource_type == "talos_cluster_kubeconfig" {
            // `null` where the provider was told to keep it out of the state.
            if let Some(parts) = attributes.kubernetes_client_configuration {
                found.add_kubernetes(row, parts);
            }
            continue;
        }
        cluster_name = cluster_name.or(attributes.cluster_name.filter(|name| !name.is_empty()));
        endpoints.extend(attributes.endpoints.unwrap_or_default());
        if let Some(parts) = attributes.client_configuration {
            found.add_talos(row, parts);
        }
    }
    if let Some(talos) = &mut found.talos {
        endpoints.sort();
        endpoints.dedup();
        talos.cluster_name = cluster_name;
        talos.endpoints = endpoints;
    }
    found
}

impl Credentials {
    fn add_kubernetes(&mut self, row: &IndexRow, mut parts: Parts) {
        if self.kubernetes.is_some() {
            return;
        }
        let server = parts.host.take().filter(|host| host.starts_with("https://"));
        let access = server.ok_or(("host", "it is no https:// URL")).and_then(|server| {
            Ok(KubernetesAccess { address: row.address.clone(), server, client: parts.client()? })
        });
        match access {
            Ok(access) => self.kubernetes = Some(access),
            Err((field, reason)) => {
                self.rejected.push(Rejected {
                    opens: Opens::Kubernetes,
                    address: row.address.clone(),
                    field,
                    reason,
                });
            }
        }
    }

    fn add_talos(&mut self, row: &IndexRow, parts: Parts) {
        if self.talos.is_some() {
            return;
        }
        match parts.client() {
            Ok(client) => {
                self.talos = Some(TalosAccess {
                    address: row.address.clone(),
                    cluster_name: None,
                    endpoints: Vec::new(),
                    client,
                });
            }
            Err((field, reason)) => {
                self.rejected.push(Rejected {
                    opens: Opens::Talos,
                    address: row.address.clone(),
                    field,
                    reason,
                });
            }
        }
    }
}

impl KubernetesAccess {
    /// Returns a kubeconfig: YAML (client-go, `clientcmd/api/v1`) with one cluster, user and context of the name `name`.
    pub fn kubeconfig(&self, name: &str) -> String {
        let (name, server) = (quoted(name), quoted(&self.server));
        let ClientCertificate { ca, certificate, key } = &self.client;
        format!(
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
        )
    }
}

impl TalosAccess {
    /// Returns a talosconfig: YAML (Talos, `client/config.Config`) with one context of the name `name`.
    pub fn talosconfig(&self, name: &str) -> String {
        let name = quoted(name);
        let endpoints: Vec<String> = self.endpoints.iter().map(|endpoint| quoted(endpoint)).collect();
        let endpoints = endpoints.join(", ");
        let ClientCertificate { ca, certificate, key } = &self.client;
        format!(
            "context: {name}
contexts:
  {name}:
    endpoints: [{endpoints}]
    ca: {ca}
    crt: {certificate}
    key: {key}
"
        )
    }
}

/// A text as YAML: every JSON string is one.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
