//! Texts that are kept small. Objects of a kind say much of the same: what is kept of one is how it differs from another.

use std::sync::Arc;

/// A text, packed by a model: another text, whose parts it names instead of having them itself.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    model: Arc<[u8]>,
    /// Empty where it is the model itself.
    bytes: Box<[u8]>,
    length: usize,
}

impl Packed {
    /// The text.
    pub(super) fn unpack(&self) -> Vec<u8> {
        if self.bytes.is_empty() {
            return self.model.to_vec();
        }
        // It was packed here, by this model: it can always be unpacked.
        lz4_flex::block::decompress_with_dict(&self.bytes, self.length, &self.model).unwrap_or_default()
    }

    /// How many bytes it keeps in memory, at most: it may share its model with others.
    pub(super) fn size(&self) -> usize {
        self.model.len() + self.bytes.len()
    }
}

/// Packs texts one after the other: each by the last one that was not like those before it.
#[derive(Debug, Default)]
pub(super) struct Models(Option<Arc<[u8]>>);

impl Models {
    /// Goes on with the model of a text that is packed.
    pub(super) fn of(packed: Option<&Packed>) -> Self {
        Self(packed.map(|packed| Arc::clone(&packed.model)))
    }

    /// Packs a text.
    pub(super) fn pack(&mut self, text: &[u8]) -> Packed {
        let length = text.len();
        if let Some(model) = &self.0 {
            let packed = lz4_flex::block::compress_with_dict(text, model);
            // Else it says little of what the model says: as a model it may serve those that follow better.
            if packed.len() <= length / 2 {
                return Packed { model: Arc::clone(model), bytes: packed.into(), length };
            }
        }
        let model: Arc<[u8]> = text.into();
        self.0 = Some(Arc::clone(&model));
        Packed { model, bytes: Box::default(), length }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machine(number: usize) -> String {
        let member = |at| format!("\"member-{at}\":\"as with all others\"");
        format!("{{\"name\":\"node-{number}\",{}}}", (0..30).map(member).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn what_is_like_others_is_small() {
        let mut models = Models::default();
        let all: Vec<_> = (0..20).map(|number| models.pack(machine(number).as_bytes())).collect();
        let first = &all[0];
        for (number, packed) in all.iter().enumerate() {
            assert_eq!(packed.unpack(), machine(number).as_bytes());
            assert!(Arc::ptr_eq(&packed.model, &first.model));
            assert!(packed.bytes.len() < 60, "{} bytes", packed.bytes.len());
        }
        let later = Models::of(Some(&all[7])).pack(machine(7).as_bytes());
        assert!(Arc::ptr_eq(&later.model, &first.model));
    }

    proptest! {
        #[test]
        fn what_is_unpacked_is_what_was_packed(
            texts in proptest::collection::vec(("[a-d]{0,200}", 0..4_usize), 1..12),
            long in 0..200_000_usize,
        ) {
            let mut models = Models::default();
            let mut texts: Vec<String> = texts.into_iter().map(|(text, times)| text.repeat(times)).collect();
            texts.push((0..long).map(|at| char::from(b'a' + u8::try_from(at * at % 26).unwrap())).collect());
            for text in texts.iter().chain(&texts) {
                prop_assert_eq!(models.pack(text.as_bytes()).unpack(), text.as_bytes());
            }
        }
    }
}
