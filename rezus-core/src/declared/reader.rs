//! Reads of what a tenant's current state declares, through the index.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::TenantName;
use crate::declared::compute::{Busy, Compute, compute};
use crate::declared::document::{self, Document};
use crate::declared::index::{INDEX_FORMAT, IndexHead, IndexRow};
use crate::declared::mapping::{Mappings, MappingsInForce};
use crate::declared::plaintext::Plaintexts;
use crate::declared::store::{Content, IndexStore, StateStore, StoreError, VersionMeta};
use crate::declared::{ResourceAddress, VersionNumber};

/// Reads instance objects of current states: one without touching the rest.
///
/// An index that is absent, damaged, of another format, masked by other rules or behind the newest version is rebuilt
/// before anything is answered, so no read is older than an acknowledged write, and none shows what is hidden by now.
#[derive(Clone, Debug)]
pub struct StateReader {
    states: Arc<dyn StateStore>,
    index: Arc<dyn IndexStore>,
    compute: Arc<dyn Compute>,
    mappings: MappingsInForce,
    plaintexts: Plaintexts,
}

/// The objects of a state, and the version they are of.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The version.
    pub version: VersionMeta,
    /// One row for each object, in the state's order.
    pub rows: Vec<IndexRow>,
}

/// One object of a state.
#[derive(Clone)]
pub struct Object {
    /// The version it is of.
    pub version: VersionNumber,
    /// Where it stands, and what of it must not be shown.
    pub row: IndexRow,
    /// Its bytes, secrets included: show them through [`masked::show`](crate::declared::masked::show) only.
    pub bytes: Bytes,
}

