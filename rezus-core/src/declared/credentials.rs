//! What a cluster is reached with: the client certificates of Kubernetes and Talos, of its state or of a file beside it.
//!
//! Only the parts are taken, never a whole kubeconfig: one in a state could name a program to be run by whoever uses it.
//! They are overwritten in memory once nobody holds them any more.

mod files;
mod written;

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::declared::ResourceAddress;
use crate::declared::index::{IndexRow, Mode};

pub use files::{kubeconfig, talosconfig};

/// The types of resources that hold credentials.
pub const TYPES: [&str; 3] =
    ["talos_cluster_kubeconfig", "talos_client_configuration", "talos_machine_secrets"];

/// A client's certificate and key, and the authority that it trusts. Each is PEM in base64, as Kubernetes and Talos write
/// them into their configurations.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    ca: Zeroizing<String>,
    certificate: Zeroizing<String>,
    key: Zeroizing<String>,
}

/// Where a credential comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This resource of the state.
    State(ResourceAddress),
    /// This file of the server's machine.
    File(PathBuf),
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
    /// Where it comes from.
    pub origin: Origin,
    /// Where the API answers: `https://...`.
    pub server: String,
    /// What the client shows.
    pub client: ClientCertificate,
}

/// What reaches the Talos API of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalosAccess {
    /// Where it comes from.
    pub origin: Origin,
    /// The cluster's name, where that is told.
    pub cluster_name: Option<String>,
    /// Where the API answers: addresses or names.
    pub endpoints: Vec<String>,
    /// What the client shows.
    pub client: ClientCertificate,
}

/// Why a resource or a file that should hold a credential gives none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// What it should open.
    pub opens: Opens,
    /// Which resource or file.
    pub origin: Origin,
    /// Which part of it.
    pub field: &'static str,
    /// What is wrong with it; never its value.
    pub reason: &'static str,
}

/// All that a tenant's cluster is reached with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// For Kubernetes.
    pub kubernetes: Option<KubernetesAccess>,
    /// For Talos.
    pub talos: Option<TalosAccess>,
    /// What could not be used.
    pub rejected: Vec<Rejected>,
    /// What resources of the state should open that hold no credential: it was kept out of the state.
    pub withheld: Vec<Opens>,
}

/// The certificates only: the key is a secret.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").field("certificate", &*self.certificate).finish_non_exhaustive()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(address) => write!(f, "{address}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
        }
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
    /// The authority, the certificate and the key: PEM in base64 each.
    pub fn parts(&self) -> (&str, &str, &str) {
        (&self.ca, &self.certificate, &self.key)
    }

    /// The client's certificate as PEM.
    pub fn certificate_pem(&self) -> Vec<u8> {
        STANDARD.decode(&*self.certificate).unwrap_or_default()
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
    ca_certificate: Option<Zeroizing<String>>,
    #[serde(deserialize_with = "lenient")]
    client_certificate: Option<Zeroizing<String>>,
    #[serde(deserialize_with = "lenient")]
    client_key: Option<Zeroizing<String>>,
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

/// Which part is not as it should be, and what is wrong with it.
type Fault = (&'static str, &'static str);

/// Checks that a part is there and what its name says.
fn pem(
    field: &'static str,
    label: &str,
    text: Option<Zeroizing<String>>,
) -> Result<Zeroizing<String>, Fault> {
    let text = text.filter(|text| !text.is_empty()).ok_or((field, "it is absent"))?;
    let bytes = STANDARD.decode(&*text).map(Zeroizing::new).map_err(|_| (field, "it is not base64"))?;
    let is_pem = std::str::from_utf8(&bytes)
        .is_ok_and(|pem| pem.contains("-----BEGIN ") && pem.contains(label) && pem.contains("-----END "));
    if is_pem { Ok(text) } else { Err((field, "it is no PEM of its kind")) }
}

const CERTIFICATE: &str = "CERTIFICATE-----";
const KEY: &str = "PRIVATE KEY-----";

impl Parts {
    fn client(self) -> Result<ClientCertificate, Fault> {
        Ok(ClientCertificate {
            ca: pem("ca_certificate", CERTIFICATE, self.ca_certificate)?,
            certificate: pem("client_certificate", CERTIFICATE, self.client_certificate)?,
            key: pem("client_key", KEY, self.client_key)?,
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
            match attributes.kubernetes_client_configuration {
                Some(parts) => found.add_kubernetes(row, parts),
                None => found.withheld.push(Opens::Kubernetes),
            }
            continue;
        }
        cluster_name = cluster_name.or(attributes.cluster_name.filter(|name| !name.is_empty()));
        endpoints.extend(attributes.endpoints.unwrap_or_default());
        match attributes.client_configuration {
            Some(parts) => found.add_talos(row, parts),
            None => found.withheld.push(Opens::Talos),
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
            Ok(KubernetesAccess {
                origin: Origin::State(row.address.clone()),
                server,
                client: parts.client()?,
            })
        });
        match access {
            Ok(access) => self.kubernetes = Some(access),
            Err((field, reason)) => {
                self.rejected.push(Rejected {
                    opens: Opens::Kubernetes,
                    origin: Origin::State(row.address.clone()),
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
                    origin: Origin::State(row.address.clone()),
                    cluster_name: None,
                    endpoints: Vec::new(),
                    client,
                });
            }
            Err((field, reason)) => {
                self.rejected.push(Rejected {
                    opens: Opens::Talos,
                    origin: Origin::State(row.address.clone()),
                    field,
                    reason,
                });
            }
        }
    }
}
