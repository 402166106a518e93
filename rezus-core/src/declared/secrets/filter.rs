//! A first look at a long text, which rules out most of it at a fraction of the cost of an automaton.

/// How many bytes are looked at together.
const GRAM: usize = 4;
/// Bits of the table: 32 kB of it, which stay in the first cache.
const BITS: u32 = 18;

/// Whether one of many patterns may be in a text.
///
/// Every pattern has at least `stride + GRAM - 1` bytes, so of all the grams in it one begins at a multiple of
/// `stride`, wherever the pattern is. Only those grams of a text are looked up.
pub(super) struct Filter {
    table: Vec<u64>,
    stride: usize,
    longest: usize,
}

impl Filter {
    /// Takes the patterns; none is shorter than [`GRAM`].
    pub(super) fn new<'p>(patterns: impl Iterator<Item = &'p [u8]> + Clone) -> Self {
        let shortest = patterns.clone().map(<[u8]>::len).min().unwrap_or(GRAM).max(GRAM);
        let mut filter = Self { table: vec![0; 1 << (BITS - 6)], stride: shortest - GRAM + 1, longest: 0 };
        for pattern in patterns {
            filter.longest = filter.longest.max(pattern.len());
            for gram in pattern.windows(GRAM).take(filter.stride) {
                let (word, bit) = slot(gram);
                filter.table[word] |= bit;
            }
        }
        filter
    }

    /// Returns the parts of a text in which a pattern may be, in order. They may overlap.
    pub(super) fn parts<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, &'t [u8])> {
        let grams = text.windows(GRAM).step_by(self.stride).enumerate();
        let near = GRAM.min(self.stride / 2);
        let is_gram = |at: usize| {
            text.get(at..at + GRAM).is_some_and(|gram| {
                let (word, bit) = slot(gram);
                self.table[word] & bit != 0
            })
        };
        let hits = grams.filter(move |(step, gram)| {
            let (word, bit) = slot(gram);
            self.table[word] & bit != 0 && {
                let at = step * self.stride;
                is_gram(at + near) || at.checked_sub(near).is_some_and(is_gram)
            }
        });
        hits.map(|(step, _)| {
            let start = (step * self.stride).saturating_sub(self.longest);
            let end = text.len().min(step * self.stride + GRAM + self.longest);
            (start, &text[start..end])
        })
    }
}

#[inline]
fn slot(gram: &[u8]) -> (usize, u64) {
    let number = gram.first_chunk::<GRAM>().map_or(0, |gram| u32::from_le_bytes(*gram));
    let hash = number.wrapping_mul(0x9e37_79b1) >> (32 - BITS);
    (usize::try_from(hash >> 6).unwrap_or(0), 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pattern_is_missed_wherever_it_is() {
        let patterns: [&[u8]; 3] = [b"abcdefgh", b"0123456789ab", b"xyzxyzx"];
        let filter = Filter::new(patterns.into_iter());
        for pattern in patterns {
            for before in 0..30 {
                for after in [0, 1, 20] {
                    let text =
                        ["-".repeat(before).as_bytes(), pattern, "-".repeat(after).as_bytes()].concat();
                    let is_in = |part: &[u8]| part.windows(pattern.len()).any(|window| window == pattern);
                    assert!(filter.parts(&text).any(|(_, part)| is_in(part)), "{before} {after}");
                }
            }
        }
        assert_eq!(filter.parts(b"").count(), 0);
    }
}
