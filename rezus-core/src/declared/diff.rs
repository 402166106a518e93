//! What differs between two states: which objects came, went or changed, and in which attributes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::declared::ResourceAddress;
use crate::declared::document::{self, DocumentError};
use crate::declared::index::IndexRow;
use crate::declared::json::{JsonError, Step, Walk};
use crate::declared::masked::{SENSITIVE, show};
use crate::declared::secrets::{SecretRules, pruned, search};

/// How deep values are compared part by part; what is below is compared as one.
const DEEPEST: usize = 64;

/// Members of an instance object that are compared with none: bookkeeping, never shown.
const NOT_COMPARED: &str = "sensitive_attributes";

/// A state in clear, with its rows.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The bytes.
    pub body: &'a [u8],
    /// Their index.
    pub rows: &'a [IndexRow],
}

/// The lengths only: the body holds secrets.
impl std::fmt::Debug for Side<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Side({} bytes, {} rows)", self.body.len(), self.rows.len())
    }
}

/// An instance object that is not the same in both states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectChange {
    /// The instance.
    pub address: ResourceAddress,
    /// The deposed key, if it is an old generation.
    pub deposed: Option<String>,
    /// What became of it.
    pub kind: ChangeKind,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only the new state has it.
    Added,
    /// Only the old state has it.
    Removed,
    /// Both have it, and these places differ: at least one, sorted by pointer.
    Changed {
        /// The places.
        attributes: Vec<AttributeChange>,
    },
}

/// A place of an object that is not the same in both states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeChange {
    /// The JSON pointer into the object; empty where all of it is hidden.
    pub pointer: String,
    /// What was there, as compact JSON text, `"(sensitive)"` for what must not be shown; `None` if nothing.
    pub before: Option<String>,
    /// What is there now, in the same way.
    pub after: Option<String>,
}

/// Compares two states in clear; the result is sorted by address, then by deposed key.
///
/// A place that is hidden in one of them is hidden in both, and so is a string that contains a secret of the other
/// one. Numbers are compared as they are spelt.
///
/// # Errors
///
/// [`DocumentError`] when a body is no state in clear, or not the one that its rows were made from.
pub fn diff(
    old: Side<'_>,
    new: Side<'_>,
    rules: SecretRules<'_>,
) -> Result<Vec<ObjectChange>, DocumentError> {
    let (old_secrets, new_secrets) =
        (document::needles(old.body, rules)?, document::needles(new.body, rules)?);
    let mut pairs: BTreeMap<_, (Option<&IndexRow>, Option<&IndexRow>)> = BTreeMap::new();
    for row in old.rows {
        pairs.entry((&row.address, &row.deposed)).or_default().0 = Some(row);
    }
    for row in new.rows {
        pairs.entry((&row.address, &row.deposed)).or_default().1 = Some(row);
    }
    let mut changes = Vec::new();
    for ((address, deposed), pair) in pairs {
        let kind = match pair {
            (Some(before), Some(after)) => {
                let (before_object, after_object) = (old.object(before)?, new.object(after)?);
                if before_object == after_object {
                    continue;
                }
                let mut masks = [before.masked.as_slice(), &after.masked].concat();
                masks.extend(search(before_object, &new_secrets)?);
                masks.extend(search(after_object, &old_secrets)?);
                let masks = pruned(masks, before_object.len() + after_object.len());
                let attributes = changed(before_object, after_object, &masks)?;
                if attributes.is_empty() {
                    continue;
                }
                ChangeKind::Changed { attributes }
            }
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
        };
        changes.push(ObjectChange { address: address.clone(), deposed: deposed.clone(), kind });
    }
    Ok(changes)
}

impl<'a> Side<'a> {
    fn object(self, row: &IndexRow) -> Result<&'a str, JsonError> {
        let bound = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.body.get(bound(row.span.start)..bound(row.span.end));
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or(JsonError { offset: bound(row.span.start), fault: "expected an instance object" })
    }
}

/// A value that is compared as one.
#[derive(PartialEq, Eq)]
struct Leaf {
    text: String,
    is_hidden: bool,
}

fn changed(before: &str, after: &str, masks: &[String]) -> Result<Vec<AttributeChange>, JsonError> {
    let (mut before, mut after) = (leaves(before, masks)?, leaves(after, masks)?);
    before.retain(|pointer, leaf| match after.get(pointer) {
        Some(same) if same == leaf => {
            after.remove(pointer);
            false
        }
        _ => true,
    });
    let shown = |leaf: Leaf| {
        if leaf.is_hidden { SENSITIVE.to_owned() } else { leaf.text }
    };
    let mut changes: Vec<AttributeChange> = before
        .into_iter()
        .map(|(pointer, leaf)| {
            let after = after.remove(&pointer).map(shown);
            AttributeChange { pointer, before: Some(shown(leaf)), after }
        })
        .collect();
    let added = after.into_iter().map(|(pointer, leaf)| AttributeChange {
        pointer,
        before: None,
        after: Some(shown(leaf)),
    });
    changes.extend(added);
    changes.sort_unstable_by(|a, b| a.pointer.cmp(&b.pointer));
    Ok(changes)
}

