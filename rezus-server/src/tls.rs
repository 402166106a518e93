//! TLS: the certificate that the server shows, from files or of its own making, and whose client certificates it believes.
//!
//! [`Material`] holds what is in force and follows the files. A file that cannot be used changes nothing.

mod authority;
mod facts;
mod files;
mod name;

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rezus_core::base::{Clock, Timestamp};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use crate::config::TlsConfig;
use crate::error::Chain;

use facts::Facts;

pub use authority::Authority;
pub(crate) use facts::{ends, fingerprint, holder};
pub use name::{Name, NameError};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file or directory cannot be read, written or made.
    #[error("{} cannot be {what}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What was to be done with it.
        what: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} cannot be used for TLS: {reason}", path.display())]
    Unsound {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The server's own authority cannot sign.
    #[error("{} is there, but not its key {}: put the key back, or move the certificate away to make a new authority, which clients must then be told to trust", certificate.display(), key.display())]
    NoAuthorityKey {
        /// The authority's certificate.
        certificate: PathBuf,
        /// Where its key should be.
        key: PathBuf,
    },
    /// A certificate cannot be made.
    #[error("a certificate cannot be made")]
    Make(#[from] rcgen::Error),
    /// The machine's clock shows what no certificate can hold.
    #[error("a certificate cannot be made at {0}: set the machine's clock")]
    Clock(Timestamp),
    /// The library refuses.
    #[error("TLS cannot be set up")]
    Library(#[from] rustls::Error),
}

impl TlsError {
    fn unsound(path: &Path, reason: impl fmt::Display) -> Self {
        Self::Unsound { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Where systems keep the authorities that they trust: Debian and Alpine, Fedora, openSUSE.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// The file of the authorities that this system trusts, where it has one.
pub(crate) fn system_authorities() -> Option<&'static Path> {
    SYSTEM.into_iter().map(Path::new).find(|path| path.exists())
}

/// Reads the certificates of a PEM file, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    files::certificates(&files::read(path)?, path)
}

/// A certificate with what leads to its root, and its private key.
pub struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    certificate_pem: String,
}

impl Pair {
    /// Reads them from PEM files, and tries the key on the certificate.
    fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let certificate_pem = files::read(certificate)?;
        let chain = files::certificates(&certificate_pem, certificate)?;
        let private = files::key(&files::read(key)?, key)?;
        matching(chain.clone(), private.clone_key(), key)?;
        Ok(Self { chain, key: private, certificate_pem })
    }

    fn is(&self, other: &Self) -> bool {
        self.chain == other.chain && self.key == other.key
    }
}

/// Without the key.
impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// Says if a key is not the one of the first certificate.
fn matching(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    path: &Path,
) -> Result<(), TlsError> {
    match CertifiedKey::from_der(chain, key, &ring::default_provider()) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsError::unsound(path, "the key is not the certificate's"))
        }
        Err(error) => Err(TlsError::unsound(path, error)),
    }
}

/// Where certificates are from.
#[derive(Debug)]
enum Source {
    Own { authority: Box<Authority>, names: BTreeSet<Name> },
    Given { certificate: PathBuf, key: PathBuf },
}

/// What was read at one time.
#[derive(Debug)]
struct Read {
    pair: Pair,
    /// Whose client certificates are believed.
    roots: Vec<CertificateDer<'static>>,
}

/// What is in force.
#[derive(Debug)]
struct InForce {
    read: Read,
    config: Arc<ServerConfig>,
}

/// The certificate that a listener shows, which follows its files.
#[derive(Debug)]
pub struct Material {
    source: Source,
    client_ca: Option<PathBuf>,
    ca_pem: String,
    in_force: RwLock<InForce>,
}

