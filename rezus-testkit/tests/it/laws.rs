//! The laws of the core's reader of states, over generated states and over the fixtures.

mod fixtures;
mod generated;
mod projection;

use rezus_core::declared::document::{Document, PlainState, read};
use rezus_core::declared::index::IndexRow;

/// Reads a state in clear.
fn plain(body: &[u8]) -> Result<PlainState, String> {
    match read(body) {
        Ok(Document::Plain(state)) => Ok(state),
        Ok(Document::Encrypted(_)) => Err("it is taken for an envelope".to_owned()),
        Err(error) => Err(format!("{error} ({error:?})")),
    }
}

/// Returns the bytes of a row's object.
fn object_of<'a>(body: &'a [u8], row: &IndexRow) -> &'a [u8] {
    let bound = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    body.get(bound(row.span.start)..bound(row.span.end)).unwrap_or_default()
}
