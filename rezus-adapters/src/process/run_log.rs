//! A run's log: a file that grows, and once the run has ended, one of compressed pieces.
//!
//! `log.zst` is in zstd's seekable format (`contrib/seekable_format` of its source): frames of 1 MiB each by itself,
//! and a table of them at the end, in a frame that decompressors pass over. So `zstd -d` reads it, and a read at any
//! offset costs the frames it touches.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::files::{RunFiles, remove, sync_folder_of};

/// Bytes of the log in one frame.
const FRAME: usize = 1 << 20;

const LEVEL: i32 = 3;
const SKIPPABLE: u32 = 0x184D_2A5E;
const SEEKABLE: u32 = 0x8F92_EAB1;
/// The number of frames, a byte of flags, and [`SEEKABLE`].
const FOOTER: usize = 9;
/// The two lengths of a frame, compressed first.
const ENTRY: usize = 8;

/// Returns up to `most` bytes from `offset` on. `None` where there is no log.
pub(super) fn read(files: &RunFiles, offset: u64, most: usize) -> io::Result<Option<Vec<u8>>> {
    match open(files)? {
        None => Ok(None),
        Some(Log::Plain(file)) => {
            let length = file.metadata()?.len().saturating_sub(offset);
            let mut bytes = vec![0; most.min(usize::try_from(length).unwrap_or(usize::MAX))];
            let read = file.read_at(&mut bytes, offset)?;
            bytes.truncate(read);
            Ok(Some(bytes))
        }
        Some(Log::Sealed(file)) => read_sealed(&file, offset, most).map(Some),
    }
}

/// Returns how long the log is. `None` where there is none.
pub(super) fn length(files: &RunFiles) -> io::Result<Option<u64>> {
    match open(files)? {
        None => Ok(None),
        Some(Log::Plain(file)) => Ok(Some(file.metadata()?.len())),
        Some(Log::Sealed(file)) => Ok(Some(table(&file)?.iter().map(|(_, length)| u64::from(*length)).sum())),
    }
}

enum Log {
    Plain(File),
    Sealed(File),
}

fn open(files: &RunFiles) -> io::Result<Option<Log>> {
    // The sealed one comes about before the other one goes.
    if let Some(file) = open_if_there(&files.log())? {
        return Ok(Some(Log::Plain(file)));
    }
    Ok(open_if_there(&files.sealed_log())?.map(Log::Sealed))
}

fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_sealed(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    let (mut place, mut begin) = (0_u64, 0_u64);
    let mut bytes = Vec::new();
    for (compressed, length) in table(file)? {
        let end = begin + u64::from(length);
        if end > offset && bytes.len() < most {
            let mut frame = vec![0; usize::try_from(compressed).map_err(io::Error::other)?];
            file.read_exact_at(&mut frame, place)?;
            let frame = zstd::bulk::decompress(&frame, FRAME)?;
            let skipped = usize::try_from(offset.saturating_sub(begin)).map_err(io::Error::other)?;
            let wanted = frame.get(skipped..).ok_or_else(damaged)?;
            bytes.extend_from_slice(&wanted[..wanted.len().min(most - bytes.len())]);
        }
        place += u64::from(compressed);
        begin = end;
    }
    Ok(bytes)
}

/// The lengths of each frame, compressed and not.
fn table(file: &File) -> io::Result<Vec<(u32, u32)>> {
    let size = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let at = |place: usize| u64::try_from(place).map_err(io::Error::other);
    let mut footer = [0; FOOTER];
    file.read_exact_at(&mut footer, at(size.checked_sub(FOOTER).ok_or_else(damaged)?)?)?;
    if number(&footer[5..]) != SEEKABLE {
        return Err(damaged());
    }
    let length = usize::try_from(number(&footer)).map_err(io::Error::other)?.saturating_mul(ENTRY);
    let begin = size.checked_sub(FOOTER).and_then(|end| end.checked_sub(length)).ok_or_else(damaged)?;
    let mut entries = vec![0; length];
    file.read_exact_at(&mut entries, at(begin)?)?;
    Ok(entries.chunks_exact(ENTRY).map(|entry| (number(entry), number(&entry[4..]))).collect())
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the log is damaged")
}

/// Compresses the log, if that was not done before.
pub(super) fn seal(files: &RunFiles) -> io::Result<()> {
    let Some(mut log) = open_if_there(&files.log())? else {
        return Ok(());
    };
    let new = files.path().join("log.zst.new");
    let mut sealed = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
    let mut table = Vec::new();
    let mut piece = Vec::with_capacity(FRAME);
    loop {
        piece.clear();
        (&mut log).take(u64::try_from(FRAME).map_err(io::Error::other)?).read_to_end(&mut piece)?;
        if piece.is_empty() {
            break;
        }
        let frame = compressor.compress(&piece)?;
        sealed.write_all(&frame)?;
        for length in [frame.len(), piece.len()] {
            table.extend(u32::try_from(length).map_err(io::Error::other)?.to_le_bytes());
        }
    }
    let frames = u32::try_from(table.len() / ENTRY).map_err(io::Error::other)?;
    let size = u32::try_from(table.len() + FOOTER).map_err(io::Error::other)?;
    let mut end = [SKIPPABLE.to_le_bytes(), size.to_le_bytes()].concat();
    end.extend(table);
    end.extend(frames.to_le_bytes());
    // No checksums here: each frame has its own.
    end.push(0);
    end.extend(SEEKABLE.to_le_bytes());
    sealed.write_all(&end)?;
    sealed.sync_all()?;
    fs::rename(&new, files.sealed_log())?;
    sync_folder_of(&new)?;
    remove(&files.log())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::files::append;

    #[test]
    fn a_sealed_log_reads_as_it_did_from_every_place() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::at(folder.path().to_owned());
        assert_eq!(read(&files, 0, 10).unwrap(), None);
        seal(&files).unwrap();
        assert_eq!(length(&files).unwrap(), None);
        let text: Vec<u8> = (0..2 * FRAME + 17).map(|i| u8::try_from(i * i % 251).unwrap()).collect();
        append(&files.log()).unwrap().write_all(&text).unwrap();
        let places =
            [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME, text.len() - 1, text.len(), text.len() + 9];
        let all = |files: &RunFiles| -> Vec<Vec<u8>> {
            let reads = places.iter().flat_map(|from| [0, 1, 20, FRAME, 3 * FRAME].map(|most| (*from, most)));
            reads
                .map(|(from, most)| read(files, u64::try_from(from).unwrap(), most).unwrap().unwrap())
                .collect()
        };
        let before = all(&files);
        assert_eq!(before[4], text);
        seal(&files).unwrap();
        assert!(!files.log().exists());
        assert_eq!(all(&files), before);
        assert_eq!(length(&files).unwrap(), Some(u64::try_from(text.len()).unwrap()));
        // Any reader of zstd reads it.
        let file = File::open(files.sealed_log()).unwrap();
        assert_eq!(zstd::stream::decode_all(file).unwrap(), text);
        // A second time changes nothing.
        seal(&files).unwrap();
        assert_eq!(all(&files), before);
    }

    #[test]
    fn damage_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::at(folder.path().to_owned());
        for bytes in [&b""[..], b"123456789", &[0xff; 40], &[0xff; 5]] {
            fs::write(files.sealed_log(), bytes).unwrap();
            assert!(read(&files, 0, 10).is_err() && length(&files).is_err());
        }
    }
}