impl Material {
    /// Reads the files of the settings, or opens or makes what is the server's own in `directory`, with a certificate for
    /// [`own_names`].
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file that cannot be read, written or used.
    pub fn open(
        config: &TlsConfig,
        directory: &Path,
        bound: IpAddr,
        now: Timestamp,
    ) -> Result<Self, TlsError> {
        let source = match (&config.certificate, &config.key) {
            (Some(certificate), Some(key)) => {
                Source::Given { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Source::Own {
                authority: Box::new(Authority::open_or_make(directory, now)?),
                names: own_names(&config.names, bound),
            },
        };
        let client_ca = config.client_ca.clone();
        let read = source.read(client_ca.as_deref(), now)?;
        let ca_pem = match &source {
            Source::Own { authority, .. } => authority.pem().to_owned(),
            Source::Given { .. } => read.pair.certificate_pem.clone(),
        };
        let config = read.server_config()?;
        Ok(Self { source, client_ca, ca_pem, in_force: RwLock::new(InForce { read, config }) })
    }

    /// Returns, as PEM, what a client is to trust: the certificate of the server's own authority, or else the certificates
    /// given, of which clients of Kubernetes take any as a root.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the name by which a client that connects to `address` is to know the certificate, where it is not for that
    /// address itself: `tls-server-name` of a kubeconfig.
    pub fn server_name(&self, address: IpAddr) -> Option<Name> {
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner);
        let names = Facts::of(in_force.read.pair.chain.first()?)?.names;
        if names.contains(&Name::Address(address)) {
            return None;
        }
        names.into_iter().find(|name| !name.is_pattern())
    }

    /// Returns what a handshake works with that begins now.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner).config)
    }

    /// Reads the files again, renews a certificate of the server's own that is near its end, and tells whether anything
    /// has changed. Connections that are open keep what they began with.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if what is there now cannot be used: what was in force stays.
    pub fn refresh(&self, now: Timestamp) -> Result<bool, TlsError> {
        let read = self.source.read(self.client_ca.as_deref(), now)?;
        let is_known = {
            let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner);
            in_force.read.pair.is(&read.pair) && in_force.read.roots == read.roots
        };
        if is_known {
            return Ok(false);
        }
        // A whole configuration, not a certificate alone: clients are not to resume what they began under other roots.
        let config = read.server_config()?;
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = InForce { read, config };
        Ok(true)
    }

    /// Looks for changes until the task is ended. What is wrong is logged once.
    pub async fn follow(self: Arc<Self>, clock: Arc<dyn Clock>, every: Duration) {
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(100)));
        let mut last = None;
        loop {
            ticks.tick().await;
            let (material, now) = (Arc::clone(&self), clock.now());
            let Ok(refreshed) = tokio::task::spawn_blocking(move || material.refresh(now)).await else {
                // The runtime ends.
                return;
            };
            let said = match refreshed {
                Ok(false) => None,
                Ok(true) => {
                    tracing::info!("TLS files came into force");
                    None
                }
                Err(error) => Some(Chain(&error).to_string()),
            };
            if let Some(cause) = said.as_deref().filter(|_| said != last) {
                tracing::error!(cause, "TLS files cannot be used: those in force stay");
            }
            last = said;
        }
    }
}

impl Source {
    fn read(&self, client_ca: Option<&Path>, now: Timestamp) -> Result<Read, TlsError> {
        let pair = match self {
            Self::Own { authority, names } => authority.server_pair(names, now)?,
            Self::Given { certificate, key } => Pair::read(certificate, key)?,
        };
        let roots = match (client_ca, self) {
            (Some(path), _) => certificates(path)?,
            (None, Self::Own { authority, .. }) => vec![authority.certificate().clone()],
            (None, Self::Given { .. }) => Vec::new(),
        };
        let mut store = RootCertStore::empty();
        for root in &roots {
            if let (Err(error), Some(path)) = (store.add(root.clone()), client_ca) {
                return Err(TlsError::unsound(path, error));
            }
        }
        Ok(Read { pair, roots })
    }
}

