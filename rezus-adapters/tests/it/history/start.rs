//! A start with much that is to be removed.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::history::{History, HistorySettings};
use rezus_core::base::Clock as _;
use rezus_core::series::TimeSeriesSink as _;

use super::fixture::{START, Store, entries, select};

/// What is expired is not even opened: these files hold nothing but zeros, which would be found out. Samples are taken and given
/// before the first of them is removed, and each step removes one.
#[tokio::test]
async fn five_gigabytes_that_are_expired_delay_nothing() {
    let store = Store::new(HistorySettings::default());
    let names =
        ["raw-2024-05-01", "raw-2024-05-02", "raw-2024-05-03", "fine-2020-01-02", "coarse-2019-10-31"];
    for name in names {
        let file = File::create(store.directory().join(format!("{name}.db"))).unwrap();
        file.set_len(1 << 30).unwrap();
    }
    // Half of one that a compaction left.
    File::create(store.directory().join("raw-2026-01-01.db.new")).unwrap().set_len(1 << 30).unwrap();

    std::fs::write(store.directory().join("retention"), format!("{}\n", store.clock.now())).unwrap();

    let history = store.history();
    assert_eq!(store.files(".new").len(), 0);
    assert_eq!(history.append(&entries(4, 0..1)).await.unwrap().kept, 4);
    let found = select(&history, 0, START, START, Duration::ZERO).await.unwrap();
    assert_eq!(found.samples.len(), 1);
    assert!(history.bytes() >= 5 << 30);
    for left in (0..names.len()).rev() {
        let tended = history.tend().await.unwrap();
        assert!(tended.more && tended.set_aside.is_empty(), "{tended:?}");
        let still = names.iter().filter(|name| !store.files(name).is_empty()).count();
        assert_eq!(still, left);
    }
    assert!(!history.tend().await.unwrap().more);
    assert_eq!(store.files("damaged").len(), 0);
    assert!(history.bytes() < 1 << 20);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_at_the_start() {
    let store = Store::new(HistorySettings::default());
    let settings = HistorySettings { fine: Duration::from_hours(1), ..HistorySettings::default() };
    let open = |directory, settings| History::open(directory, settings, Arc::new(store.clock.clone()));
    assert!(open(store.directory(), settings).is_err());
    let file = store.directory().join("file");
    File::create(&file).unwrap();
    assert!(open(&file, HistorySettings::default()).is_err());
}
