//! What is printed, to the letter.

use serde_json::json;

use super::*;

/// When it is.
fn noon() -> Timestamp {
    Timestamp::parse("2026-11-30T12:00:00Z").unwrap()
}

/// Points a minute apart, the last one at noon.
fn points(values: &[Option<f64>]) -> Value {
    let last = u32::try_from(values.len()).unwrap();
    let at = |place: u32| noon().minus(Duration::from_mins(1) * (last - place)).to_string();
    let known = (1..).zip(values).filter_map(|(place, value)| Some((place, (*value)?)));
    known.map(|(place, value)| json!([at(place), value, value, value])).collect()
}

fn series(name: &str, unit: &str, node: &str, values: &[Option<f64>]) -> Value {
    json!({
        "name": name, "type": "gauge", "unit": unit, "help": "What it says, in a sentence.",
        "labels": { "node": node, "source": "talos" }, "points": points(values),
    })
}

fn answer(series: &[Value]) -> Value {
    json!({
        "from": "2026-11-30T11:00:00.000Z", "to": "2026-11-30T12:00:00.000Z", "stepSeconds": 60.0, "series": series,
    })
}

/// An hour of something that comes and goes, with a gap.
fn hour(scale: f64) -> Vec<Option<f64>> {
    let value = |minute: u32| scale * (1.0 - (f64::from(minute) / 10.0).cos());
    (0..60).map(|minute| (!(35..45).contains(&minute)).then(|| value(minute))).collect()
}

#[track_caller]
fn printed(answer: &Value, name: Option<&str>, golden: &str) {
    let mut out = Vec::new();
    print(answer, name, 80, noon(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text == golden, "it is:\n{text}\nand not:\n{golden}");
    let is_plot = name.is_some();
    assert!(!is_plot || text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn one_series_is_a_plot_as_wide_as_the_terminal() {
    let bytes = series("rezus_node_memory_available_bytes", "bytes", "cp-1", &hour(2_147_483_648.0));
    printed(&answer(&[bytes]), Some("x"), include_str!("golden/one.txt"));
}

#[test]
fn several_series_are_rows_on_one_scale() {
    let several = [
        series("rezus_node_load1", "", "cp-1", &hour(1.0)),
        series("rezus_node_load1", "", "worker-oslo-1", &hour(2.0)),
        series("rezus_node_load1", "", "idle", &[Some(0.0), None, Some(0.0)]),
        series("rezus_node_load1", "", "silent", &[]),
    ];
    printed(&answer(&several), Some("x"), include_str!("golden/rows.txt"));
}

#[test]
fn without_a_name_there_is_a_list_with_the_newest_values() {
    let mut listed = answer(&[
        series("rezus_node_boot_time_seconds", "seconds", "cp-1", &[Some(1_796_000_000.0)]),
        series("rezus_node_clock_skew_seconds", "seconds", "cp-1", &[Some(0.004), Some(-0.02)]),
        series(
            "rezus_node_network_receive_bytes_total",
            "bytes per second",
            "cp-1",
            &[Some(12_345_678.0), None],
        ),
        series("rezus_node_ready", "", "cp-1", &[]),
    ]);
    listed["metrics"] =
        json!([{ "name": "rezus_node_load1", "series": 3 }, { "name": "rezus_node_ready", "series": 1 }]);
    printed(&listed, None, include_str!("golden/list.txt"));
}

#[test]
fn where_there_is_nothing_the_reason_is_all_there_is() {
    let mut nothing = answer(&[]);
    nothing["reason"] = "there are no samples of that time".into();
    printed(&nothing, None, "there are no samples of that time\n");
    printed(&nothing, Some("x"), "there are no samples of that time\n");
}

#[test]
fn a_metric_is_told_from_a_machine_by_its_underscore() {
    let meant = |machine: Option<&str>, name: Option<&str>| {
        let command = Metrics {
            tenant: TenantName::parse("prod").unwrap(),
            machine: machine.map(ToOwned::to_owned),
            name: name.map(ToOwned::to_owned),
            range: None,
            from: None,
            to: None,
            step: None,
            json: false,
            target: Target { data_dir: None, server: None, config: None, ca_file: None, token_file: None },
        };
        let (machine, name) = command.meant();
        (machine.map(ToOwned::to_owned), name)
    };
    let (machine, load) = (Some("cp-1".to_owned()), Some("rezus_node_load1".to_owned()));
    assert_eq!(meant(None, None), (None, None));
    assert_eq!(meant(Some("cp-1"), None), (machine.clone(), None));
    assert_eq!(meant(Some("node_load1"), None), (None, load.clone()));
    assert_eq!(meant(Some("cp-1"), Some("rezus_node_load1")), (machine, load));
}
