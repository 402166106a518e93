//! How soon a server answers over samples that are all too old.

use std::fs::File;
use std::io::{Read as _, copy, repeat};
use std::path::Path;
use std::time::Instant;

use rezus_benches::{Outcome, Promise, Row, Server, say, size};

/// How many days' files there are, and how large each is.
const FILES: u64 = 5;
const BYTES: u64 = 1 << 30;

/// How many milliseconds the start may take.
const SERVES: f64 = 2_000.0;

/// Starts the real server over files of days that are long past.
pub(crate) async fn start(directory: &Path) -> Outcome<Option<Row>> {
    let Some(binary) = rezus_benches::server_binary(env!("CARGO_MANIFEST_DIR"))? else {
        say("!! SKIPPED: there is no server binary beside this benchmark; build it or set REZUS_SERVER_BIN");
        return Ok(None);
    };
    std::fs::create_dir_all(directory)?;
    // A server of its own has made the directory what it is for servers.
    Server::start(&binary, directory).await?.end().await?;
    let bytes = size(BYTES, 1 << 20);
    for day in 1..=FILES {
        let mut file = File::create(directory.join(format!("series/raw-2024-05-{day:02}.db")))?;
        copy(&mut repeat(7).take(bytes), &mut file)?;
    }
    let begun = Instant::now();
    let server = Server::start(&binary, directory).await?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    server.end().await?;
    let what = format!("a server's start over {} MB of expired samples", (FILES * bytes) >> 20);
    Ok(Some(Row::alone(&what, format!("{took:.0} ms"), (took, " ms"), Promise::AtMost(SERVES))))
}
