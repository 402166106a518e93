//! The current projection of each tenant, never older than its newest version, and who its objects are over time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::TenantName;
use crate::declared::compute::{Compute, compute};
use crate::declared::document::{self, Document};
use crate::declared::index::IndexRow;
use crate::declared::mapping::{Mappings, MappingsInForce};
use crate::declared::projection::{self, History, Lifetime, ResourceKind, Subject};
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
const KEPT_OBJECTS: usize = 20_000;

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

/// Projects tenants' states, each version once.
#[derive(Clone, Debug)]
pub struct Projector {
    states: Arc<dyn StateStore>,
    reader: StateReader,
    history: Arc<dyn HistoryStore>,
    compute: Arc<dyn Compute>,
    mappings: MappingsInForce,
    kept: Arc<Mutex<HashMap<TenantName, Kept>>>,
    notices: Arc<dyn Notices>,
    /// Tenants whose history could not be kept the last time.
    unkept: Arc<Mutex<HashSet<TenantName>>>,
}

/// Is told what is done, and what goes wrong where the answer is none the worse for it.
pub trait Notices: fmt::Debug + Send + Sync + 'static {
    /// A tenant's object history could not be kept: after a restart, objects may count as having come later than they
    /// did. Told once, until it can be kept again.
    fn history_not_kept(&self, tenant: &TenantName, error: &StoreError);

    /// A version was projected: nothing that is served from memory comes here.
    fn projected(&self) {}
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
struct Silence;

impl Notices for Silence {
    fn history_not_kept(&self, _tenant: &TenantName, _error: &StoreError) {}
}

/// A projection in memory, and the mappings it was made by.
#[derive(Clone, Debug)]
struct Kept {
    declared: Arc<Declared>,
    mappings: Mappings,
    /// Whether the table of object history says the same.
    is_saved: bool,
}

/// What has to be gone through to a version, and from where.
struct Pending {
    /// What the table that is kept was carried on to, be it of use or not.
    stored: Option<HistoryHead>,
    /// The objects as of the last version that was gone through.
    objects: Objects,
    /// The versions since.
    versions: Vec<VersionMeta>,
}

impl Projector {
    /// Makes a projector over the stores. States are projected behind `compute`.
    pub fn new(
        states: Arc<dyn StateStore>,
        reader: StateReader,
        history: Arc<dyn HistoryStore>,
        compute: Arc<dyn Compute>,
        mappings: MappingsInForce,
    ) -> Self {
        let (notices, unkept) = (Arc::new(Silence), Arc::default());
        Self { states, reader, history, compute, mappings, kept: Arc::default(), notices, unkept }
    }

    /// Has `notices` told what goes wrong besides.
    #[must_use]
    pub fn with_notices(self, notices: Arc<dyn Notices>) -> Self {
        Self { notices, ..self }
    }

    /// Returns the mappings in force.
    pub fn mappings(&self) -> Mappings {
        self.mappings.get()
    }

    /// Puts other mappings in force, here and wherever they are shared: every projection is made anew when it is next
    /// asked for.
    pub fn use_mappings(&self, mappings: Mappings) {
        self.mappings.replace(mappings);
    }