/// Returns the leaves of an object by their pointers; a hidden place is one leaf.
fn leaves(object: &str, masks: &[String]) -> Result<BTreeMap<String, Leaf>, JsonError> {
    let object = show(object.as_bytes(), &[])?;
    let mut leaves = BTreeMap::new();
    let mut walk = Walk::new(&object);
    let mut is_empty = false;
    while let Some(step) = walk.next_step()? {
        let was_empty = std::mem::replace(&mut is_empty, false);
        let is_hidden = |pointer: &str| masks.binary_search_by(|mask| mask.as_str().cmp(pointer)).is_ok();
        let (text, is_hidden): (Cow<'_, str>, bool) = match step {
            Step::Name(name) if walk.depth() == 1 && name.raw() == NOT_COMPARED => {
                walk.skip_member()?;
                continue;
            }
            Step::Name(name) => {
                walk.enter(name);
                continue;
            }
            Step::Open(_) if is_hidden(walk.pointer()) => (walk.skip_opened()?.into(), true),
            Step::Open(_) if walk.depth() > DEEPEST => {
                let text = walk.skip_opened()?;
                let above = format!("{}/", walk.pointer());
                (text.into(), masks.iter().any(|mask| mask.starts_with(&above)))
            }
            Step::Open(_) => {
                is_empty = true;
                continue;
            }
            Step::Close(is_object) if was_empty && walk.depth() > 0 => {
                (if is_object { "{}" } else { "[]" }.into(), false)
            }
            Step::Close(_) => continue,
            Step::String(text) => (format!("\"{}\"", text.raw()).into(), is_hidden(walk.pointer())),
            Step::Other(text) => (text.into(), is_hidden(walk.pointer())),
        };
        leaves.insert(walk.pointer().to_owned(), Leaf { text: text.into_owned(), is_hidden });
    }
    Ok(leaves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::document::{Document, read};

    fn state(outputs: &str, instances: &str) -> String {
        format!(
            r#"{{"version":4,"outputs":{outputs},"resources":[{{"mode":"managed","type":"t","name":"n","instances":[{instances}]}}]}}"#
        )
    }

    fn compared(old: &str, new: &str) -> Vec<ObjectChange> {
        let rows = |body: &str| match read(body.as_bytes()) {
            Ok(Document::Plain(state)) => state.rows,
            other => panic!("{other:?}"),
        };
        let (old_rows, new_rows) = (rows(old), rows(new));
        let old = Side { body: old.as_bytes(), rows: &old_rows };
        let new = Side { body: new.as_bytes(), rows: &new_rows };
        diff(old, new, &|_| &[]).unwrap()
    }

    fn attributes(old: &str, new: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let mut changes = compared(old, new);
        match changes.pop().map(|change| change.kind) {
            Some(ChangeKind::Changed { attributes }) => {
                attributes.into_iter().map(|change| (change.pointer, change.before, change.after)).collect()
            }
            None => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    fn change(
        pointer: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> (String, Option<String>, Option<String>) {
        (pointer.to_owned(), before.map(str::to_owned), after.map(str::to_owned))
    }

    #[test]
    fn objects_come_go_and_stay() {
        let old = state("{}", r#"{"index_key":1},{"index_key":2},{"deposed":"00000001"}"#);
        let new = state("{}", r#"{"index_key":3}, {"index_key":2}"#);
        let kinds: Vec<_> =
            compared(&old, &new).into_iter().map(|c| (c.address.to_string(), c.deposed, c.kind)).collect();
        let deposed = Some("00000001".to_owned());
        assert_eq!(
            kinds,
            [
                ("t.n".to_owned(), deposed, ChangeKind::Removed),
                ("t.n[1]".to_owned(), None, ChangeKind::Removed),
                ("t.n[3]".to_owned(), None, ChangeKind::Added),
            ]
        );
    }

    #[test]
    fn attributes_are_compared_leaf_by_leaf() {
        let old = state(
            "{}",
            r#"{"attributes":{"a":1,"b":[1,{"c":"x"}],"d":{},"e":2.0,"f":"same"},"private":"x"}"#,
        );
        let new = state(
            "{}",
            r#"{"attributes":{ "a":"1","b":[1,{"c":"y"},[]],"d":{"z":null},"e":2,"f":"same"},"private":"y"}"#,
        );
        assert_eq!(
            attributes(&old, &new),
            [
                change("/attributes/a", Some("1"), Some("\"1\"")),
                change("/attributes/b/1/c", Some("\"x\""), Some("\"y\"")),
                change("/attributes/b/2", None, Some("[]")),
                change("/attributes/d", Some("{}"), None),
                change("/attributes/d/z", None, Some("null")),
                change("/attributes/e", Some("2.0"), Some("2")),
            ]
        );
        let private = |key: &str| state("{}", &format!(r#"{{"attributes":{{"a":1}},"private":"{key}"}}"#));
        assert_eq!(compared(&private("x"), &private("y")), []);
    }

    #[test]
    fn what_one_state_hides_is_shown_of_neither() {
        let marked = |value: &str, marks: &str, copy: &str| {
            state(
                "{}",
                &format!(r#"{{"attributes":{{"p":"{value}","q":"{copy}"}},"sensitive_attributes":{marks}}}"#),
            )
        };
        let path = r#"[[{"type":"get_attr","value":"p"}]]"#;
        let old = marked("first-password", path, "");
        let new = marked("second-password", "[]", "now first-password");
        let hidden = Some(SENSITIVE);
        let expected = [change("/attributes/p", hidden, hidden), change("/attributes/q", hidden, hidden)];
        assert_eq!(attributes(&old, &new), expected);
        assert_eq!(attributes(&new, &old), expected);
        assert_eq!(attributes(&marked("first-password", path, ""), &marked("first-password", "[]", "")), []);
    }

    #[test]
    fn an_object_that_is_hidden_as_a_whole_has_changed_as_a_whole() {
        let lost = |id: u8| {
            state(
                "{}",
                &format!(
                    r#"{{"attributes":{{"id":{id}}},"sensitive_attributes":[[{{"type":"get_attr","value":"p"}}]]}}"#
                ),
            )
        };
        assert_eq!(attributes(&lost(1), &lost(2)), [change("", Some(SENSITIVE), Some(SENSITIVE))]);
    }
}