/// The row only: the bytes hold secrets.
impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object")
            .field("version", &self.version)
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such tenant.
    #[error("there is no tenant {0}")]
    NoTenant(TenantName),
    /// The tenant has no state: none was written, or it was deleted.
    #[error("the tenant {0} has no state")]
    NoState(TenantName),
    /// The state is encrypted.
    #[error(
        "the state of {tenant} (version {version}) is encrypted: only tofu with its key can read it, by `tofu state list`"
    )]
    Encrypted {
        /// Whose.
        tenant: TenantName,
        /// Which version.
        version: VersionNumber,
    },
    /// There is no such version: it never was, or retention removed it.
    #[error("there is no version {version} of {tenant}")]
    NoVersion {
        /// Whose.
        tenant: TenantName,
        /// Which one.
        version: VersionNumber,
    },
    /// The state holds no such object.
    #[error("version {version} of {tenant} holds no {address}{}", deposed.as_ref().map(|key| format!(" (deposed {key})")).unwrap_or_default())]
    NoObject {
        /// Whose state.
        tenant: TenantName,
        /// Which version.
        version: VersionNumber,
        /// What was looked for.
        address: ResourceAddress,
        /// The deposed key that was looked for.
        deposed: Option<String>,
    },
    /// There was no room to compute.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StateReader {
    /// Makes a reader over the two stores. An index is rebuilt behind `compute`, and masked by `mappings`.
    pub fn new(
        states: Arc<dyn StateStore>,
        index: Arc<dyn IndexStore>,
        compute: Arc<dyn Compute>,
        mappings: MappingsInForce,
    ) -> Self {
        Self { states, index, compute, mappings, plaintexts: Plaintexts::default() }
    }

    /// Returns the plaintexts of encrypted states: where one is known, it is read in place of the envelope.
    pub fn plaintexts(&self) -> &Plaintexts {
        &self.plaintexts
    }

    /// Returns the strings that the newest state holds secret, to keep them out of what is written elsewhere; none where
    /// there is no state.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where it cannot be read: while it is encrypted, too.
    pub async fn secret_strings(&self, tenant: &TenantName) -> Result<Vec<String>, ReadError> {
        loop {
            let version = match self.plain_head(tenant).await {
                Ok(version) => version,
                Err(ReadError::NoState(_) | ReadError::NoTenant(_)) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
            // Otherwise that version is gone: a newer one was written.
            let Some(body) = self.bytes(tenant, &version, 0..version.size_bytes).await? else {
                continue;
            };
            let rules = self.mappings.get();
            let read = move || document::secret_strings(&body, &|kind| rules.secret_rules(kind));
            let read = compute(self.compute.as_ref(), version.size_bytes, read).await?;
            return read.map_err(|_| {
                let what = format!("version {} of {tenant}", version.version);
                StoreError::Corrupt { what, source: None }.into()
            });
        }
    }

    /// Returns bytes of a version: of an encrypted one those of its plaintext, where that is known.
    pub(super) async fn bytes(
        &self,
        tenant: &TenantName,
        version: &VersionMeta,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        if let Some(body) = self.plaintexts.body(tenant, version) {
            let bound = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(body.len());
            return Ok(Some(body.slice(bound(range.start)..bound(range.end))));
        }
        self.states.read(tenant, version.version, range).await
    }

    /// Returns the rows of one version, if the index is of that version and masked by the rules of `mappings`.
    pub(super) async fn indexed(
        &self,
        tenant: &TenantName,
        version: &VersionMeta,
        mappings: &Mappings,
    ) -> Result<Option<Vec<IndexRow>>, StoreError> {
        let is_it = |head: &IndexHead| fits(*head, version, mappings);
        if !self.index.head(tenant).await?.is_some_and(|head| is_it(&head)) {
            return Ok(None);
        }
        let found = self.index.rows(tenant).await?.filter(|(head, _)| is_it(head));
        Ok(found.map(|(_, rows)| rows))
    }

    /// Returns all objects of the current state.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub async fn list(&self, tenant: &TenantName) -> Result<Listing, ReadError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (version, mappings) = (self.plain_head(tenant).await?, self.mappings.get());
            match self.index.rows(tenant).await? {
                Some((head, rows)) if fits(head, &version, &mappings) => {
                    return Ok(Listing { version, rows });
                }
                Some((head, _)) if attempt <= PATIENCE && is_ahead(head, &version) => continue,
                _ => {}
            }
            if let Some(rows) = self.rebuild_from(tenant, &version, &mappings).await? {
                return Ok(Listing { version, rows: rows.to_vec() });
            }
        }
    }

    /// Returns one object of the current state: the current one at an address, or with `deposed` that old generation.
    /// Takes as long as the object is large, however large the state is.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub async fn object(
        &self,
        tenant: &TenantName,
        address: &ResourceAddress,
        deposed: Option<&str>,
    ) -> Result<Object, ReadError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (version, mappings) = (self.plain_head(tenant).await?, self.mappings.get());
            let absent = || ReadError::NoObject {
                tenant: tenant.clone(),
                version: version.version,
                address: address.clone(),
                deposed: deposed.map(ToOwned::to_owned),
            };
            match self.index.find(tenant, address, deposed).await? {
                Some((head, row)) if fits(head, &version, &mappings) => {
                    let bytes = self.bytes(tenant, &version, row.span.clone()).await?;
                    if let Some(bytes) = bytes.filter(|bytes| crc32fast::hash(bytes) == row.checksum) {
                        return Ok(Object { version: version.version, row, bytes });
                    }
                }
                Some((head, _)) if attempt <= PATIENCE && is_ahead(head, &version) => continue,
                Some(_) => {}
                None => {
                    if self.index.head(tenant).await?.is_some_and(|head| fits(head, &version, &mappings)) {
                        return Err(absent());
                    }
                }
            }
            if let Some(rows) = self.rebuild_from(tenant, &version, &mappings).await? {
                let is_it = |row: &&IndexRow| row.address == *address && row.deposed.as_deref() == deposed;
                let row = rows.iter().find(is_it).ok_or_else(absent)?.clone();
                let bytes = self.bytes(tenant, &version, row.span.clone()).await?;
                return Ok(Object { version: version.version, bytes: bytes.ok_or_else(absent)?, row });
            }
        }
    }

    /// Returns those of some addresses at which the current state has a current object, each with its bytes. What lies close
    /// together is read at once: for many that is much less work than [`object`](Self::object) is for each.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub async fn objects_at(
        &self,
        tenant: &TenantName,
        addresses: &BTreeSet<ResourceAddress>,
    ) -> Result<Vec<Object>, ReadError> {
        'version: loop {
            let Listing { version, mut rows } = self.list(tenant).await?;
            rows.retain(|row| row.deposed.is_none() && addresses.contains(&row.address));
            rows.sort_by_key(|row| row.span.start);
            let mut objects = Vec::with_capacity(rows.len());
            for near in rows.chunk_by(|a, b| a.span.start / NEAR == b.span.start / NEAR) {
                let start = near.first().map_or(0, |row| row.span.start);
                let end = near.iter().map(|row| row.span.end).max().unwrap_or(start);
                let Some(all) = self.bytes(tenant, &version, start..end).await? else {
                    // That version is gone: a newer one was written.
                    continue 'version;
                };
                let within = |offset: u64| {
                    usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX).min(all.len())
                };
                for row in near {
                    let bytes = all.slice(within(row.span.start)..within(row.span.end));
                    if crc32fast::hash(&bytes) != row.checksum {
                        // The index is damaged. This builds it anew.
                        self.object(tenant, &row.address, None).await?;
                        continue 'version;
                    }
                    objects.push(Object { version: version.version, row: row.clone(), bytes });
                }
            }
            return Ok(objects);
        }
    }

    /// Returns the current objects of some types with their bytes, secrets included, and the version they are of: reads those
    /// alone.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub async fn objects_of(
        &self,
        tenant: &TenantName,
        types: &[&str],
    ) -> Result<(VersionMeta, Vec<(IndexRow, Bytes)>), ReadError> {
        loop {
            let (version, mappings) = (self.plain_head(tenant).await?, self.mappings.get());
            let found = self.index.rows_of_types(tenant, types).await?;
            let found = found.filter(|(head, _)| fits(*head, &version, &mappings));
            let (version, rows) = if let Some((_, rows)) = found {
                (version, rows)
            } else {
                // Which waits for the index, or builds it.
                let Listing { version, mut rows } = self.list(tenant).await?;
                rows.retain(|row| types.contains(&row.resource_type.as_str()));
                (version, rows)
            };
            let mut objects = Vec::new();
            let mut is_whole = true;
            for row in rows {
                match self.bytes(tenant, &version, row.span.clone()).await? {
                    Some(bytes) => objects.push((row, bytes)),
                    None => is_whole = false,
                }
            }
            // Otherwise that version is gone: a newer one was written.
            if is_whole {
                return Ok((version, objects));
            }
        }
    }

    /// Builds a tenant's index anew from its current state and returns how many rows it has; of an encrypted state and
    /// of none there is no index, and whatever is there is dropped.
    ///
    /// # Errors
    ///
    /// [`ReadError::NoTenant`] and [`ReadError::Store`].
    pub async fn rebuild(&self, tenant: &TenantName) -> Result<u64, ReadError> {
        loop {
            match self.plain_head(tenant).await {
                Ok(version) => {
                    let mappings = self.mappings.get();
                    if let Some(rows) = self.rebuild_from(tenant, &version, &mappings).await? {
                        return Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX));
                    }
                }
                Err(ReadError::NoState(_) | ReadError::Encrypted { .. }) => {
                    self.index.drop_index(tenant).await?;
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the newest version, which must be a state in clear.
    pub(super) async fn plain_head(&self, tenant: &TenantName) -> Result<VersionMeta, ReadError> {
        let found = self.states.tenant(tenant).await?;
        let (record, _) = found.ok_or_else(|| ReadError::NoTenant(tenant.clone()))?;
        let head = record.head.ok_or_else(|| ReadError::NoState(tenant.clone()))?;
        match head.content {
            Content::Plain { .. } => Ok(head),
            Content::Encrypted => {
                let encrypted = || ReadError::Encrypted { tenant: tenant.clone(), version: head.version };
                self.plaintexts.version(tenant, &head).ok_or_else(encrypted)
            }
            Content::Tombstone => Err(ReadError::NoState(tenant.clone())),
        }
    }

    /// Builds the index of one version and keeps it. `None` when that version is gone: a newer one was written.
    async fn rebuild_from(
        &self,
        tenant: &TenantName,
        version: &VersionMeta,
        mappings: &Mappings,
    ) -> Result<Option<Arc<[IndexRow]>>, ReadError> {
        let body = self.bytes(tenant, version, 0..version.size_bytes).await?;
        let Some(body) = body else {
            return Ok(None);
        };
        let rules = mappings.clone();
        let read = move || document::read_with(&body, &|resource_type| rules.secret_rules(resource_type));
        let rows: Arc<[IndexRow]> = match compute(self.compute.as_ref(), version.size_bytes, read).await? {
            Ok(Document::Plain(state)) => state.rows.into(),
            Ok(Document::Encrypted(_)) | Err(_) => {
                let what = format!("version {} of {tenant}", version.version);
                return Err(StoreError::Corrupt { what, source: None }.into());
            }
        };
        let head = IndexHead {
            version: version.version,
            sha256: version.fingerprint.sha256,
            format: INDEX_FORMAT,
            rows: u64::try_from(rows.len()).unwrap_or(u64::MAX),
            secret_rules: mappings.secrets_digest(),
        };
        self.index.replace(tenant, head, Arc::clone(&rows)).await?;
        Ok(Some(rows))
    }
}

fn fits(head: IndexHead, version: &VersionMeta, mappings: &Mappings) -> bool {
    head.version == version.version
        && head.secret_rules == mappings.secrets_digest()
        && head.sha256 == version.fingerprint.sha256
        && head.format == INDEX_FORMAT
}

/// So many bytes of a state are read at a time.
const NEAR: u64 = 1 << 20;

/// How often an index that names a newer version than the record is taken for one that just came in. After that it is
/// taken for damage.
const PATIENCE: u32 = 3;

/// Tells whether a newer version seems to have come in since `version` was read.
fn is_ahead(head: IndexHead, version: &VersionMeta) -> bool {
    head.format == INDEX_FORMAT && head.version > version.version
}
