//! What bytes say once an encoding is undone.

use std::io::Read;

use super::Wrapping;

/// How much of an archive is looked at.
const LARGEST: u64 = 256 * 1024 * 1024;

const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
/// A file's header in a zip archive. Source: section 4.3.7 of its specification (APPNOTE.TXT).
const ZIP: &[u8] = b"PK\x03\x04";
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Returns each way to read the bytes that gives others than these.
pub(super) fn of(bytes: &[u8]) -> Vec<(Wrapping, Vec<u8>)> {
    let mut views = Vec::new();
    let unescaped = [(b'\\', Wrapping::Json, json(bytes)), (b'%', Wrapping::Percent, percent(bytes))];
    for (_, wrapping, view) in unescaped.into_iter().filter(|(sign, ..)| bytes.contains(sign)) {
        if view != bytes {
            views.push((wrapping, view));
        }
    }
    if bytes.iter().any(u8::is_ascii_whitespace) {
        let joined = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        views.push((Wrapping::Lines, joined));
    }
    for at in starts(bytes, GZIP) {
        views.push((Wrapping::Gzip(at), read(flate2::read::MultiGzDecoder::new(&bytes[at..]))));
    }
    for at in starts(bytes, ZSTD) {
        if let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(&bytes[at..]) {
            views.push((Wrapping::Zstd(at), read(decoder.single_frame())));
        }
    }
    for at in starts(bytes, ZIP) {
        if let Some(deflated) = deflated(&bytes[at..]) {
            views.push((Wrapping::Zip(at), read(flate2::read::DeflateDecoder::new(deflated))));
        }
    }
    views.retain(|(_, view)| !view.is_empty());
    views
}

/// Returns where a magic number is.
fn starts(bytes: &[u8], magic: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(magic.len()).enumerate();
    windows.filter(|(_, window)| *window == magic).map(|(at, _)| at).collect()
}

/// Returns where a file of a zip archive begins, from its header on. `None` where it is not compressed: it shows as it is.
fn deflated(header: &[u8]) -> Option<&[u8]> {
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(header.get(at..at + 2)?.try_into().ok()?)));
    let content = 30 + short(26)? + short(28)?;
    if short(8)? == 8 { header.get(content..) } else { None }
}

/// Reads as far as it goes: an archive that is cut short has told what came before.
fn read(reader: impl Read) -> Vec<u8> {
    let mut reader = reader.take(LARGEST);
    let mut all = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = reader.read(&mut chunk) {
        all.extend_from_slice(&chunk[..length]);
    }
    all
}

/// Undoes the escapes of JSON strings, wherever they are.
fn json(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let escape = after.first().copied().filter(|_| byte == b'\\');
        let plain = match escape {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(sign @ (b'"' | b'\\' | b'/')) => sign,
            Some(b'u') => {
                if let Some((character, length)) = unicode(after) {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &after[length..];
                } else {
                    out.push(byte);
                }
                continue;
            }
            Some(_) | None => {
                out.push(byte);
                continue;
            }
        };
        out.push(plain);
        rest = &after[1..];
    }
    out
}

/// Reads `uXXXX`, or two of them that make one character; returns it and how long it was.
fn unicode(bytes: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(1)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 5));
    }
    if bytes.get(5..7)? != b"\\u" {
        return None;
    }
    let character = char::decode_utf16([first, unit(7)?]).next()?.ok()?;
    Some((character, 11))
}

/// Undoes percent-encoding, wherever it is.
fn percent(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(plain) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            out.push(plain);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    out
}
