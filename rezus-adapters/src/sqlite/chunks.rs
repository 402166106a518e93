//! A version's bytes in compressed pieces.

use std::ops::Range;

use rusqlite::Connection;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use super::error::JobError;

/// Bytes of a version in one chunk: cheaper to commit than a raw blob, a tenth of its size, and small enough that one
/// resource is read in tens of microseconds.
pub(super) const CHUNK: usize = 64 << 10;

/// Compresses a body, chunk by chunk. Each carries a checksum of its content.
pub(super) fn compress(body: &[u8]) -> Result<Vec<Vec<u8>>, std::io::Error> {
    let mut compressor = Compressor::new(1)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    body.chunks(CHUNK).map(|chunk| compressor.compress(chunk)).collect()
}

/// Stores a version's chunks.
pub(super) fn insert(connection: &Connection, version_id: i64, chunks: &[Vec<u8>]) -> Result<(), JobError> {
    let mut insert = connection.prepare_cached("INSERT INTO chunks VALUES (?1, ?2, ?3)")?;
    for (seq, data) in (0_i64..).zip(chunks) {
        insert.execute((version_id, seq, data))?;
    }
    Ok(())
}

/// Reads the bytes of a version that lie in `range`, which is within `0..size`.
pub(super) fn read(connection: &Connection, version_id: i64, range: Range<u64>) -> Result<Vec<u8>, JobError> {
    let damaged = || JobError::Damaged("a chunk of a version");
    let as_usize = |number: u64| usize::try_from(number).map_err(|_| damaged());
    let (start, end) = (as_usize(range.start)?, as_usize(range.end)?);
    if start >= end {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::with_capacity(end - start);
    let mut decompressor = Decompressor::new().map_err(|_| damaged())?;
    let mut select = connection.prepare_cached(
        "SELECT seq, data FROM chunks WHERE version_id = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq",
    )?;
    let (first, last) = (start / CHUNK, (end - 1) / CHUNK);
    let mut rows = select.query((version_id, first, last))?;
    for expected in first..=last {
        let row = rows.next()?.ok_or_else(damaged)?;
        if row.get::<_, usize>(0)? != expected {
            return Err(damaged());
        }
        let chunk = decompressor.decompress(row.get_ref(1)?.as_blob().map_err(|_| damaged())?, CHUNK);
        let chunk = chunk.map_err(|_| damaged())?;
        let base = expected * CHUNK;
        let (from, to) = (start.max(base) - base, end.min(base + CHUNK) - base);
        bytes.extend_from_slice(chunk.get(from..to).ok_or_else(damaged)?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_comes_back_and_damage_is_seen() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema/0001.sql")).unwrap();
        let body: Vec<u8> = (0..3 * CHUNK + 17).map(|i| u8::try_from(i * i % 251).unwrap()).collect();
        insert(&connection, 7, &compress(&body).unwrap()).unwrap();
        let end = body.len();
        let edges = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, end - 1, end];
        for from in edges {
            for to in edges.into_iter().filter(|to| *to >= from) {
                let range = u64::try_from(from).unwrap()..u64::try_from(to).unwrap();
                assert_eq!(read(&connection, 7, range).unwrap(), body[from..to], "{from}..{to}");
            }
        }
        connection.execute("DELETE FROM chunks WHERE seq = 1", []).unwrap();
        assert!(matches!(read(&connection, 7, 0..100_000), Err(JobError::Damaged(_))));
        let mut chunk: Vec<u8> =
            connection.query_row("SELECT data FROM chunks WHERE seq = 0", [], |row| row.get(0)).unwrap();
        chunk[100] ^= 1;
        connection.execute("UPDATE chunks SET data = ?1 WHERE seq = 0", [&chunk]).unwrap();
        assert!(matches!(read(&connection, 7, 0..100), Err(JobError::Damaged(_))));
    }
}
