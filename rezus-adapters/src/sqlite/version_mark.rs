//! The mark of resource versions over the file.

use async_trait::async_trait;
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::store::StoreError;
use rusqlite::{Connection, OptionalExtension as _};

use super::SqliteStore;
use super::writer::Verdict;

#[async_trait]
impl VersionMark for SqliteStore {
    async fn raise(&self, to: u64) -> Result<u64, StoreError> {
        let job = move |connection: &Connection| {
            let before: Option<u64> = connection
                .prepare_cached("SELECT mark FROM version_mark")?
                .query_row([], |row| row.get(0))
                .optional()?;
            let before = before.unwrap_or(0);
            if to > before {
                connection
                    .prepare_cached("INSERT OR REPLACE INTO version_mark (one, mark) VALUES (1, ?1)")?
                    .execute([to])?;
            }
            Ok(Verdict::Keep(before))
        };
        Ok(self.writer.run(job).await?)
    }
}
