//! The current projection of each tenant, never older than its newest version, and who its objects are over time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::base::{TenantName, Timestamp};
use crate::declared::compute::{Compute, compute};
use crate::declared::document::{self, Document};
use crate::declared::mapping::Mappings;
use crate::declared::projection::{self, History, ResourceKind, Subject};
use crate::declared::reader::{ReadError, StateReader};
use crate::declared::resource::Projection;
use crate::declared::store::{
    Content, HistoryEntry, HistoryHead, HistoryStore, StateStore, StoreError, VersionMeta,
};
use crate::declared::{Lineage, VersionNumber};

/// How many versions that nobody read are gone through one by one; of more, only the newest ones, and what came before
/// them counts as having come with the first of these.
const CAUGHT_UP: usize = 32;

/// How many bytes of such versions are gone through at most, the newest not counted: a read waits for it.
const CAUGHT_UP_BYTES: u64 = 32 << 20;

/// How many objects of projections are kept in memory, over all tenants: a cache, whose loss costs a projection.
const KEPT_OBJECTS: usize = 200_000;

/// What one version of a tenant's state declares, and who its objects are.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The version.
    pub version: VersionMeta,
    /// What it declares.
    pub projection: Projection,
    /// Its objects, by kind and name.
    pub objects: Objects,
}

/// Who objects are, by kind and object name (the cluster's is empty).
pub type Objects = BTreeMap<(ResourceKind, String), Lifetime>;

/// An object over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its identity and the versions that made it what it is.
    pub history: History,
    /// When the version was written in which it came.
    pub created_at: Timestamp,
    /// When the version of its spec's last change was written.
    pub changed_at: Timestamp,
}

impl Lifetime {
    /// Makes of a lifetime as of version `number` one that began when the object that is there now came, which was in
    /// that version or before.
    fn stands_in(&mut self, now: Self, number: VersionNumber) {
        if now.history.changed_version <= number {
            *self = now;
        } else {
            self.created_at = now.created_at;
            self.history.uid = now.history.uid;
            self.history.first_version = now.history.first_version;
        }
    }
}

/// Projects tenants' states, each version once.
#[derive(Clone, Debug)]
pub struct Projector {
    states: Arc<dyn StateStore>,
    reader: StateReader,
    history: Arc<dyn HistoryStore>,
    compute: Arc<dyn Compute>,
    mappings: Arc<RwLock<Arc<Mappings>>>,
    kept: Arc<Mutex<HashMap<TenantName, Kept>>>,
}

/// A projection in memory, and the mappings it was made by.
#[derive(Clone, Debug)]
struct Kept {
    declared: Arc<Declared>,
    mappings: Arc<Mappings>,
}

impl Projector {
    /// Makes a projector over the stores. States are projected behind `compute`.
    pub fn new(
        states: Arc<dyn StateStore>,
        reader: StateReader,
        history: Arc<dyn HistoryStore>,
        compute: Arc<dyn Compute>,
        mappings: Mappings,
    ) -> Self {
        let mappings = Arc::new(RwLock::new(Arc::new(mappings)));
        Self { states, reader, history, compute, mappings, kept: Arc::default() }
    }