    fn find_kept(&self, tenant: &TenantName, version: &VersionMeta) -> Option<Arc<Declared>> {
        let mappings = self.mappings();
        let kept = locked(&self.kept);
        let kept = kept.get(tenant).filter(|kept| {
            kept.mappings.is_same(&mappings) && kept.declared.version.is_same_write(version)
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
        let pending = self.pending(tenant, &version).await?;
        let stored = pending.stored;
        let declared = Arc::new(self.carry_on(tenant, version, pending, &mappings).await?);
        let is_saved = self.save(tenant, stored, &declared).await;
        self.keep(tenant, Kept { declared: Arc::clone(&declared), mappings, is_saved });
        Ok(declared)
    }

    /// Goes through versions up to `version`, from the objects before them.
    async fn carry_on(
        &self,
        tenant: &TenantName,
        version: VersionMeta,
        pending: Pending,
        mappings: &Mappings,
    ) -> Result<Declared, ReadError> {
        let (mut objects, mut projection) = (pending.objects, None);
        for meta in pending.versions {
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
        let pending = self.pending(tenant, &meta).await?;
        let mut declared = self.carry_on(tenant, meta, pending, &self.mappings()).await?;
        // Who is still there since before that version is known from the table, even where what it came with is gone.
        if let Some((_, entries)) =
            self.stored_history(tenant).await?.filter(|(head, _)| head.version > number)
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
        Ok(self.stored_history(tenant).await?.map(|(_, entries)| by_name(entries)))
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
        mappings: &Mappings,
    ) -> Result<Projection, ReadError> {
        let gone = || ReadError::NoVersion { tenant: tenant.clone(), version: meta.version };
        self.project(tenant, meta, mappings).await?.ok_or_else(gone)
    }

    /// Projects one version; `None` if it was removed meanwhile, or is encrypted.
    async fn project(
        &self,
        tenant: &TenantName,
        meta: &VersionMeta,
        mappings: &Mappings,
    ) -> Result<Option<Projection>, ReadError> {
        let Content::Plain { .. } = meta.content else {
            return Ok(None);
        };
        let indexed = self.reader.indexed(tenant, meta, mappings).await?;
        let Some(body) = self.reader.bytes(tenant, meta, 0..meta.size_bytes).await? else {
            return Ok(None);
        };
        let (mappings, version) = (mappings.clone(), meta.version);
        let project = move || {
            let rows = match indexed.filter(|rows| is_index_of(rows, &body)) {
                Some(rows) => rows,
                None => match document::read_with(&body, &|name| mappings.secret_rules(name)) {
                    Ok(Document::Plain(state)) => state.rows,
                    Ok(Document::Encrypted(_)) | Err(_) => return None,
                },
            };
            Some(projection::project(&mappings, version, &body, &rows))
        };
        // The bytes, their index, and what is made of them.
        let projected = compute(self.compute.as_ref(), meta.size_bytes.saturating_mul(2), project).await?;
        self.notices.projected();
        if projected.is_none() {
            let what = format!("version {version} of {tenant}");
            return Err(StoreError::Corrupt { what, source: None }.into());
        }
        Ok(projected)
    }

    /// The table of object history as it is kept; none where it is damaged: it is a cache, whose loss costs precision.
    async fn stored_history(
        &self,
        tenant: &TenantName,
    ) -> Result<Option<(HistoryHead, Vec<HistoryEntry>)>, ReadError> {
        match self.history.history(tenant).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                if locked(&self.unkept).insert(tenant.clone()) {
                    self.notices.history_not_kept(tenant, &error);
                }
                Ok(None)
            }
            found => Ok(found?),
        }
    }

    async fn pending(&self, tenant: &TenantName, head: &VersionMeta) -> Result<Pending, ReadError> {
        let mut versions = self.states.versions(tenant).await?;
        versions.retain(|meta| meta.version <= head.version);
        // An encrypted one whose plaintext is known is given as it is in clear.
        if let Some(same) = versions.iter_mut().find(|meta| meta.is_same_write(head)) {
            same.clone_from(head);
        }
        let found = match self.saved(tenant, &versions) {
            Some(saved) => Some(saved),
            None => self.stored_history(tenant).await?.map(|(stored, entries)| (stored, by_name(entries))),
        };
        let stored = found.as_ref().map(|(stored, _)| *stored);
        let of_use = found.filter(|(stored, _)| {
            stored.version <= head.version
                && versions
                    .iter()
                    .all(|meta| meta.version != stored.version || meta.fingerprint.sha256 == stored.sha256)
        });
        let (mut objects, mut last) = (Objects::new(), 0);
        if let Some((stored, found)) = of_use {
            last = stored.version.get();
            objects = found;
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
        Ok(Pending { stored, objects, versions: versions.split_off(from) })
    }

    /// Keeps who the objects are. Where that fails, the next one goes on from what was kept before: reading needs no
    /// place to write. Another one that was kept meanwhile stays: it is of a version at least as new, or the next one
    /// goes on from there. Returns whether these are kept.
    async fn save(&self, tenant: &TenantName, stored: Option<HistoryHead>, declared: &Declared) -> bool {
        let head = history_head(&declared.version);
        let entries = declared.objects.iter().map(|((kind, name), lifetime)| HistoryEntry {
            kind: *kind,
            name: name.clone(),
            lifetime: lifetime.clone(),
        });
        match self.history.put_history(tenant, stored, head, entries.collect()).await {
            Ok(is_saved) => {
                locked(&self.unkept).remove(tenant);
                is_saved
            }
            Err(error) => {
                let is_new = locked(&self.unkept).insert(tenant.clone());
                if is_new {
                    self.notices.history_not_kept(tenant, &error);
                }
                false
            }
        }
    }

    /// Lets go what is kept in memory of a tenant's current projection: for whoever keeps what it needs of it.
    pub fn let_go(&self, tenant: &TenantName) {
        locked(&self.kept).remove(tenant);
    }

    /// The table of object history as it was saved last, if that was of one of these versions: it need not be read.
    fn saved(&self, tenant: &TenantName, versions: &[VersionMeta]) -> Option<(HistoryHead, Objects)> {
        let kept = locked(&self.kept);
        let Declared { version, objects, .. } = &*kept.get(tenant).filter(|kept| kept.is_saved)?.declared;
        // A tenant that was removed and made anew counts from 1 again.
        let is_it = |meta: &VersionMeta| meta.is_same_write(version);
        versions.iter().any(is_it).then(|| (history_head(version), objects.clone()))
    }

    fn keep(&self, tenant: &TenantName, declared: Kept) {
        let mut kept = locked(&self.kept);
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Up to where a table of object history goes that is of this version.
fn history_head(version: &VersionMeta) -> HistoryHead {
    HistoryHead { version: version.version, sha256: version.fingerprint.sha256 }
}

fn by_name(entries: Vec<HistoryEntry>) -> Objects {
    entries.into_iter().map(|entry| ((entry.kind, entry.name), entry.lifetime)).collect()
}

/// Tells whether rows are of these bytes.
fn is_index_of(rows: &[IndexRow], body: &[u8]) -> bool {
    let bound = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    rows.iter().all(|row| {
        let object = body.get(bound(row.span.start)..bound(row.span.end));
        object.is_some_and(|object| crc32fast::hash(object) == row.checksum)
    })
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
    // Sorted and at once: a map that grows entry by entry takes half as much again.
    let named = projection::identified(projection).into_iter().map(|resource| {
        let lifetime = lifetime(resource.kind, &resource.name, &resource.identity, resource.digest);
        ((resource.kind, resource.name), lifetime)
    });
    named.collect()
}
