//! The run store's port over the file.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::runs::store::{RunStore, RunStoreError};
use rezus_core::runs::workspace::{ConfigurationSource, TenantSettings};
use rezus_core::runs::{RunName, RunRecord};
use rusqlite::{Connection, OptionalExtension as _, Params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SqliteStore;
use super::error::JobError;
use super::writer::Verdict;

/// How hard archives are compressed: they are written once and read for each run.
const LEVEL: i32 = 3;

impl SqliteStore {
    /// Runs a change, which is kept whatever it answers.
    async fn change_runs<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, RunStoreError> {
        Ok(self.writer.run(move |connection| Ok(Verdict::Keep(job(connection)?))).await?)
    }

    async fn read_runs<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, RunStoreError> {
        Ok(Arc::clone(&self.readers).run(read).await?)
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn add(&self, run: &RunRecord) -> Result<bool, RunStoreError> {
        let row = RunRow::of(run)?;
        let add = move |connection: &Connection| {
            let added = connection
                .prepare_cached(
                    "INSERT INTO runs (tenant, name, ended, record) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                )?
                .execute((&row.tenant, &row.name, row.ended, &row.record))?;
            Ok(added > 0)
        };
        self.change_runs(add).await
    }

    async fn put(&self, run: &RunRecord) -> Result<bool, RunStoreError> {
        let row = RunRow::of(run)?;
        let put = move |connection: &Connection| {
            let changed = connection
                .prepare_cached("UPDATE runs SET ended = ?3, record = ?4 WHERE tenant = ?1 AND name = ?2")?
                .execute((&row.tenant, &row.name, row.ended, &row.record))?;
            Ok(changed > 0)
        };
        self.change_runs(put).await
    }

    async fn runs(&self, tenant: Option<&TenantName>) -> Result<Vec<RunRecord>, RunStoreError> {
        let tenant = tenant.cloned();
        let read = move |connection: &Connection| match tenant {
            Some(tenant) => records(
                connection,
                "SELECT record FROM runs WHERE tenant = ?1 ORDER BY seq",
                [tenant.as_str()],
            ),
            None => records(connection, "SELECT record FROM runs ORDER BY seq", []),
        };
        self.read_runs(read).await
    }

    async fn run(&self, tenant: &TenantName, name: &RunName) -> Result<Option<RunRecord>, RunStoreError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        let read = move |connection: &Connection| {
            let record: Option<String> = connection
                .prepare_cached("SELECT record FROM runs WHERE tenant = ?1 AND name = ?2")?
                .query_row((tenant.as_str(), name.as_str()), |row| row.get(0))
                .optional()?;
            record.map(|json| parsed(&json, "a run")).transpose()
        };
        self.read_runs(read).await
    }

    async fn unended(&self) -> Result<Vec<RunRecord>, RunStoreError> {
        let read = |connection: &Connection| {
            records(connection, "SELECT record FROM runs WHERE ended = 0 ORDER BY seq", [])
        };
        self.read_runs(read).await
    }

    async fn remove(&self, tenant: &TenantName, name: &RunName) -> Result<bool, RunStoreError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        let remove = move |connection: &Connection| {
            let removed = connection
                .prepare_cached("DELETE FROM runs WHERE tenant = ?1 AND name = ?2")?
                .execute((tenant.as_str(), name.as_str()))?;
            Ok(removed > 0)
        };
        self.change_runs(remove).await
    }

    async fn settings(&self, tenant: &TenantName) -> Result<TenantSettings, RunStoreError> {
        let tenant = tenant.clone();
        let read = move |connection: &Connection| {
            let settings: Option<String> = connection
                .prepare_cached("SELECT settings FROM tenant_settings WHERE tenant = ?1")?
                .query_row([tenant.as_str()], |row| row.get(0))
                .optional()?;
            settings.map_or_else(|| Ok(TenantSettings::default()), |json| parsed(&json, SETTINGS))
        };
        self.read_runs(read).await
    }

    async fn all_settings(&self) -> Result<Vec<(TenantName, TenantSettings)>, RunStoreError> {
        let read = |connection: &Connection| {
            let mut select =
                connection.prepare_cached("SELECT tenant, settings FROM tenant_settings ORDER BY tenant")?;
            let mut rows = select.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let (tenant, json): (String, String) = (row.get(0)?, row.get(1)?);
                let tenant = TenantName::parse(&tenant).map_err(|_| JobError::Damaged("a tenant's name"))?;
                all.push((tenant, parsed(&json, SETTINGS)?));
            }
            Ok(all)
        };
        self.read_runs(read).await
    }

    async fn set_settings(
        &self,
        tenant: &TenantName,
        settings: &TenantSettings,
        archive: Option<(String, Bytes)>,
    ) -> Result<(), RunStoreError> {
        let (tenant, json) = (tenant.clone(), json(settings)?);
        let is_nothing = *settings == TenantSettings::default();
        let named = settings.workspace.as_ref().and_then(|workspace| match &workspace.source {
            ConfigurationSource::Archive(digest) => Some(digest.clone()),
            ConfigurationSource::Directory(_) => None,
        });
        let archive = match archive {
            Some((digest, bytes)) => Some((digest, bytes.len(), compressed(bytes).await?)),
            None => None,
        };
        let set = move |connection: &Connection| {
            if is_nothing {
                forget(connection, &tenant)?;
            } else {
                connection
                    .prepare_cached("INSERT OR REPLACE INTO tenant_settings VALUES (?1, ?2, ?3)")?
                    .execute((tenant.as_str(), named, json))?;
            }
            if let Some(archive) = archive {
                connection
                    .prepare_cached("INSERT INTO archives VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
                    .execute(archive)?;
            }
            collect_archives(connection)
        };
        self.change_runs(set).await
    }

    async fn archive(&self, digest: &str) -> Result<Option<Bytes>, RunStoreError> {
        let digest = digest.to_owned();
        let read = move |connection: &Connection| {
            let mut select =
                connection.prepare_cached("SELECT size, data FROM archives WHERE digest = ?1")?;
            let mut rows = select.query([digest])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let damaged = || JobError::Damaged("an uploaded configuration");
            let size: usize = row.get(0)?;
            let data = row.get_ref(1)?.as_blob().map_err(|_| damaged())?;
            let bytes = zstd::bulk::decompress(data, size).map_err(|_| damaged())?;
            if bytes.len() == size { Ok(Some(Bytes::from(bytes))) } else { Err(damaged()) }
        };
        self.read_runs(read).await
    }

    async fn remove_tenant(&self, tenant: &TenantName) -> Result<Vec<RunName>, RunStoreError> {
        let tenant = tenant.clone();
        let remove = move |connection: &Connection| {
            let mut names: Vec<(i64, RunName)> = Vec::new();
            let mut delete =
                connection.prepare_cached("DELETE FROM runs WHERE tenant = ?1 RETURNING seq, name")?;
            let mut rows = delete.query([tenant.as_str()])?;
            while let Some(row) = rows.next()? {
                let name: String = row.get(1)?;
                let name = RunName::parse(&name).map_err(|_| JobError::Damaged("a run's name"))?;
                names.push((row.get(0)?, name));
            }
            names.sort_unstable_by_key(|(seq, _)| *seq);
            forget(connection, &tenant)?;
            collect_archives(connection)?;
            Ok(names.into_iter().map(|(_, name)| name).collect())
        };
        self.change_runs(remove).await
    }
}

const SETTINGS: &str = "what is set of a tenant";

/// A run as it stands in its row.
struct RunRow {
    tenant: String,
    name: String,
    ended: bool,
    record: String,
}

impl RunRow {
    fn of(run: &RunRecord) -> Result<Self, RunStoreError> {
        Ok(Self {
            tenant: run.tenant().to_string(),
            name: run.facts().name.to_string(),
            ended: run.phase().is_end(),
            record: json(run)?,
        })
    }
}

/// Paths may hold what JSON cannot.
fn json(value: &impl Serialize) -> Result<String, RunStoreError> {
    serde_json::to_string(value).map_err(|source| RunStoreError::Unavailable { source: Box::new(source) })
}

fn parsed<T: DeserializeOwned>(json: &str, what: &'static str) -> Result<T, JobError> {
    serde_json::from_str(json).map_err(|_| JobError::Damaged(what))
}

fn records(connection: &Connection, sql: &str, params: impl Params) -> Result<Vec<RunRecord>, JobError> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        runs.push(parsed(row.get_ref(0)?.as_str().unwrap_or_default(), "a run")?);
    }
    Ok(runs)
}

/// Compresses an archive where that keeps nobody waiting.
async fn compressed(bytes: Bytes) -> Result<Vec<u8>, RunStoreError> {
    let unavailable = |source| RunStoreError::Unavailable { source };
    let compressed = tokio::task::spawn_blocking(move || zstd::bulk::compress(&bytes, LEVEL)).await;
    compressed.map_err(|error| unavailable(error.into()))?.map_err(|error| unavailable(error.into()))
}

fn forget(connection: &Connection, tenant: &TenantName) -> Result<(), JobError> {
    connection.prepare_cached("DELETE FROM tenant_settings WHERE tenant = ?1")?.execute([tenant.as_str()])?;
    Ok(())
}

/// Removes the archives that no settings name.
fn collect_archives(connection: &Connection) -> Result<(), JobError> {
    connection
        .prepare_cached(
            "DELETE FROM archives WHERE digest NOT IN
                (SELECT archive FROM tenant_settings WHERE archive IS NOT NULL)",
        )?
        .execute([])?;
    Ok(())
}
