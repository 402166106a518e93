//! Each form that a canary must see, and what it must not take for one.

use std::io::Write as _;

use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::*;

const SECRET: &str = "p\"w\\5e\n<\u{e9}\u{1f600}>/s3cr3t~~?";

fn forms(haystack: impl AsRef<[u8]>) -> Vec<(Form, Vec<Wrapping>)> {
    let canary = Canary::new(["another secret that is not there", SECRET]);
    let leaks = canary.leaks(haystack.as_ref());
    assert!(leaks.iter().all(|leak| leak.secret == 1));
    leaks.into_iter().map(|leak| (leak.form, leak.wrapping)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_secret_is_seen_in_plain_and_in_escapes() {
    assert_eq!(forms(format!("a{SECRET}b")), [(Form::Plain, vec![])]);
    let once = serde_json::to_string(SECRET).unwrap();
    assert_eq!(forms(&once), [(Form::Plain, vec![Wrapping::Json])]);
    let twice = serde_json::to_string(&once).unwrap();
    assert_eq!(forms(&twice), [(Form::Plain, vec![Wrapping::Json, Wrapping::Json])]);
    let ascii: String =
        SECRET.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect::<Vec<_>>().concat();
    assert_eq!(forms(ascii), [(Form::Plain, vec![Wrapping::Json])]);
    let percent: String = SECRET.bytes().flat_map(|byte| [String::from("%"), hex(&[byte])]).collect();
    assert_eq!(forms(format!("?pw={percent}&x=%zz%")), [(Form::Plain, vec![Wrapping::Percent])]);
}

#[test]
fn a_secret_is_seen_in_base64_at_any_alignment() {
    for before in 0..7 {
        for after in ["", "x", "xy"] {
            let text = format!("{}{SECRET}{after}", &"user: "[..before.min(6)]);
            for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                assert_eq!(forms(format!("Basic {encoded}")), [(Form::Base64, vec![])], "{before} {after}");
                let lines: Vec<&str> =
                    (0..encoded.len()).step_by(8).map(|at| &encoded[at..encoded.len().min(at + 8)]).collect();
                assert_eq!(forms(lines.join("\r\n")), [(Form::Base64, vec![Wrapping::Lines])]);
            }
        }
    }
}

#[test]
fn a_secret_is_seen_in_hexadecimal_digits_of_either_case() {
    let hex = hex(SECRET.as_bytes());
    assert_eq!(forms(format!("0x{hex}")), [(Form::Hex, vec![])]);
    assert_eq!(forms(hex.to_uppercase()), [(Form::Hex, vec![])]);
}

#[test]
fn a_secret_is_seen_within_archives_anywhere() {
    let json = serde_json::to_string(SECRET).unwrap() + &"and much more ".repeat(50);
    let frame = zstd::encode_all(json.as_bytes(), 3).unwrap();
    let outer =
        [b"SQLite format 3\0", &frame[..], b"\0\0tail", &gzip(json.as_bytes()), &gzip(&frame)].concat();
    let archives: Vec<Wrapping> = forms(&outer).into_iter().map(|(_, wrapping)| wrapping[0]).collect();
    let first_gzip = 16 + frame.len() + 6;
    let second_gzip = first_gzip + gzip(json.as_bytes()).len();
    for expected in [Wrapping::Zstd(16), Wrapping::Gzip(first_gzip), Wrapping::Gzip(second_gzip)] {
        assert!(archives.contains(&expected), "{expected:?} is not among {archives:?}");
    }
    assert_eq!(forms(gzip(json.as_bytes())), [(Form::Plain, vec![Wrapping::Gzip(0), Wrapping::Json])]);
    // Cut short: what comes before the cut is told all the same.
    let long = gzip(&[SECRET.as_bytes(), &vec![b'x'; 1_000_000]].concat());
    assert_eq!(forms(&long[..long.len() - 20]), [(Form::Plain, vec![Wrapping::Gzip(0)])]);
}

#[test]
fn a_secret_is_seen_in_the_files_of_a_zip_archive() {
    let file = |method: u8, name: &str, content: &[u8]| {
        let length = u8::try_from(name.len()).unwrap();
        let numbers = [20, 0, 8, 0, method, 0].into_iter().chain([0; 16]).chain([length, 0, 0, 0]);
        [b"PK\x03\x04", &numbers.collect::<Vec<u8>>()[..], name.as_bytes(), content].concat()
    };
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(SECRET.as_bytes()).unwrap();
    let clean = file(0, "clean", b"nothing");
    let at = clean.len();
    let archive = [clean, file(8, "tfplan", &encoder.finish().unwrap()), b"PK\x03\x04".to_vec()].concat();
    assert_eq!(forms(&archive), [(Form::Plain, vec![Wrapping::Zip(at)])]);
    assert_eq!(forms(file(0, "tfstate", SECRET.as_bytes())), [(Form::Plain, vec![])]);
}

#[test]
fn what_holds_no_secret_is_clean() {
    let almost = SECRET.replace("s3cr3t", "s3cr4t");
    for clean in [almost.as_str(), "", "\\", "\\u12", "%", "{\"a\":[1,2]}"] {
        assert_eq!(forms(clean), []);
    }
    assert_eq!(forms([GARBAGE, &[0x28, 0xb5, 0x2f, 0xfd][..], GARBAGE].concat()), []);
}

const GARBAGE: &[u8] = &[0x1f, 0x8b, 0x08, 1, 2, 3, 0xff, 0xfe];

#[test]
fn a_short_secret_is_seen_in_plain_only() {
    let canary = Canary::new(["abc"]);
    assert_eq!(canary.leaks(b"xabcx").len(), 1);
    assert!(canary.leaks(STANDARD.encode("abc").as_bytes()).is_empty());
}
