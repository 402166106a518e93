//! Prometheus' text format.

use std::fmt::Write as _;

use proptest::prelude::*;
use rezus_core::observed::{Exposed, Exposition, ExpositionError, ExpositionLimits, LineFault};

/// Name, labels, value, time.
type Read = (String, Vec<(String, String)>, f64, Option<i64>);

fn read_pieces(pieces: &[&[u8]]) -> (Vec<Read>, Exposed) {
    let mut text = Exposition::new(ExpositionLimits::DEFAULT);
    let mut samples = Vec::new();
    for piece in pieces {
        text.push(piece, |sample| {
            let labels = sample.labels.iter().map(|(name, value)| (name.to_owned(), value.into_owned()));
            samples.push((sample.name.to_owned(), labels.collect(), sample.value, sample.at_millis));
        })
        .unwrap();
    }
    (samples, text.finish())
}

fn read(text: &str) -> (Vec<Read>, Exposed) {
    read_pieces(&[text.as_bytes()])
}

fn one(line: &str) -> Read {
    let (mut samples, exposed) = read(&format!("{line}\n"));
    assert_eq!((samples.len(), exposed.faulty), (1, 0), "{line}: {exposed:?}");
    samples.remove(0)
}

#[test]
fn every_form_of_a_sample_is_read() {
    for (line, name, labels, value, at) in [
        ("up 1", "up", vec![], 1.0, None),
        ("  up\t 1  ", "up", vec![], 1.0, None),
        ("up 1\r", "up", vec![], 1.0, None),
        ("up{} 1", "up", vec![], 1.0, None),
        ("up { } 1", "up", vec![], 1.0, None),
        ("job:rate:5m 1.5e-3 1700000000000", "job:rate:5m", vec![], 0.0015, Some(1_700_000_000_000)),
        ("up 1 -5", "up", vec![], 1.0, Some(-5)),
        (r#"a{b="c"} 1"#, "a", vec![("b", "c")], 1.0, None),
        (r#"a{b="c",} 1"#, "a", vec![("b", "c")], 1.0, None),
        (r#"a { b = "c" , d = "e" } 1"#, "a", vec![("b", "c"), ("d", "e")], 1.0, None),
        (r#"a{b="c"}1"#, "a", vec![("b", "c")], 1.0, None),
        (r#"a{b="x,y=z}{"} 1"#, "a", vec![("b", "x,y=z}{")], 1.0, None),
        (r#"a{b="\\ \" \n"} 1"#, "a", vec![("b", "\\ \" \n")], 1.0, None),
        (r#"a{b="",c="ä"} +Inf"#, "a", vec![("b", ""), ("c", "ä")], f64::INFINITY, None),
        ("a -Inf", "a", vec![], f64::NEG_INFINITY, None),
        ("a .5", "a", vec![], 0.5, None),
        (r##"a{b="# no comment"} 1"##, "a", vec![("b", "# no comment")], 1.0, None),
    ] {
        let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(one(line), (name.to_owned(), labels, value, at), "{line}");
    }
    assert!(one("a NaN").2.is_nan());
}

#[test]
fn comments_and_empty_lines_are_no_samples() {
    let text = "# HELP up Whether.\n# TYPE up gauge\n\n   \r\n#\n\tup 1\n# EOF\n";
    let (samples, exposed) = read(text);
    assert_eq!(samples.len(), 1);
    assert_eq!(exposed, Exposed { samples: 1, faulty: 0, first_fault: None, truncated: false });
}

#[test]
fn a_faulty_line_is_counted_and_the_rest_is_read() {
    for (line, fault) in [
        ("1up 1", LineFault::Name),
        ("ä 1", LineFault::Name),
        (r#"{"quoted.name"} 1"#, LineFault::Name),
        ("up", LineFault::Value),
        ("up{} ", LineFault::Value),
        ("up1", LineFault::Value),
        ("up 0x10", LineFault::Value),
        ("up 1_000", LineFault::Value),
        ("up 1 1.5", LineFault::Time),
        ("up 1 1 1", LineFault::Time),
        (r#"up 1 # {trace="x"} 1"#, LineFault::Time),
        ("up{", LineFault::Labels),
        ("up{,} 1", LineFault::Labels),
        (r#"up{a="b",,} 1"#, LineFault::Labels),
        (r#"up{a="b" c="d"} 1"#, LineFault::Labels),
        (r#"up{a="b"#, LineFault::Labels),
        (r#"up{a="b""#, LineFault::Labels),
        ("up{a=b} 1", LineFault::Labels),
        (r#"up{a:b="c"} 1"#, LineFault::Labels),
        (r#"up{a="\t"} 1"#, LineFault::Escape),
        ("up{a=\"\\", LineFault::Escape),
        (r#"up{a="b",a="c"} 1"#, LineFault::Twice),
    ] {
        let (samples, exposed) = read(&format!("first 1\n{line}\nlast 2\n"));
        assert_eq!(samples.iter().map(|sample| &*sample.0).collect::<Vec<_>>(), ["first", "last"], "{line}");
        assert_eq!((exposed.faulty, exposed.first_fault), (1, Some((2, fault))), "{line}");
    }
    let (_, exposed) = read_pieces(&[b"a{b=\"\xff\"} 1\n"]);
    assert_eq!(exposed.first_fault, Some((1, LineFault::NotUtf8)));
}

#[test]
fn a_last_line_without_an_end_is_cut_and_not_taken() {
    let (samples, exposed) = read("a 1\nb 12");
    assert_eq!((samples.len(), exposed.truncated), (1, true));
    assert!(!read("a 1\n").1.truncated);
    assert!(!read("").1.truncated);
}

#[test]
fn what_goes_beyond_a_limit_is_not_read() {
    let labels = |count: usize| {
        (0..count).fold(String::new(), |mut labels, number| {
            write!(labels, "l{number}=\"\",").unwrap();
            labels
        })
    };
    for (line, fault) in [
        (format!("{} 1", "a".repeat(129)), LineFault::Name),
        (format!("a{{{}=\"\"}} 1", "b".repeat(129)), LineFault::LongLabel),
        (format!("a{{b=\"{}\"}} 1", "c".repeat(513)), LineFault::LongLabel),
        (format!("a{{{}}} 1", labels(33)), LineFault::ManyLabels),
        (format!("a{}1", " ".repeat(16 << 10)), LineFault::LongLine),
        (format!("# {}", " ".repeat(16 << 10)), LineFault::LongLine),
    ] {
        let (samples, exposed) = read(&format!("{line}\nb 1\n"));
        assert_eq!((samples.len(), exposed.first_fault), (1, Some((1, fault))));
    }
    assert_eq!(one(&format!("{}{{{}}} 1", "a".repeat(128), labels(32))).1.len(), 32);
    assert_eq!(one(&format!("a{{b=\"{}\"}} 1", "c".repeat(512))).1.len(), 1);

    let limits = ExpositionLimits { body: 9, lines: 2, ..ExpositionLimits::DEFAULT };
    assert_eq!(Exposition::new(limits).push(b"a 1\nb 2\n\n", |_| ()), Err(ExpositionError::Lines(2)));
    assert_eq!(Exposition::new(limits).push(b"aaaa 11111", |_| ()), Err(ExpositionError::Body(9)));
    assert_eq!(Exposition::new(limits).push(b"aaaa 1111", |_| ()), Ok(()));
}

#[test]
fn a_line_without_an_end_takes_no_more_memory_than_a_line() {
    // As debugging shows the bytes that are held, in decimal and with commas: at most five characters each.
    let mut text = Exposition::new(ExpositionLimits::DEFAULT);
    for _ in 0..200 {
        text.push(&[b'a'; 10_000], |_| panic!("no sample")).unwrap();
    }
    assert!(format!("{text:?}").len() < 5 * (17 << 10));
    text.push(b"\nb 1\n", |sample| assert_eq!(sample.name, "b")).unwrap();
    let exposed = text.finish();
    assert_eq!((exposed.samples, exposed.first_fault), (1, Some((1, LineFault::LongLine))));
}

fn written(samples: &[Read]) -> String {
    let mut text = String::new();
    for (name, labels, value, at) in samples {
        text += name;
        if !labels.is_empty() {
            let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let labels = labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect::<Vec<_>>();
            write!(text, "{{{}}}", labels.join(",")).unwrap();
        }
        write!(text, " {value}").unwrap();
        if let Some(at) = at {
            write!(text, " {at}").unwrap();
        }
        text += "\n";
    }
    text
}

fn samples() -> impl Strategy<Value = Vec<Read>> {
    let labels = prop::collection::btree_map("[a-zA-Z_][a-zA-Z0-9_]{0,9}", "(?s).{0,12}", 0..5)
        .prop_map(|labels| labels.into_iter().collect());
    let value = any::<f64>().prop_filter("equal to itself", |value| !value.is_nan());
    prop::collection::vec(("[a-zA-Z_:][a-zA-Z0-9_:]{0,19}", labels, value, any::<Option<i64>>()), 0..8)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_however_it_is_cut(samples in samples(), cuts in prop::collection::vec(0_usize..400, 0..6)) {
        let text = written(&samples);
        let mut cuts = cuts.into_iter().map(|cut| cut.min(text.len())).collect::<Vec<_>>();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        let (read, exposed) = read_pieces(&pieces);
        prop_assert_eq!(&read, &samples);
        prop_assert_eq!(exposed, Exposed { samples: samples.len(), ..Exposed::default() });
    }

    #[test]
    fn no_bytes_are_too_odd(text in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(prop::sample::select(b"ab1{}=\",\\n# \t\r\n.+-eN\xc3\xa4".to_vec()), 0..60),
    ]) {
        let (samples, exposed) = read_pieces(&[&text]);
        prop_assert_eq!(samples.len(), exposed.samples);
        let lines = text.split(|byte| *byte == b'\n').count() - 1;
        prop_assert!(exposed.samples + exposed.faulty <= lines);
    }
}
