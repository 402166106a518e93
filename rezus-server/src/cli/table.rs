//! Tables that a person likes to read: no lines, upper-case heads, columns as wide as they need.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table};
use rezus_core::base::Timestamp;
use serde_json::Value;

/// Prints rows under heads.
pub(super) fn print(
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Shows how long ago a time of the server's was, in its greatest unit: `45s`, `12m`, `3h`, `9d`.
pub(super) fn age(at: &Value, now: Timestamp) -> String {
    let Some(at) = at.as_str().and_then(|at| Timestamp::parse(at).ok()) else {
        return "-".to_owned();
    };
    seconds(now.since(at).as_secs())
}

/// Shows a span of seconds in its greatest unit.
pub(super) fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Shows a value as a cell: `-` for what is absent, texts without quotes.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

/// Shows a text of somebody else's: control characters, which a terminal would obey, as their escapes.
pub(super) fn harmless(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

/// Shows a size in bytes.
pub(super) fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), |bytes| crate::config::ByteSize(bytes).to_string())
}

/// A list's items.
pub(super) fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let mut out = Vec::new();
        let rows = [vec!["a".to_owned(), "long cell".to_owned()], vec!["bcd".to_owned(), "x".to_owned()]];
        print(&["ONE", "TWO"], rows, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "ONE   TWO\na     long cell\nbcd   x\n");
    }

    #[test]
    fn texts_of_others_do_not_move_the_terminal() {
        assert_eq!(cell(&"\u{1b}[2Jroot@vm\nADMIN".into()), "\\u{1b}[2Jroot@vm\\nADMIN");
        assert_eq!(cell(&"ünï \"x\"".into()), "ünï \"x\"");
    }

    #[test]
    fn spans_are_short() {
        let shown = [0, 119, 120, 7_199, 7_200, 172_799, 172_800].map(seconds);
        assert_eq!(shown, ["0s", "119s", "2m", "119m", "2h", "47h", "2d"]);
    }
}