impl Read {
    fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let mut store = RootCertStore::empty();
        for root in &self.roots {
            store.add(root.clone())?;
        }
        let builder = if store.is_empty() {
            builder.with_no_client_auth()
        } else {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        };
        let mut config = builder.with_single_cert(self.pair.chain.clone(), self.pair.key.clone_key())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Returns what the server's own certificate is for: `localhost`, the loopback addresses, the machine's name, the address
/// that is bound unless it stands for all, and `more`.
pub fn own_names(more: &[Name], bound: IpAddr) -> BTreeSet<Name> {
    let mut names: BTreeSet<Name> = more.iter().cloned().collect();
    names.insert(Name::Dns("localhost".to_owned()));
    names.insert(Name::Address(Ipv4Addr::LOCALHOST.into()));
    names.insert(Name::Address(Ipv6Addr::LOCALHOST.into()));
    let machine = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    names.extend(machine.and_then(|name| name.parse().ok()));
    if !bound.is_unspecified() {
        names.insert(Name::Address(bound));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_796_065_837_000);
    const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    #[test]
    fn a_certificate_near_its_end_is_replaced_while_the_server_runs() {
        let directory = tempfile::tempdir().unwrap();
        let material = Material::open(&TlsConfig::default(), directory.path(), ANY, NOW).unwrap();
        let chain = || material.in_force.read().unwrap().read.pair.chain.clone();
        let (first, config) = (chain(), material.server_config());
        assert!(!material.refresh(NOW).unwrap());
        assert!(Arc::ptr_eq(&config, &material.server_config()), "sessions can be resumed");
        let later = Timestamp::from_millis(NOW.as_millis() + 70 * 86_400_000);
        assert!(material.refresh(later).unwrap());
        assert_ne!(chain(), first);
        assert!(!material.refresh(later).unwrap());
        assert_eq!(std::fs::read_to_string(directory.path().join("ca.pem")).unwrap(), material.ca_pem());
    }

    #[test]
    fn a_client_is_told_the_name_where_the_address_is_not_enough() {
        let directory = tempfile::tempdir().unwrap();
        let config = TlsConfig { names: vec!["*.example".parse().unwrap()], ..TlsConfig::default() };
        let material = Material::open(&config, directory.path(), ANY, NOW).unwrap();
        assert_eq!(material.server_name(Ipv4Addr::LOCALHOST.into()), None);
        let elsewhere = material.server_name("192.0.2.7".parse().unwrap()).unwrap();
        assert!(!elsewhere.is_pattern(), "{elsewhere}");
    }

    #[test]
    fn other_clients_are_believed_once_their_authority_is_there() {
        let (own, clients) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(Authority::open_or_make(clients.path(), NOW).unwrap());
        let file = clients.path().join("ca.pem");
        let config = TlsConfig { client_ca: Some(file.clone()), ..TlsConfig::default() };
        let material = Material::open(&config, own.path(), ANY, NOW).unwrap();
        let roots = || material.in_force.read().unwrap().read.roots.clone();
        let first = roots();
        assert_ne!(files::certificates(material.ca_pem(), &file).unwrap(), first);
        std::fs::write(&file, "cut").unwrap();
        assert!(material.refresh(NOW).unwrap_err().to_string().contains("ca.pem"));
        assert_eq!(roots(), first);
        std::fs::write(&file, material.ca_pem()).unwrap();
        assert!(material.refresh(NOW).unwrap());
        assert_eq!(roots(), files::certificates(material.ca_pem(), &file).unwrap());
    }

    #[test]
    fn no_key_is_in_debug_output() {
        let directory = tempfile::tempdir().unwrap();
        let material = Material::open(&TlsConfig::default(), directory.path(), ANY, NOW).unwrap();
        let shown = format!("{material:?} {material:#?}");
        for file in ["ca-key.pem", "server-key.pem"] {
            let pem = std::fs::read_to_string(directory.path().join(file)).unwrap();
            let line = pem.lines().nth(1).unwrap();
            assert!(!shown.contains(line), "{file}");
            let key = files::key(&pem, directory.path()).unwrap();
            // The private number itself (RFC 5915, section 3) follows a head of 36 bytes.
            let bytes = format!("{:?}", &key.secret_der()[36..44]);
            assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "{file}");
        }
        assert!(shown.contains("BEGIN CERTIFICATE"));
    }

    #[test]
    fn a_certificate_is_for_the_address_that_is_bound_unless_it_stands_for_all() {
        let more = ["rezus.example".parse().unwrap()];
        let names = own_names(&more, "192.0.2.7".parse().unwrap());
        for name in ["localhost", "127.0.0.1", "::1", "rezus.example", "192.0.2.7"] {
            assert!(names.contains(&name.parse().unwrap()), "{name}");
        }
        assert!(!own_names(&[], ANY).contains(&Name::Address(ANY)));
    }
}
