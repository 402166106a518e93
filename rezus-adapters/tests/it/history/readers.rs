//! Readers, whatever they do, are no concern of who writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rezus_adapters::history::HistorySettings;
use rezus_core::series::{TimeSeries as _, TimeSeriesSink as _};

use super::fixture::{MINUTE, START, Store, at, entries, is_full, samples, select, selection, tend};

/// No log may ever be larger, in bytes.
const MOST: u64 = 16 << 20;

/// One reads 1 kB a second of an answer, others ask for everything all the time. Meanwhile days come in, are sealed, compacted
/// and removed: the logs stay small.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn logs_stay_small_while_somebody_reads_slowly_and_others_all_the_time() {
    let (series, days, least) = if is_full() { (400, 6, 120) } else { (100, 3, 5) };
    let settings = HistorySettings { raw: Duration::from_hours(24), ..HistorySettings::default() };
    let store = Store::new(settings);
    let history = store.history();
    let is_over = Arc::new(AtomicBool::new(false));
    history.append(&entries(series, 0..1)).await.unwrap();

    let slow = {
        let (history, is_over) = (history.clone(), Arc::clone(&is_over));
        tokio::spawn(async move {
            let mut sent = 0;
            while !is_over.load(Ordering::SeqCst) {
                let found = history.select(&selection(START, i64::MAX, Duration::ZERO)).await.unwrap();
                let answer: Vec<u8> = format!("{found:?}").into_bytes();
                for piece in answer.chunks(100) {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    sent += piece.len();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            sent
        })
    };
    let busy: Vec<_> = [Duration::ZERO, Duration::from_hours(1)]
        .into_iter()
        .map(|width| {
            let (history, is_over) = (history.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut reads = 0_u32;
                while !is_over.load(Ordering::SeqCst) {
                    history.select(&selection(START, i64::MAX, width)).await.unwrap();
                    reads += 1;
                }
                reads
            })
        })
        .collect();

    let began = Instant::now();
    let mut largest = 0;
    let mut minute = 1;
    while minute < days * 1_440 || began.elapsed() < Duration::from_secs(least) {
        store.clock.set(at(START + i64::from(minute + 9) * MINUTE));
        history.append(&entries(series, minute..minute + 10)).await.unwrap();
        if minute % 60 == 1 {
            assert!(tend(&history).await.is_empty());
        }
        let logs = store.files("-wal").into_iter().filter_map(|path| std::fs::metadata(path).ok());
        largest = logs.map(|log| log.len()).max().unwrap_or(0).max(largest);
        assert!(largest <= MOST, "a log of {largest} bytes");
        minute += 10;
    }
    is_over.store(true, Ordering::SeqCst);
    assert!(slow.await.unwrap() > 1_000);
    for reader in busy {
        assert!(reader.await.unwrap() > 3);
    }
    println!("the largest log had {largest} bytes");
    assert!(largest > 0);
    let found = select(&history, 0, START + i64::from(minute - 400) * MINUTE, i64::MAX, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(found.samples, samples(0, minute - 400..minute));
}
