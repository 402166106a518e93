//! The laws of `VersionMark`.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::declared::numbering::VersionMark;

/// Storage of its own for one law.
#[async_trait]
pub trait VersionMarkFixture: Send + Sync {
    /// Opens the port; again, on the same storage as before.
    async fn open(&self) -> Arc<dyn VersionMark>;
}

/// Makes a test of each law of `VersionMark`, in a module `version_mark_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! version_mark_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            version_mark_laws,
            $crate::contract::version_mark,
            $fixture,
            each_of_several_calls_sees_another_mark,
            the_mark_only_rises_and_is_kept,
        );
    };
}

/// The mark only rises, and is there when the storage is opened again.
pub async fn the_mark_only_rises_and_is_kept(fixture: &dyn VersionMarkFixture) {
    let store = fixture.open().await;
    assert_eq!(store.raise(7).await.unwrap(), 0);
    assert_eq!(store.raise(3).await.unwrap(), 7);
    let again = fixture.open().await;
    // Beyond what a double keeps exactly, and what microseconds since 1970 need for long.
    let far = (1 << 53) + 1;
    assert_eq!(again.raise(far).await.unwrap(), 7);
    assert_eq!(store.raise(0).await.unwrap(), far);
}

/// Of calls at one time, each raises the mark that the one before it left.
pub async fn each_of_several_calls_sees_another_mark(fixture: &dyn VersionMarkFixture) {
    let store = fixture.open().await;
    let calls: Vec<_> = (1..=20_u64)
        .map(|mark| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.raise(mark).await.unwrap() })
        })
        .collect();
    let mut seen = Vec::new();
    for call in calls {
        seen.push(call.await.unwrap());
    }
    let last = store.raise(0).await.unwrap();
    assert_eq!(last, 20);
    // What was seen are marks that were set, and only the last one was seen by nobody before.
    assert!(seen.iter().all(|mark| *mark < 21), "{seen:?}");
    assert!(seen.contains(&0), "{seen:?}");
}
