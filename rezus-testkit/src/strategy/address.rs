//! Instance keys that are hard to spell, and how OpenTofu spells them.

use proptest::prelude::*;
use proptest::sample::select;

use super::model::Key;

/// Characters that OpenTofu prints as they are: letters, marks, numbers, punctuation, symbols and the space.
const RAW: &[char] = &[
    'a',
    'b',
    'z',
    'A',
    '0',
    '7',
    ' ',
    '-',
    '_',
    '.',
    '/',
    '[',
    ']',
    '{',
    '}',
    '\'',
    '`',
    '~',
    '#',
    '*',
    '<',
    '>',
    '&',
    '\u{a9}',
    '\u{bd}',
    '\u{df}',
    '\u{e9}',
    '\u{301}',
    '\u{3b1}',
    '\u{416}',
    '\u{5d0}',
    '\u{20ac}',
    '\u{2192}',
    '\u{6f22}',
    '\u{fffd}',
    '\u{1d11e}',
    '\u{1f600}',
    '\u{20000}',
];

/// Characters that it escapes by number: controls, formats, other spaces and separators, private use, unassigned.
const ESCAPED: &[char] = &[
    '\0',
    '\u{1}',
    '\u{8}',
    '\u{b}',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{9f}',
    '\u{a0}',
    '\u{ad}',
    '\u{378}',
    '\u{1680}',
    '\u{2003}',
    '\u{200b}',
    '\u{200d}',
    '\u{200e}',
    '\u{2028}',
    '\u{2029}',
    '\u{202e}',
    '\u{202f}',
    '\u{3000}',
    '\u{e000}',
    '\u{f8ff}',
    '\u{feff}',
    '\u{fff9}',
    '\u{ffff}',
    '\u{e0001}',
    '\u{f0000}',
    '\u{10fffd}',
    '\u{10ffff}',
];

/// Characters that have an escape of their own, alone or together.
const SPECIAL: &[&str] = &[
    "\n", "\r", "\t", "\"", "\\", "$", "%", "${", "%{", "$${", "%%{", "${}", "$", "{", "\\n", "\\u0041",
    "$%{",
];

/// Returns a strategy of texts that are instance keys: plain ones, ones that look like numbers, empty ones, and ones of
/// characters that are spelt in every way there is.
pub fn keys() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(RAW).prop_map(String::from),
        2 => select(ESCAPED).prop_map(String::from),
        2 => select(SPECIAL).prop_map(str::to_owned),
    ];
    prop_oneof![
        3 => "[a-z][a-z0-9-]{0,6}",
        1 => select(&["", "0", "00", "1", "17", "-1", "1.0", "null", "true", " ", "eu/a", "a.b[0]", "a\"].b[\"c"][..])
            .prop_map(str::to_owned),
        4 => prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat()),
    ]
}

/// Returns a key as it stands in an address: `[3]`, `["text"]`, or nothing.
pub(super) fn spell_key(key: Option<&Key>) -> String {
    match key {
        None => String::new(),
        Some(Key::Number(number)) => format!("[{number}]"),
        Some(Key::Text(text)) => format!("[\"{}\"]", spell_text(text)),
    }
}

fn spell_text(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut spelt = String::new();
    for (at, &character) in characters.iter().enumerate() {
        let before_brace = characters.get(at + 1) == Some(&'{');
        let piece = match character {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '$' if before_brace => "$$".to_owned(),
            '%' if before_brace => "%%".to_owned(),
            _ if ESCAPED.contains(&character) && u32::from(character) < 0x1_0000 => {
                format!("\\u{:04x}", u32::from(character))
            }
            _ if ESCAPED.contains(&character) => format!("\\U{:08x}", u32::from(character)),
            _ => character.to_string(),
        };
        spelt.push_str(&piece);
    }
    spelt
}

/// Returns a strategy of module paths: names, each with or without a key.
pub(super) fn modules() -> impl Strategy<Value = Vec<(String, Option<Key>)>> {
    let name = select(&["pool", "net", "k8s", "worker-pool", "module", "data"][..]).prop_map(str::to_owned);
    let step = (
        name,
        prop_oneof![2 => Just(None), 1 => number_keys().prop_map(|(n, _)| Some(Key::Number(n))), 1 => keys().prop_map(|k| Some(Key::Text(k)))],
    );
    prop_oneof![
        3 => Just(Vec::new()),
        3 => prop::collection::vec(step.clone(), 1),
        1 => prop::collection::vec(step, 2..4),
    ]
}

/// Returns a strategy of keys of `count`, each with a spelling of its number.
pub(super) fn number_keys() -> impl Strategy<Value = (i64, String)> {
    prop_oneof![
        8 => (0_i64..12).prop_map(|number| (number, number.to_string())),
        // Beyond 2^53 the tools read the nearest float, and so must we.
        1 => select(&[(2_147_483_648, "2147483648"), (9_007_199_254_740_992, "9007199254740993")][..])
            .prop_map(|(number, text)| (number, text.to_owned())),
        1 => select(&[(2, "2.0"), (10, "1e1"), (12, "1.2E+1"), (0, "0.0")][..])
            .prop_map(|(number, text)| (number, text.to_owned())),
    ]
}

/// Returns a module path as the state spells it.
pub(super) fn spell_module(steps: &[(String, Option<Key>)]) -> String {
    let steps: Vec<String> =
        steps.iter().map(|(name, key)| format!("module.{name}{}", spell_key(key.as_ref()))).collect();
    steps.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelt_as_opentofu_spells_them() {
        let cases = [
            ("a/b", r#"["a/b"]"#),
            ("", r#"[""]"#),
            ("a\"b\\\n", r#"["a\"b\\\n"]"#),
            ("${x}%{y}$", r#"["$${x}%%{y}$"]"#),
            ("\u{a0}\u{2028}\u{f0000}", r#"["\u00a0\u2028\U000f0000"]"#),
            ("\u{1f600}", "[\"\u{1f600}\"]"),
        ];
        for (key, spelt) in cases {
            assert_eq!(spell_key(Some(&Key::Text(key.to_owned()))), spelt);
        }
    }
}
