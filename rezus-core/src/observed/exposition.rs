//! Prometheus' text format, version 0.0.4, as it comes in over the wire.
//!
//! `name{label="value",...} value [milliseconds]` a line; comments, and with them types and help texts, are skipped. What
//! `OpenMetrics` adds is not understood: it comes only where it is asked for.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

mod line;

pub use line::{Labels, LineFault, Sample};

/// How much is read of one target at most. The defaults hold for a `node_exporter` many times over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpositionLimits {
    /// Of the whole text, in bytes as they are after decompression.
    pub body: u64,
    /// Lines, comments among them.
    pub lines: usize,
    /// Of one line, in bytes.
    pub line: usize,
    /// Labels of one sample.
    pub labels: usize,
    /// Of a metric's or a label's name, in bytes.
    pub name: usize,
    /// Of a label's value, in bytes as it is written.
    pub value: usize,
}

impl ExpositionLimits {
    /// 4 MiB, 20,000 lines, 16 KiB a line, 32 labels, names of 128 bytes and values of 512.
    pub const DEFAULT: Self =
        Self { body: 4 << 20, lines: 20_000, line: 16 << 10, labels: 32, name: 128, value: 512 };
}

/// Why a text is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpositionError {
    /// It is too long.
    #[error("it has more than {0} bytes")]
    Body(u64),
    /// It has too many lines.
    #[error("it has more than {0} lines")]
    Lines(usize),
}

/// What there is to say of a text after its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposed {
    /// How many samples were handed over.
    pub samples: usize,
    /// How many lines were none, nor comments, and were passed over.
    pub faulty: usize,
    /// The first of them: its number, from 1, and why.
    pub first_fault: Option<(usize, LineFault)>,
    /// Whether the last line had no end: it was cut, and nothing was taken from it.
    pub truncated: bool,
}

/// Reads a text piece by piece, and holds no more than one line of it.
///
/// ```
/// use rezus_core::observed::{Exposition, ExpositionLimits};
///
/// let mut text = Exposition::new(ExpositionLimits::DEFAULT);
/// let mut loads = Vec::new();
/// for piece in ["node_load1 0.", "5\nnode_load5{} 0.25\nnode_lo"] {
///     text.push(piece.as_bytes(), |sample| loads.push((sample.name.to_owned(), sample.value)))?;
/// }
/// let exposed = text.finish();
/// assert_eq!(loads, [("node_load1".to_owned(), 0.5), ("node_load5".to_owned(), 0.25)]);
/// assert!(exposed.truncated);
/// # Ok::<(), rezus_core::observed::ExpositionError>(())
/// ```
#[derive(Debug)]
pub struct Exposition {
    limits: ExpositionLimits,
    /// The beginning of a line whose end has not come yet; no longer than the limit of a line and one byte.
    begun: Vec<u8>,
    bytes: u64,
    lines: usize,
    exposed: Exposed,
}

impl Exposition {
    /// Nothing read yet.
    pub const fn new(limits: ExpositionLimits) -> Self {
        Self {
            limits,
            begun: Vec::new(),
            bytes: 0,
            lines: 0,
            exposed: Exposed { samples: 0, faulty: 0, first_fault: None, truncated: false },
        }
    }

    /// Reads on, and hands over each sample of the lines that end here.
    ///
    /// # Errors
    ///
    /// [`ExpositionError`] where there is more than the limits allow; nothing is to be pushed after that.
    pub fn push(&mut self, piece: &[u8], mut each: impl FnMut(Sample<'_>)) -> Result<(), ExpositionError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        if self.bytes > self.limits.body {
            return Err(ExpositionError::Body(self.limits.body));
        }
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.begun.is_empty() {
                self.line(line, &mut each)?;
            } else {
                self.begin(line);
                let whole = std::mem::take(&mut self.begun);
                self.line(&whole, &mut each)?;
                self.begun = whole;
                self.begun.clear();
            }
            rest = after;
        }
        self.begin(rest);
        Ok(())
    }

    /// Tells what there is to say of it, now that there is no more.
    pub fn finish(mut self) -> Exposed {
        self.exposed.truncated = !self.begun.is_empty();
        self.exposed
    }

    /// Keeps what may become a line, and of what is too long for one just enough to tell.
    fn begin(&mut self, piece: &[u8]) {
        let room = (self.limits.line + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn line(&mut self, line: &[u8], each: &mut impl FnMut(Sample<'_>)) -> Result<(), ExpositionError> {
        if self.lines == self.limits.lines {
            return Err(ExpositionError::Lines(self.limits.lines));
        }
        self.lines += 1;
        match line::read(line, &self.limits) {
            Ok(None) => {}
            Ok(Some(sample)) => {
                self.exposed.samples += 1;
                each(sample);
            }
            Err(fault) => {
                self.exposed.faulty += 1;
                self.exposed.first_fault.get_or_insert((self.lines, fault));
            }
        }
        Ok(())
    }
}
