//! Memory for a body while it arrives.

use bytes::{Bytes, BytesMut};
use memmap2::MmapMut;

/// From this many bytes on a body gets pages of its own: they go back to the system with it. What an allocator gets back
/// in pieces of this size it keeps, and a server that took in large states once would stay as large.
const WORTH_PAGES: usize = 1 << 20;

/// Bytes that are being received.
pub(super) enum Buffer {
    /// Of the allocator's.
    Heap(BytesMut),
    /// Pages of its own.
    Pages(Pages),
}

/// Pages of which the first bytes are in use.
pub(super) struct Pages {
    map: MmapMut,
    length: usize,
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        &self.map[..self.length]
    }
}

impl Buffer {
    /// Makes room for the bytes that were announced; more may come.
    pub(super) fn new(announced: u64) -> Self {
        let capacity = usize::try_from(announced).unwrap_or(0);
        let map = if capacity >= WORTH_PAGES { MmapMut::map_anon(capacity).ok() } else { None };
        match map {
            Some(map) => Self::Pages(Pages { map, length: 0 }),
            None => Self::Heap(BytesMut::with_capacity(capacity)),
        }
    }

    /// Adds what arrived.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        match self {
            Self::Heap(heap) => heap.extend_from_slice(bytes),
            Self::Pages(pages) => {
                let end = pages.length + bytes.len();
                if let Some(room) = pages.map.get_mut(pages.length..end) {
                    room.copy_from_slice(bytes);
                    pages.length = end;
                } else {
                    // More than was announced: HTTP does not let it come to that.
                    let mut heap = BytesMut::from(pages.as_ref());
                    heap.extend_from_slice(bytes);
                    *self = Self::Heap(heap);
                }
            }
        }
    }

    /// How many bytes arrived.
    pub(super) fn length(&self) -> u64 {
        let length = match self {
            Self::Heap(heap) => heap.len(),
            Self::Pages(pages) => pages.length,
        };
        u64::try_from(length).unwrap_or(u64::MAX)
    }

    /// Returns what arrived.
    pub(super) fn finish(self) -> Bytes {
        match self {
            Self::Heap(heap) => heap.freeze(),
            Self::Pages(pages) => Bytes::from_owner(pages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_comes_out_whatever_was_announced() {
        let piece: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let whole = piece.repeat(5);
        for announced in [0, 10, 1_000_000, 1_048_576, 1_500_000, 3_000_000] {
            let mut buffer = Buffer::new(announced);
            for _ in 0..5 {
                buffer.extend(&piece);
            }
            assert_eq!(buffer.length(), 1_500_000);
            assert!(buffer.finish() == whole, "{announced}");
        }
    }
}
