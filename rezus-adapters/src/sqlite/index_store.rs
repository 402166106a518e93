//! The index store's port over the file.

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::base::TenantName;
use rezus_core::declared::ResourceAddress;
use rezus_core::declared::index::{IndexHead, IndexRow};
use rezus_core::declared::store::{IndexStore, StoreError};
use rusqlite::Connection;

use super::SqliteStore;
use super::error::JobError;
use super::writer::Verdict;
use super::{index_rows, records};

impl SqliteStore {
    /// Reads from the index in one transaction. Damage there is a missing index, not an error: it is a cache.
    async fn index_job<T: Send + 'static>(
        &self,
        tenant: &TenantName,
        read: impl FnOnce(&Connection, i64, IndexHead) -> Result<Option<T>, JobError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let tenant = tenant.clone();
        let job = move |connection: &Connection| {
            let transaction = connection.unchecked_transaction()?;
            match index_rows::stored_head(&transaction, &tenant)? {
                Some((id, head)) => read(&transaction, id, head),
                None => Ok(None),
            }
        };
        match Arc::clone(&self.readers).run(job).await {
            Err(JobError::Damaged(_)) => Ok(None),
            outcome => Ok(outcome?),
        }
    }
}

#[async_trait]
impl IndexStore for SqliteStore {
    async fn head(&self, tenant: &TenantName) -> Result<Option<IndexHead>, StoreError> {
        let read = |connection: &Connection, id, head| {
            Ok(index_rows::is_whole(connection, id, head)?.then_some(head))
        };
        self.index_job(tenant, read).await
    }

    async fn find(
        &self,
        tenant: &TenantName,
        address: &ResourceAddress,
        deposed: Option<&str>,
    ) -> Result<Option<(IndexHead, IndexRow)>, StoreError> {
        let (address, deposed) = (address.clone(), deposed.map(ToOwned::to_owned));
        let read = move |connection: &Connection, id, head| {
            // An empty key stands for the current object in the table, and for nothing outside of it.
            if deposed.as_deref() == Some("") {
                return Ok(None);
            }
            let row = index_rows::find(connection, id, &address, deposed.as_deref())?;
            Ok(row.map(|row| (head, row)))
        };
        self.index_job(tenant, read).await
    }

    async fn rows(&self, tenant: &TenantName) -> Result<Option<(IndexHead, Vec<IndexRow>)>, StoreError> {
        let read = |connection: &Connection, id, head: IndexHead| {
            Ok(index_rows::all(connection, id, head, |_| true)?.map(|rows| (head, rows)))
        };
        self.index_job(tenant, read).await
    }

    async fn rows_of_types(
        &self,
        tenant: &TenantName,
        types: &[&str],
    ) -> Result<Option<(IndexHead, Vec<IndexRow>)>, StoreError> {
        let types: Vec<String> = types.iter().copied().map(str::to_owned).collect();
        let read = move |connection: &Connection, id, head: IndexHead| {
            let is_wanted = |found: &str| types.iter().any(|wanted| wanted == found);
            Ok(index_rows::all(connection, id, head, is_wanted)?.map(|rows| (head, rows)))
        };
        self.index_job(tenant, read).await
    }

    async fn replace(
        &self,
        tenant: &TenantName,
        head: IndexHead,
        rows: Arc<[IndexRow]>,
    ) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        let job = move |connection: &Connection| {
            // A rebuild may end after a newer version came in, with an index of its own.
            let current = records::tenant(connection, &tenant)?.and_then(|row| row.record.head);
            let is_late = current.is_some_and(|current| {
                current.version > head.version
                    || (current.version == head.version && current.fingerprint.sha256 != head.sha256)
            });
            if !is_late {
                index_rows::replace(connection, &tenant, head, &rows)?;
            }
            Ok(Verdict::Keep(()))
        };
        Ok(self.writer.run(job).await?)
    }

    async fn drop_index(&self, tenant: &TenantName) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        let job = move |connection: &Connection| {
            index_rows::remove(connection, &tenant)?;
            Ok(Verdict::Keep(()))
        };
        Ok(self.writer.run(job).await?)
    }
}
