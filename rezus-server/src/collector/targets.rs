//! Whom to ask: where a tenant's cluster answers, and with what it is asked.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_core::base::TenantName;
use rezus_core::client::MachineSpec;
use rezus_core::declared::credentials::{ClientCertificate, Credentials, Opens, Rejected};
use rezus_core::declared::reader::ReadError;
use rezus_core::observed::{Credential, Destinations, Failure, Source, Target};
use zeroize::Zeroizing;

use crate::kube::catalogue::Catalogue;
use crate::secrets::Secrets;
use crate::workspaces::Workspaces;

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A cluster.
    Live(Target),
    /// A recording, whose path is the target's endpoint.
    Recording(Target),
}

/// Where tenants' clusters answer.
#[derive(Clone, Debug)]
pub struct Targets {
    secrets: Secrets,
    workspaces: Workspaces,
    catalogue: Catalogue,
}

impl Targets {
    /// By what the secrets are, what is set, and what is shown of machines.
    pub fn new(secrets: Secrets, workspaces: Workspaces, catalogue: Catalogue) -> Self {
        Self { secrets, workspaces, catalogue }
    }

    /// Returns whom to ask; nothing where there is nothing to ask.
    ///
    /// # Errors
    ///
    /// [`Failure`] says why nobody can be asked.
    pub async fn of(&self, tenant: &TenantName, source: Source) -> Result<Option<Whom>, Failure> {
        let settings = self.workspaces.of(tenant).await.map_err(internal)?;
        if let Some(path) = settings.recording {
            let endpoints = vec![path.display().to_string()];
            let (tenant, destinations) = (tenant.clone(), Destinations::default());
            return Ok(Some(Whom::Recording(Target { tenant, endpoints, credential: None, destinations })));
        }
        let destinations = Destinations { allowed: settings.destinations.clone() };
        let target = |endpoints, credential| {
            let (tenant, destinations) = (tenant.clone(), destinations.clone());
            Some(Whom::Live(Target { tenant, endpoints, credential, destinations }))
        };
        if source == Source::NodeMetrics {
            let Some(port) = settings.node_metrics else { return Ok(None) };
            let hosts = self.addresses(tenant, |_| true).await;
            let url = |host: String| match host.parse() {
                Ok(IpAddr::V6(v6)) => format!("http://[{v6}]:{port}/metrics"),
                _ => format!("http://{host}:{port}/metrics"),
            };
            let urls: Vec<String> = hosts.into_iter().map(url).collect();
            return Ok(if urls.is_empty() { None } else { target(urls, None) });
        }
        let credentials = match self.secrets.of(tenant).await {
            Ok(credentials) => credentials,
            // There is no cluster yet.
            Err(ReadError::NoState(_) | ReadError::NoTenant(_)) => return Ok(None),
            Err(ReadError::Encrypted { .. }) => return Err(Failure::CredentialMissing),
            Err(error) => return Err(internal(error)),
        };
        let (opens, endpoints, client) = match source {
            Source::Kubernetes => {
                let access = credentials.kubernetes.as_ref();
                (Opens::Kubernetes, access.map(|it| vec![it.server.clone()]), access.map(|it| &it.client))
            }
            Source::Talos | Source::NodeMetrics => {
                let access = credentials.talos.as_ref();
                (Opens::Talos, access.map(|it| it.endpoints.clone()), access.map(|it| &it.client))
            }
        };
        let (Some(mut endpoints), Some(client)) = (endpoints, client) else {
            return Err(missing(&credentials, opens));
        };
        if source == Source::Talos && endpoints.is_empty() {
            // The state names none: the control planes that it declares are asked.
            endpoints =
                self.addresses(tenant, |machine| machine.role.as_deref() == Some("controlplane")).await;
        }
        if endpoints.is_empty() {
            return Ok(None);
        }
        Ok(target(endpoints, Some(credential(client)?)))
    }

    /// The main addresses of the machines that a tenant declares.
    async fn addresses(&self, tenant: &TenantName, is_wanted: impl Fn(&MachineSpec) -> bool) -> Vec<String> {
        let machines = self.catalogue.machines(tenant).await;
        let wanted = machines.iter().filter(|(_, machine)| is_wanted(machine));
        let main = |machine: &MachineSpec| {
            let of = |kind: &str| machine.addresses.iter().find(|address| address.kind == kind);
            let address = of("InternalIP").or_else(|| of("ExternalIP")).or_else(|| of("Hostname"));
            address.map(|address| address.address.clone()).or_else(|| machine.hostname.clone())
        };
        let hosts: BTreeSet<String> = wanted.filter_map(|(_, machine)| main(machine)).collect();
        hosts.into_iter().collect()
    }
}

fn internal(error: impl std::error::Error) -> Failure {
    // What it says is in the server's log; here it might be of the state.
    tracing::warn!(cause = %crate::error::Chain(&error), "whom to ask of a cluster cannot be told now");
    Failure::Internal { detail: "what is kept of the tenant cannot be read now".to_owned() }
}

fn missing(credentials: &Credentials, opens: Opens) -> Failure {
    match credentials.rejected.iter().find(|rejected| rejected.opens == opens) {
        Some(Rejected { field, reason, .. }) => {
            Failure::CredentialRejected { field: (*field).to_owned(), reason: (*reason).to_owned() }
        }
        None => Failure::CredentialMissing,
    }
}

fn credential(client: &ClientCertificate) -> Result<Credential, Failure> {
    let decoded = |text: &str, field: &str| {
        let pem = STANDARD.decode(text).map(Zeroizing::new);
        let rejected =
            |_| Failure::CredentialRejected { field: field.to_owned(), reason: "it is no base64".to_owned() };
        pem.map_err(rejected)
    };
    let (ca, certificate, key) = client.parts();
    Ok(Credential {
        ca: decoded(ca, "ca")?,
        certificate: decoded(certificate, "certificate")?,
        key: decoded(key, "key")?,
    })
}