    /// Returns the mappings in force.
    pub fn mappings(&self) -> Arc<Mappings> {
        Arc::clone(&self.mappings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other mappings in force: every projection is made anew when it is next asked for.
    pub fn use_mappings(&self, mappings: Mappings) {
        *self.mappings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(mappings);
    }

    fn find_kept(&self, tenant: &TenantName, version: &VersionMeta) -> Option<Arc<Declared>> {
        let mappings = self.mappings();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get(tenant).filter(|kept| {
            Arc::ptr_eq(&kept.mappings, &mappings)
                && kept.declared.version.version == version.version
                && kept.declared.version.fingerprint == version.fingerprint
                // A tenant that was removed and made anew counts from 1 again.
                && kept.declared.version.written_at == version.written_at
        })?;
        Some(Arc::clone(&kept.declared))
    }

    /// Returns the projection of the newest version: never of an earlier one than was acknowledged before the call.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where there is no state in clear, or the store failed.
    pub async fn current(&self, tenant: &TenantName) -> Result<Arc<Declared>, ReadError> {
        let version = self.reader.plain_head(tenant).await?;
        if let Some(declared) = self.find_kept(tenant, &version) {
            return Ok(declared);
        }
        let mappings = self.mappings();
        let (objects, pending) = self.pending(tenant, &version).await?;
        let declared = Arc::new(self.carry_on(tenant, version, objects, pending, &mappings).await?);
        // Where it cannot be kept, the next one goes on from what was kept before: reading needs no place to write.
        drop(self.save(tenant, &declared).await);
        self.keep(tenant, Kept { declared: Arc::clone(&declared), mappings });
        Ok(declared)
    }

    /// Goes through versions up to `version`, from the objects before them.
    async fn carry_on(
        &self,
        tenant: &TenantName,
        version: VersionMeta,
        mut objects: Objects,
        pending: Vec<VersionMeta>,
        mappings: &Arc<Mappings>,
    ) -> Result<Declared, ReadError> {
        let mut projection = None;
        for meta in pending {
            if meta.content == Content::Tombstone {
                objects.clear();
                continue;
            }
            let Some(projected) = self.project(tenant, &meta, mappings).await? else {
                continue;
            };
            objects = next(tenant, &meta, &projected, &objects);
            projection = Some(projected);
        }
        let projection = match projection.filter(|projection| projection.version == version.version) {
            Some(projection) => projection,
            None => self.of(tenant, &version, mappings).await?,
        };
        Ok(Declared { version, projection, objects })
    }

    /// Returns one version as it was then: what it declared, as the mappings in force read it, and who its objects were.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where that version is none, or no state in clear.
    pub async fn as_of(&self, tenant: &TenantName, number: VersionNumber) -> Result<Declared, ReadError> {
        let meta = self.plain_version(tenant, number).await?;
        let (objects, pending) = self.pending(tenant, &meta).await?;
        let mut declared = self.carry_on(tenant, meta, objects, pending, &self.mappings()).await?;
        // Who is still there since before that version is known from the table, even where what it came with is gone.
        if let Some((_, entries)) =
            self.history.history(tenant).await?.filter(|(head, _)| head.version > number)
        {
            for entry in entries.into_iter().filter(|entry| entry.lifetime.history.first_version <= number) {
                if let Some(then) = declared.objects.get_mut(&(entry.kind, entry.name)) {
                    then.stands_in(entry.lifetime, number);
                }
            }
        }
        Ok(declared)
    }

    /// Returns what one version declares, as the mappings in force read it.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where that version is none, or no state in clear.
    pub async fn projection(
        &self,
        tenant: &TenantName,
        number: VersionNumber,
    ) -> Result<Projection, ReadError> {
        let meta = self.plain_version(tenant, number).await?;
        self.of(tenant, &meta, &self.mappings()).await
    }

    /// Returns who the objects were in the last version that was read: all that is known of them where the newest one
    /// cannot be read. `None` where none was.
    ///
    /// # Errors
    ///
    /// [`ReadError::Store`].
    pub async fn remembered(&self, tenant: &TenantName) -> Result<Option<Objects>, ReadError> {
        let found = self.history.history(tenant).await?;
        let entry = |entry: HistoryEntry| ((entry.kind, entry.name), entry.lifetime);
        Ok(found.map(|(_, entries)| entries.into_iter().map(entry).collect()))
    }

    async fn plain_version(
        &self,
        tenant: &TenantName,
        number: VersionNumber,
    ) -> Result<VersionMeta, ReadError> {
        let meta = self.states.version(tenant, number).await?;
        let meta = meta.ok_or_else(|| ReadError::NoVersion { tenant: tenant.clone(), version: number })?;
        match meta.content {
            Content::Plain { .. } => Ok(meta),
            Content::Encrypted => Err(ReadError::Encrypted { tenant: tenant.clone(), version: number }),
            Content::Tombstone => Err(ReadError::NoState(tenant.clone())),
        }
    }

    async fn of(
        &self,
        tenant: &TenantName,
        meta: &VersionMeta,
        mappings: &Arc<Mappings>,
    ) -> Result<Projection, ReadError> {
        let gone = || ReadError::NoVersion { tenant: tenant.clone(), version: meta.version };
        self.project(tenant, meta, mappings).await?.ok_or_else(gone)
    }

    /// Projects one version; `None` if it was removed meanwhile, or is encrypted.
    async fn project(
        &self,
        tenant: &TenantName,
        meta: &VersionMeta,
        mappings: &Arc<Mappings>,
    ) -> Result<Option<Projection>, ReadError> {
        let Content::Plain { .. } = meta.content else {
            return Ok(None);
        };
        let Some(body) = self.states.read(tenant, meta.version, 0..meta.size_bytes).await? else {
            return Ok(None);
        };
        let (mappings, version) = (Arc::clone(mappings), meta.version);
        let project = move || match document::read_with(&body, &|name| mappings.secret_rules(name)) {
            Ok(Document::Plain(state)) => Some(projection::project(&mappings, version, &body, &state.rows)),
            Ok(Document::Encrypted(_)) | Err(_) => None,
        };
        // The bytes, their index, and what is made of them.
        let projected = compute(self.compute.as_ref(), meta.size_bytes.saturating_mul(2), project).await?;
        if projected.is_none() {
            let what = format!("version {version} of {tenant}");
            return Err(StoreError::Corrupt { what, source: None }.into());
        }
        Ok(projected)
    }

    /// Returns the objects as of the last version that was gone through, and the versions since.
    async fn pending(
        &self,
        tenant: &TenantName,
        head: &VersionMeta,
    ) -> Result<(Objects, Vec<VersionMeta>), ReadError> {
        let mut versions = self.states.versions(tenant).await?;
        versions.retain(|meta| meta.version <= head.version);
        let stored = self.history.history(tenant).await?.filter(|(stored, _)| {
            stored.version <= head.version
                && versions
                    .iter()
                    .all(|meta| meta.version != stored.version || meta.fingerprint.sha256 == stored.sha256)
        });
        let (mut objects, mut last) = (Objects::new(), 0);
        if let Some((stored, entries)) = stored {
            last = stored.version.get();
            objects = entries.into_iter().map(|entry| ((entry.kind, entry.name), entry.lifetime)).collect();
        }
        versions.retain(|meta| meta.version.get() > last);
        let (mut bytes, mut from) = (0, versions.len());
        for (place, meta) in versions.iter().enumerate().rev().take(CAUGHT_UP) {
            bytes += meta.size_bytes;
            if bytes > CAUGHT_UP_BYTES && from < versions.len() {
                break;
            }
            from = place;
        }
        Ok((objects, versions.split_off(from)))
    }

    async fn save(&self, tenant: &TenantName, declared: &Declared) -> Result<(), StoreError> {
        let head =
            HistoryHead { version: declared.version.version, sha256: declared.version.fingerprint.sha256 };
        let entries = declared.objects.iter().map(|((kind, name), lifetime)| HistoryEntry {
            kind: *kind,
            name: name.clone(),
            lifetime: lifetime.clone(),
        });
        self.history.put_history(tenant, head, entries.collect()).await
    }

    fn keep(&self, tenant: &TenantName, declared: Kept) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(tenant.clone(), declared);
        let size = |kept: &Kept| kept.declared.objects.len();
        let mut total: usize = kept.values().map(size).sum();
        while total > KEPT_OBJECTS && kept.len() > 1 {
            let Some(other) = kept.keys().find(|name| *name != tenant).cloned() else {
                break;
            };
            total -= kept.remove(&other).as_ref().map_or(0, size);
        }
    }
}

/// Who the objects of a version are, by who they were before.
fn next(tenant: &TenantName, meta: &VersionMeta, projection: &Projection, before: &Objects) -> Objects {
    let none = Lineage::new("");
    let lineage = meta.lineage.as_ref().unwrap_or(&none);
    let lifetime = |kind: ResourceKind, name: &str, identity: &str, digest: [u8; 32]| {
        let previous = before.get(&(kind, name.to_owned()));
        let subject = Subject { tenant, lineage, kind, identity };
        let history =
            History::next(previous.map(|lifetime| &lifetime.history), subject, meta.version, digest);
        let same = previous.filter(|previous| previous.history.uid == history.uid);
        let unchanged = same.filter(|previous| previous.history.changed_version == history.changed_version);
        Lifetime {
            created_at: same.map_or(meta.written_at, |previous| previous.created_at),
            changed_at: unchanged.map_or(meta.written_at, |previous| previous.changed_at),
            history,
        }
    };
    let mut objects = Objects::new();
    for resource in projection::identified(projection) {
        let lifetime = lifetime(resource.kind, &resource.name, &resource.identity, resource.digest);
        objects.insert((resource.kind, resource.name), lifetime);
    }
    objects
}
