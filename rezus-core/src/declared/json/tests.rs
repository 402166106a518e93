//! The cursor against every shape of JSON.

use super::*;

fn accepts(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip_value().and_then(|_| cursor.end()).is_ok()
}

#[test]
fn grammar_is_that_of_the_rfc() {
    let good = [
        "null",
        " true ",
        "\t\r\n[]",
        "{}",
        "[1]",
        "-0",
        "0.5",
        "1e+9",
        "1E-0",
        r#""\ud800""#,
        r#""\u00e4ß""#,
        r#"{"a":[{"b":{}},[],""]}"#,
        "[ 1 , 2 ]",
        r#"{ "a" : 1 , "a" : 2 }"#,
        "\"\u{7f}\"",
    ];
    for text in good {
        assert!(accepts(text), "{text}");
    }
    let bad = [
        "",
        " ",
        "nul",
        "nullx",
        "[1,]",
        "{,}",
        "[",
        "]",
        "{]",
        "[}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "\"",
        "\"\\\"",
        r#""\x""#,
        r#""\u12g4""#,
        "\"\n\"",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "[1 2]",
        "1 2",
        "\u{feff}1",
        "\u{a0}1",
        "[1],",
        "{\"a\":1,}",
        "'a'",
        "NaN",
        "// \n1",
    ];
    for text in bad {
        assert!(!accepts(text), "{text}");
    }
}

#[test]
fn nesting_ends_where_go_ends_it() {
    let nest = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(accepts(&nest(MAX_DEPTH)));
    assert!(!accepts(&nest(MAX_DEPTH + 1)));
    let mut cursor = Cursor::new("[[]]");
    cursor.begin_array().unwrap();
    assert!(cursor.next_element().unwrap());
    cursor.skip_value().unwrap();
}

#[test]
fn members_and_elements_are_read_one_by_one() {
    let text = " { \"a\" : [ 1 , \"x\\ny\" ] , \"b\":-1.5e3}";
    let mut cursor = Cursor::new(text);
    cursor.begin_object().unwrap();
    assert_eq!(cursor.next_member().unwrap().unwrap().raw(), "a");
    cursor.begin_array().unwrap();
    assert!(cursor.next_element().unwrap());
    assert_eq!(cursor.number(), Ok("1"));
    assert!(cursor.next_element().unwrap());
    assert_eq!(cursor.string().unwrap().decode(), "x\ny");
    assert!(!cursor.next_element().unwrap());
    assert_eq!(cursor.next_member().unwrap().unwrap().raw(), "b");
    assert_eq!(cursor.peek(), Ok(Kind::Number));
    let span = cursor.skip_value().unwrap();
    assert_eq!(&text[span], "-1.5e3");
    assert_eq!(cursor.next_member().unwrap(), None);
    assert_eq!(cursor.end(), Ok(()));
}

#[test]
fn errors_say_where_and_never_what() {
    let error = |text: &str| Cursor::new(text).skip_value().unwrap_err();
    assert_eq!(error("[1,secret]").to_string(), "expected a value at byte 3");
    assert_eq!(error("[1,").to_string(), "the text ends too early at byte 3");
    assert_eq!(error("{\"a\" 1}").to_string(), "expected a colon at byte 5");
}
