//! Files that are not what was written: they are set aside, and the rest goes on.

use std::path::Path;
use std::time::Duration;

use rezus_adapters::history::{History, HistorySettings};
use rezus_core::base::Clock as _;
use rezus_core::series::{Entry, Sample, TimeSeriesSink as _};

use super::fixture::{DAY, HOUR, MINUTE, START, Store, at, entries, labels, pass, samples, select, tend};

/// Overwrites what follows the first of so many parts.
pub(super) fn garble(path: &Path, parts: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let begin = bytes.len() / parts;
    bytes[begin..].fill(0x5a);
    std::fs::write(path, bytes).unwrap();
}

async fn fill(store: &Store, until: u32) {
    let history = store.history();
    for minute in (0..until).step_by(10) {
        store.clock.set(at(START + i64::from(minute + 9) * MINUTE));
        history.append(&entries(40, minute..minute + 10)).await.unwrap();
        tend(&history).await;
    }
}

#[tokio::test]
async fn of_a_tail_that_is_damaged_the_rest_is_gone_on_with() {
    for parts in [1_000_000, 4, 2] {
        let store = Store::new(HistorySettings::default());
        fill(&store, 230).await;
        let tails = store.files("tail-");
        assert_eq!(tails.len(), 1, "{tails:?}");
        garble(&tails[0], parts);
        // However often it is started: what could be read once stays.
        let mut expected = Vec::new();
        for start in 0..3 {
            let history = store.history();
            let damaged = history.tend().await.unwrap().set_aside;
            assert_eq!(damaged.len(), usize::from(start == 0), "{damaged:?}");
            let found = select(&history, 0, START, START + DAY, Duration::ZERO).await.unwrap().samples;
            if start == 0 {
                // What was sealed is whole.
                assert!((120..=230).contains(&found.len()), "{}", found.len());
                expected = samples(0, 0..230)[..found.len()].to_vec();
            }
            assert_eq!(found, expected);
            let minute = 230 + start;
            let next = entries(40, minute..minute + 1);
            store.clock.set(next[0].sample.at);
            let appended = history.append(&next).await.unwrap();
            assert_eq!(appended.kept, u64::try_from(next.len()).unwrap(), "{appended:?}");
            expected.extend(samples(0, minute..minute + 1));
        }
        assert!(!store.files(".damaged").is_empty());
    }
}

