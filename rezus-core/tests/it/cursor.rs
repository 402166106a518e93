//! Laws of the JSON cursor and of what stands on it, against `serde_json`.

use proptest::prelude::*;
use rezus_core::declared::document;
use rezus_core::declared::json::{Cursor, Kind, MAX_DEPTH, Walk};
use rezus_core::declared::masked;
use serde_json::value::RawValue;

fn accepts(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip_value().and_then(|_| cursor.end()).is_ok()
}

fn serde_accepts(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Text made of pieces that a JSON reader must tell apart: mostly JSON, seldom well-formed.
fn token_soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "/", "null", "true", "false", "nul", "-", "+", ".", "e", "E",
            "0", "1", "10", "1e5", "-0.5", "1E-3", "\"a\"", "\"\"", "\"\\n\"", "\"\\u00e4\"", "\"\\ud83d\\ude00\"",
            "\"\\ud800\"", "\\u12", " ", "\n", "\t", "\r", "\n      ", "        \n", "\u{a0}", "\u{feff}", "ä", "\u{1}",
            "\u{7f}", "\"long enough for two words\"", "\"\u{1f}\"",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Well-formed JSON text with white space of all kinds, unless it was bent.
fn json() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", "", " ", "\n", "\n    ", "\n                  ", "\t\r\n"]);
    let text = "[a-zé/~ \u{2028}]{0,20}(\\\\n|\\\\u00e4|\\\\\"|\\\\\\\\)?[a-z]{0,9}";
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.5e-7",
            "123456789012345678901234567890",
            "1E+5"
        ])
        .prop_map(str::to_owned),
        text.prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        let inner = (space.clone(), inner, space.clone()).prop_map(|(a, b, c)| format!("{a}{b}{c}"));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((text, space.clone(), inner), 0..6).prop_map(|members| {
                let member = |(i, (name, space, value)): (usize, (String, &str, String))| {
                    format!("{space}\"{i}{name}\"{space}:{value}")
                };
                format!("{{{}}}", members.into_iter().enumerate().map(member).collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

/// The same with one character removed, put in, or the end cut off.
fn bent_json() -> impl Strategy<Value = String> {
    (json(), any::<prop::sample::Index>(), prop::option::of(any::<char>()), any::<bool>()).prop_map(
        |(text, place, replacement, cut)| {
            let characters: Vec<char> = text.chars().collect();
            let at = place.index(characters.len() + 1);
            let tail = if cut { &[] } else { characters.get(at + 1..).unwrap_or_default() };
            characters[..at].iter().copied().chain(replacement).chain(tail.iter().copied()).collect()
        },
    )
}

proptest! {
    #[test]
    fn accepts_exactly_what_serde_json_accepts(text in prop_oneof![token_soup(), json(), bent_json()]) {
        prop_assert_eq!(accepts(&text), serde_accepts(&text), "{:?}", text);
    }

    #[test]
    fn spans_are_those_of_raw_values(text in json()) {
        let span = Cursor::new(&text).skip_value().unwrap();
        prop_assert_eq!(&text[span], text.trim_ascii());
        let mut cursor = Cursor::new(&text);
        match cursor.peek().unwrap() {
            Kind::Array => {
                let expected: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
                let mut found = Vec::new();
                cursor.begin_array().unwrap();
                while cursor.next_element().unwrap() {
                    found.push(&text[cursor.skip_value().unwrap()]);
                }
                prop_assert_eq!(found, expected.iter().map(|raw| raw.get()).collect::<Vec<_>>());
            }
            Kind::Object => {
                let expected: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap();
                let mut found = std::collections::BTreeMap::new();
                cursor.begin_object().unwrap();
                while let Some(name) = cursor.next_member().unwrap() {
                    found.insert(name.decode().into_owned(), &text[cursor.skip_value().unwrap()]);
                }
                let expected: std::collections::BTreeMap<_, _> =
                    expected.into_iter().map(|(name, raw)| (name, raw.get())).collect();
                prop_assert_eq!(found, expected);
            }
            _ => {}
        }
        prop_assert!(cursor.offset() <= text.len());
    }

    #[test]
    fn strings_are_decoded_as_serde_json_decodes_them(text in any::<String>()) {
        let encoded = serde_json::to_string(&text).unwrap();
        let ascii: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        for encoded in [encoded, format!("\"{}\"", ascii.concat())] {
            let read = Cursor::new(&encoded).string().unwrap();
            prop_assert_eq!(read.decode(), text.as_str());
        }
    }

    #[test]
    fn pointers_lead_to_the_values_of_the_walk(text in json()) {
        use rezus_core::declared::json::Step;
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut walk = Walk::new(&text);
        while let Some(step) = walk.next_step().unwrap() {
            match step {
                Step::Name(name) => walk.enter(name),
                Step::String(found) => {
                    let pointed = whole.pointer(walk.pointer()).and_then(serde_json::Value::as_str);
                    prop_assert_eq!(pointed, Some(&*found.decode()));
                }
                _ => prop_assert!(whole.pointer(walk.pointer()).is_some()),
            }
        }
    }

    #[test]
    fn showing_without_masks_changes_no_value(value in json()) {
        let object = format!("{{\"attributes\": {value},\n\"x\" :{value} }}");
        let shown = masked::show(object.as_bytes(), &[]).unwrap();
        let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        prop_assert_eq!(parsed(&shown), parsed(&object));
        prop_assert_eq!(parsed(&masked::pretty(&shown)), parsed(&object));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in token_soup(), value in bent_json()) {
        let _ = document::read(&bytes).is_ok();
        let _ = document::read(text.as_bytes()).is_ok();
        let _ = document::read(value.as_bytes()).is_ok();
        let _ = masked::show(value.as_bytes(), &["/a".to_owned()]).is_ok();
        for state in [
            format!(r#"{{"version":4,"resources":{value}}}"#),
            format!(r#"{{"version":4,"outputs":{{"a":{{"type":"string","sensitive":true,"value":{value}}}}},"resources":[
                {{"mode":"data","type":"a","name":"b","instances":[{{"attributes":{value},"sensitive_attributes":{value}}}]}}]}}"#),
        ] {
            let _ = document::read(state.as_bytes()).is_ok();
        }
    }
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(accepts(&deep));
    let deep = format!("{}1{}", r#"{"value":"#.repeat(MAX_DEPTH - 10), "}".repeat(MAX_DEPTH - 10));
    let path = r#"{"type":"get_attr","value":"value"},"#.repeat(1000);
    let path = path.trim_end_matches(',');
    let state = format!(
        r#"{{"version":4,"outputs":{{"o":{{"value":"hidden","type":"string","sensitive":true}}}},"resources":[
        {{"mode":"data","type":"a","name":"b","instances":[{{"attributes":{deep},"sensitive_attributes":[[{path}]]}}]}}]}}"#
    );
    let Ok(document::Document::Plain(state_read)) = document::read(state.as_bytes()) else {
        panic!("a state")
    };
    let row = &state_read.rows[0];
    let span = usize::try_from(row.span.start).unwrap()..usize::try_from(row.span.end).unwrap();
    assert!(masked::show(&state.as_bytes()[span], &row.masked).unwrap().contains("(sensitive)"));
}
