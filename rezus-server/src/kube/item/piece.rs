//! What was observed of an object, written out: it goes behind what is declared, and never into it.

use serde::Serialize;

use super::{OBSERVED, Row};
use crate::kube::object::Condition;

/// Conditions, members of the status, and cells. Of a law: whatever a piece says, the bytes before it stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece(String);

impl Piece {
    /// A piece that says these conditions.
    pub fn new(conditions: &[Condition]) -> Self {
        let list = serde_json::to_string(conditions).unwrap_or_default();
        let list = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or_default();
        Self(format!("{list}{OBSERVED}"))
    }

    /// Adds the members of a status; call it before [`cells`](Self::cells).
    #[must_use]
    pub fn members(mut self, status: &impl Serialize) -> Self {
        let members = serde_json::to_string(status).unwrap_or_default();
        let members = members.strip_prefix('{').and_then(|members| members.strip_suffix('}'));
        if let Some(members) = members.filter(|members| !members.is_empty()) {
            self.0.push(',');
            self.0.push_str(members);
        }
        self
    }

    /// Adds the cells that a row leaves to it, each made with a [`Row`] of one cell.
    #[must_use]
    pub fn cells(mut self, cells: impl IntoIterator<Item = Row>) -> Self {
        for Row(cell) in cells {
            self.0.push(OBSERVED);
            self.0.push_str(&cell);
        }
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Puts a piece behind what is declared: `text` is an object's JSON up to `end`, open within `status.conditions`, and then
/// cells. Returns where the JSON ends now.
pub(super) fn join(text: &mut Vec<u8>, end: usize, piece: &[u8]) -> usize {
    let cells = text.split_off(end);
    let mut parts = piece.split(|byte| char::from(*byte) == OBSERVED);
    let conditions = parts.next().unwrap_or_default();
    if !conditions.is_empty() && !text.ends_with(b"[") {
        text.push(b',');
    }
    text.extend_from_slice(conditions);
    text.push(b']');
    text.extend_from_slice(parts.next().unwrap_or_default());
    text.extend_from_slice(b"}}");
    let end = text.len();
    for (place, given) in cells.split(|byte| char::from(*byte) == OBSERVED).enumerate() {
        if place > 0 {
            text.extend_from_slice(parts.next().unwrap_or(b"\"<unknown>\""));
        }
        text.extend_from_slice(given);
    }
    end
}