/// A bit that turned in a number makes another number, which only a checksum finds out.
#[tokio::test]
async fn a_bit_that_turned_in_a_tail_costs_its_row_alone() {
    let store = Store::new(HistorySettings::default());
    fill(&store, 230).await;
    {
        let tail = rusqlite::Connection::open(&store.files("tail-")[0]).unwrap();
        for (table, column, row) in [("ticks", "block", 5), ("series", "labels", 3)] {
            let rows = format!("FROM {table} ORDER BY id LIMIT 1 OFFSET {}", row - 1);
            let (id, mut block): (i64, Vec<u8>) = tail
                .query_row(&format!("SELECT id, {column} {rows}"), [], |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap();
            let place = block.len() - 6;
            block[place] ^= 1;
            let put = format!("UPDATE {table} SET {column} = ?1 WHERE id = ?2");
            tail.execute(&put, rusqlite::params![block, id]).unwrap();
        }
    }
    for start in 0..2 {
        let history = store.history();
        assert_eq!(history.tend().await.unwrap().set_aside.len(), usize::from(start == 0));
        let mut lost = 0;
        for series in 0..40 {
            let found = select(&history, series, START, START + DAY, Duration::ZERO).await.unwrap().samples;
            // What was sealed is whole. Each row has ten minutes, the fifth is lost, and all rows of one series.
            if found == samples(series, 0..120) {
                lost += 1;
            } else {
                assert_eq!(found, [samples(series, 0..160), samples(series, 170..230)].concat());
            }
        }
        assert_eq!(lost, 1);
    }
}

#[tokio::test]
async fn a_file_of_chunks_that_is_damaged_is_set_aside_by_who_reads_it() {
    let store = Store::new(HistorySettings::default());
    fill(&store, 3 * 1_440).await;
    let history = store.history();
    let end = START + 3 * DAY;
    let whole = select(&history, 1, START, end, Duration::ZERO).await.unwrap();
    assert_eq!(whole.samples, samples(1, 0..3 * 1_440));
    garble(&store.files("raw-")[0], 3);
    let found = select(&history, 1, START, end, Duration::ZERO).await.unwrap();
    // The day is given as rollups, as one whose samples are not kept.
    assert_eq!((found.rolled.len(), found.samples), (288, samples(1, 1_440..3 * 1_440)));
    assert_eq!(history.tend().await.unwrap().set_aside.len(), 1);
    assert_eq!(store.files("damaged").len(), 1);

    std::fs::remove_file(&store.files("raw-2026-10-23.db")[0]).unwrap();
    let found = select(&history, 1, START, end, Duration::ZERO).await.unwrap();
    assert_eq!((found.rolled.len(), found.samples), (2 * 288, samples(1, 2_880..3 * 1_440)));
    assert_eq!(history.tend().await.unwrap().set_aside.len(), 1);

    garble(&store.files("coarse-")[0], 3);
    let wide = select(&history, 1, START, end, Duration::from_hours(1)).await.unwrap();
    assert!(wide.rolled.iter().all(|rollup| rollup.width == Duration::from_mins(5)), "{wide:?}");
    let damaged = tend(&history).await;
    assert_eq!(damaged.len(), 1, "{damaged:?}");
}

#[tokio::test]
async fn a_file_of_chunks_that_is_damaged_is_set_aside_by_who_writes_it() {
    let store = Store::new(HistorySettings::default());
    fill(&store, 300).await;
    garble(&store.files("sealed-")[0], 1_000_000);
    let history = store.history();
    store.clock.set(at(START + 300 * MINUTE + HOUR + 10 * MINUTE));
    let damaged = tend(&history).await;
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    // What was not sealed before is.
    let found = select(&history, 1, START, START + DAY, Duration::ZERO).await.unwrap().samples;
    assert_eq!(found, samples(1, 240..300));
    assert_eq!(store.files("tail-").len(), 0);
}

/// What was set aside takes room as well, and goes: when what it was would, or before anything else where there is too much.
#[tokio::test]
async fn what_was_set_aside_is_not_kept_for_ever() {
    let settings = HistorySettings { raw: Duration::from_hours(48), ..HistorySettings::default() };
    for max_bytes in [None, Some(1)] {
        let store = Store::new(settings);
        fill(&store, 2 * 1_440 + 140).await;
        garble(&store.files("raw-")[1], 3);
        garble(&store.files("tail-")[0], 2);
        let history = store.history();
        let found = select(&history, 1, START, START + 3 * DAY, Duration::ZERO).await.unwrap();
        assert_eq!(found.samples[0].at, at(START + 2 * DAY));
        assert_eq!(history.tend().await.unwrap().set_aside.len(), 2);
        let aside = |kind: &str| {
            store.files(".db.damaged").iter().filter(|path| path.to_str().unwrap().contains(kind)).count()
        };
        assert_eq!((aside("raw-"), aside("tail-")), (1, 1));
        drop(history);

        // Whoever opens it next knows of them too.
        let settings = HistorySettings { max_bytes, ..settings };
        let mut again = Store::at(store.directory().to_owned(), settings);
        again.clock = store.clock.clone();
        let history = again.history();
        let on_disk: u64 = store
            .files("")
            .iter()
            .filter(|path| !path.ends_with("retention"))
            .map(|path| path.metadata().unwrap().len())
            .sum();
        assert_eq!(history.bytes(), on_disk);
        let kinds = history.bytes_by_kind();
        assert_eq!(
            kinds.keys().copied().collect::<Vec<_>>(),
            ["coarse", "damaged", "fine", "raw", "sealed", "tail"]
        );
        assert!(
            kinds["damaged"] > 0 && kinds["raw"] > 0 && kinds.values().sum::<u64>() == on_disk,
            "{kinds:?}"
        );
        if max_bytes.is_some() {
            for left in [1, 0] {
                history.tend().await.unwrap();
                assert_eq!((aside(""), store.count("raw-")), (left, 1));
            }
        } else {
            for (hours, left) in [(46, 2), (49, 1), (73, 0)] {
                store.clock.set(at(START + 2 * DAY + hours * HOUR));
                tend(&history).await;
                assert_eq!(aside(""), left, "{hours}: {:?}", store.files("damaged"));
            }
        }
        assert_eq!(history.bytes_by_kind()["damaged"], 0);
        assert_eq!(store.files("damaged").len(), 0);
    }
}

/// Does what there is to do, so often; tells how often that failed, and what was set aside.
async fn tend_again(history: &History, times: u32) -> (u32, usize) {
    let (mut failed, mut set_aside) = (0, 0);
    for _ in 0..times {
        match history.tend().await {
            Ok(tended) => set_aside += tended.set_aside.len(),
            Err(_) => failed += 1,
        }
    }
    (failed, set_aside)
}

/// Not damage that is known as such: a file that opens, and takes nothing.
#[tokio::test]
async fn what_fails_whenever_it_is_gone_on_with_is_set_aside_in_the_end() {
    let store = Store::new(HistorySettings::default());
    let history = store.history();
    pass(&store, &history, 0..2 * 1_440).await;
    rusqlite::Connection::open(&store.files("fine-")[0])
        .unwrap()
        .execute_batch("CREATE TRIGGER no BEFORE INSERT ON chunks BEGIN SELECT RAISE(ABORT, 'no'); END")
        .unwrap();
    store.clock.set(at(START + 2 * DAY + HOUR));
    // Each time it is begun anew, and then fails.
    assert_eq!(tend_again(&history, 100).await, (19, 1));
    assert_eq!(store.files("fine-2026-10-22.db.damaged").len(), 1);
    let found = select(&history, 2, START, START + 2 * DAY - 1, Duration::from_mins(5)).await.unwrap();
    assert_eq!((found.rolled.len(), found.samples.len()), (2 * 288, 0));
}

/// The day's file is not to blame where the one cannot be written that is to take its place.
#[tokio::test]
async fn what_cannot_be_finished_costs_nothing_of_what_is_there() {
    let store = Store::new(HistorySettings::default());
    let history = store.history();
    pass(&store, &history, 0..1_440 + 20).await;
    let right = store.clock.now();
    store.clock.jump(at(START + HOUR));
    let entry = Entry { labels: labels(6), sample: Sample { at: store.clock.now(), value: 7.0 } };
    history.append(&[entry]).await.unwrap();
    let new = store.directory().join("raw-2026-10-22.db.new");
    std::fs::create_dir(&new).unwrap();
    store.clock.jump(right);
    let (failed, set_aside) = tend_again(&history, 100).await;
    assert!(failed > 50 && set_aside == 0, "{failed}, {set_aside}");
    for is_there in [true, false] {
        let found = select(&history, 2, START, START + DAY - 1, Duration::ZERO).await.unwrap();
        assert_eq!(found.samples, samples(2, 0..1_440));
        let found = select(&history, 6, START, START + DAY - 1, Duration::ZERO).await.unwrap();
        assert_eq!(found.samples.len(), 1);
        if is_there {
            std::fs::remove_dir(&new).unwrap();
            assert!(tend(&history).await.is_empty());
            assert_eq!(store.files("sealed-2026-10-22").len(), 0);
        }
    }
}

/// Nothing is removed for the few bytes that say how far it is with removing.
#[tokio::test]
async fn where_there_is_no_room_for_what_retention_goes_by_nothing_is_removed() {
    let store = Store::new(HistorySettings::default());
    let history = store.history();
    pass(&store, &history, 0..3 * 1_440).await;
    let new = store.directory().join("retention.new");
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    for _ in 0..10 {
        store.clock.advance(Duration::from_mins(20));
        // What there is to do is done all the same.
        assert_eq!(tend_again(&history, 100).await, (100, 0));
    }
    assert_eq!(store.count("raw-"), 3, "{:?}", store.files(""));
    std::fs::remove_file(&new).unwrap();
    assert!(tend(&history).await.is_empty());
}
