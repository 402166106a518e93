//! With what tenants' clusters are reached: found in each one's current state once, or in files that operators name where
//! the state holds nothing. In memory only.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rezus_core::base::TenantName;
use rezus_core::declared::credentials::{
    self, Credentials, KubernetesAccess, Opens, Origin, Rejected, TalosAccess,
};
use rezus_core::declared::reader::{ReadError, StateReader};
use rezus_core::declared::store::{StateStore, StoreError, VersionMeta};
use rezus_core::runs::store::RunStoreError;
use rezus_core::runs::workspace::TenantSettings;
use zeroize::Zeroizing;

use crate::error::Chain;
use crate::workspaces::Workspaces;

/// Of how many tenants they are held; those used longest ago go first, and are found again.
const MOST: usize = 1_000;

/// The longest file that is read.
const LONGEST: u64 = 1 << 20;

/// The credentials of all tenants: the one place to ask for them. Clones share it.
#[derive(Clone, Debug)]
pub struct Secrets(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    states: Arc<dyn StateStore>,
    reader: StateReader,
    workspaces: Workspaces,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    of: HashMap<TenantName, One>,
    /// Counts uses.
    now: u64,
}

/// What one version holds.
struct One {
    version: VersionMeta,
    credentials: Arc<Credentials>,
    used: u64,
}

/// How many there are.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.of.len())
    }
}

impl Secrets {
    /// None are known yet.
    pub fn new(states: Arc<dyn StateStore>, reader: StateReader, workspaces: Workspaces) -> Self {
        Self(Arc::new(Inner { states, reader, workspaces, held: Mutex::default() }))
    }

    /// Returns with what a tenant's cluster is reached: what its current state holds, and where that holds none what is in
    /// the files that are named for it. Files are read anew each time.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where the state cannot be read, or there is none, and no file is named.
    pub async fn of(&self, tenant: &TenantName) -> Result<Arc<Credentials>, ReadError> {
        let held = self.of_state(tenant).await;
        if let Ok(found) = &held
            && found.kubernetes.is_some()
            && found.talos.is_some()
        {
            return held;
        }
        let TenantSettings { kubeconfig_file, talosconfig_file, .. } = self.settings(tenant).await?;
        if kubeconfig_file.is_none() && talosconfig_file.is_none() {
            return held;
        }
        let mut credentials = match held {
            Ok(found) => Credentials::clone(&found),
            Err(ReadError::NoState(_) | ReadError::Encrypted { .. }) => Credentials::default(),
            Err(error) => return Err(error),
        };
        let add = move || {
            add_files(&mut credentials, kubeconfig_file, talosconfig_file);
            Arc::new(credentials)
        };
        let added = tokio::task::spawn_blocking(add).await;
        added.map_err(|error| StoreError::Unavailable { source: Box::new(error) }.into())
    }

    /// Forgets what is held of a tenant: it has another state, or is gone.
    pub fn forget(&self, tenant: &TenantName) {
        self.held().of.remove(tenant);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is set of a tenant: nothing where that is damaged, which is no reason to show nothing of it.
    async fn settings(&self, tenant: &TenantName) -> Result<TenantSettings, StoreError> {
        match self.0.workspaces.of(tenant).await {
            Ok(settings) => Ok(settings),
            Err(RunStoreError::Unavailable { source }) => Err(StoreError::Unavailable { source }),
            Err(error @ RunStoreError::Corrupt { .. }) => {
                tracing::error!(%tenant, cause = %Chain(&error), "what is kept of settings is damaged");
                Ok(TenantSettings::default())
            }
        }
    }

    async fn of_state(&self, tenant: &TenantName) -> Result<Arc<Credentials>, ReadError> {
        let record = self.0.states.tenant(tenant).await?;
        let head = record.and_then(|(record, _)| record.head);
        if let Some(known) = self.known(tenant, head.as_ref()) {
            return Ok(known);
        }
        let (version, objects) = self.0.reader.objects_of(tenant, &credentials::TYPES).await?;
        let credentials = Arc::new(credentials::find(&objects));
        let mut held = self.held();
        held.now += 1;
        let one = One { version, credentials: Arc::clone(&credentials), used: held.now };
        held.of.insert(tenant.clone(), one);
        while held.of.len() > MOST {
            let oldest = held.of.iter().min_by_key(|(_, one)| one.used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            held.of.remove(&oldest);
        }
        Ok(credentials)
    }

    /// Returns what is held of a tenant's newest version. That of any other one is dropped.
    fn known(&self, tenant: &TenantName, head: Option<&VersionMeta>) -> Option<Arc<Credentials>> {
        let mut held = self.held();
        held.now += 1;
        let now = held.now;
        let one = held.of.get_mut(tenant)?;
        if head.is_some_and(|head| head.is_same_write(&one.version)) {
            one.used = now;
            return Some(Arc::clone(&one.credentials));
        }
        held.of.remove(tenant);
        None
    }
}

/// Adds what files hold that the state does not: the state's own win.
fn add_files(credentials: &mut Credentials, kubeconfig: Option<PathBuf>, talosconfig: Option<PathBuf>) {
    if let Some(path) = kubeconfig.filter(|_| credentials.kubernetes.is_none()) {
        match kubernetes(&path) {
            Ok(access) => credentials.kubernetes = Some(access),
            Err(rejected) => credentials.rejected.push(rejected),
        }
    }
    if let Some(path) = talosconfig.filter(|_| credentials.talos.is_none()) {
        match talos(&path) {
            Ok(access) => credentials.talos = Some(access),
            Err(rejected) => credentials.rejected.push(rejected),
        }
    }
}

/// Reads a kubeconfig.
///
/// # Errors
///
/// [`Rejected`] says why it gives nothing.
pub fn kubernetes(path: &Path) -> Result<KubernetesAccess, Rejected> {
    credentials::kubeconfig(path, &read(path, Opens::Kubernetes)?)
}

/// Reads a talosconfig.
///
/// # Errors
///
/// [`Rejected`] says why it gives nothing.
pub fn talos(path: &Path) -> Result<TalosAccess, Rejected> {
    credentials::talosconfig(path, &read(path, Opens::Talos)?)
}

fn read(path: &Path, opens: Opens) -> Result<Zeroizing<Vec<u8>>, Rejected> {
    let rejected =
        |reason| Rejected { opens, origin: Origin::File(path.to_owned()), field: "the whole", reason };
    let cannot = |error: io::Error| {
        rejected(match error.kind() {
            io::ErrorKind::NotFound => "there is no such file",
            io::ErrorKind::PermissionDenied => "the server may not read it",
            _ => "it cannot be read",
        })
    };
    // Before it is opened: opening a pipe waits for whoever writes into it.
    let about = std::fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(rejected("it is no file"));
    }
    if about.len() > LONGEST {
        return Err(rejected("it is longer than 1 MiB"));
    }
    // Room for all of it: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(vec![0; usize::try_from(about.len()).unwrap_or(0)]);
    File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).map_err(cannot)?;
    Ok(bytes)
}
