//! Names the resource that a refused state's unreadable member belongs to. Only on the way to a refusal: it reads the
//! block in question a second time.

use serde_json::Value;

use crate::declared::ResourceAddress;
use crate::declared::document::member::known;
use crate::declared::index::{InstanceKey, Mode};
use crate::declared::json::{Cursor, Kind};

/// How many characters of an address are told: names are of any length.
const MOST: usize = 200;

/// Returns the address of a block, or of one of its instances, as far as its names can be read.
pub(super) fn address_of(text: &str, block: u32, instance: Option<u32>) -> Option<String> {
    let block: Value = serde_json::from_str(block_text(text, block)?).ok()?;
    let name = |member: &str| block.get(member).and_then(Value::as_str).filter(|name| !name.is_empty());
    let instance = instance.and_then(|number| block.get("instances")?.get(usize::try_from(number).ok()?));
    let key = instance.and_then(|instance| match instance.get("index_key")? {
        Value::String(key) => Some(InstanceKey::Text(key.clone())),
        Value::Number(key) => key.as_i64().map(InstanceKey::Number),
        _ => None,
    });
    let mode = if name("mode") == Some("data") { Mode::Data } else { Mode::Managed };
    let module = name("module").unwrap_or_default();
    let address = ResourceAddress::of_instance(module, mode, name("type")?, name("name")?, key.as_ref());
    let shown = address.as_str().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    Some(shown.take(MOST).collect())
}

/// Returns the text of one block of `resources`.
fn block_text(text: &str, block: u32) -> Option<&str> {
    let mut cursor = Cursor::new(text);
    cursor.begin_object().ok()?;
    let mut found = None;
    while let Some(name) = cursor.next_member().ok()? {
        let is_resources = known(name, &["resources"]) == Some("resources");
        if !is_resources || cursor.peek().ok()? != Kind::Array {
            cursor.skip_value().ok()?;
            continue;
        }
        cursor.begin_array().ok()?;
        let mut number = 0;
        while cursor.next_element().ok()? {
            let span = cursor.skip_value().ok()?;
            if number == block {
                found = text.get(span);
            }
            number += 1;
        }
    }
    found
}
