//! Numbers with their units, as people write them.

use std::time::Duration;

use rezus_core::base::Timestamp;

/// Shows a value in a unit of the API's. What is measured in seconds since 1970 is a date.
pub(super) fn shown(value: f64, unit: &str, metric: &str) -> String {
    match unit {
        "seconds" if metric.ends_with("_time_seconds") => date(value),
        "seconds" => span(value),
        "bytes" => bytes(value),
        "bytes per second" => format!("{}/s", bytes(value)),
        // So many seconds of processor time in a second are so many processors.
        "cores" | "seconds per second" => format!("{} cores", short(value)),
        _ => short(value),
    }
}

fn bytes(value: f64) -> String {
    let units =
        [("TiB", 1_099_511_627_776.0), ("GiB", 1_073_741_824.0), ("MiB", 1_048_576.0), ("KiB", 1_024.0)];
    let unit = units.iter().find(|(_, factor)| value.abs() >= *factor);
    unit.map_or_else(
        || format!("{} B", short(value)),
        |(unit, factor)| format!("{:.1} {unit}", value / factor),
    )
}

fn span(value: f64) -> String {
    let units = [("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];
    // Two of a unit at least: 90m says more than 1.5h.
    let unit = units.iter().find(|(_, factor)| value.abs() >= 2.0 * factor);
    unit.map_or_else(
        || format!("{} s", short(value)),
        |(unit, factor)| format!("{} {unit}", short(value / factor)),
    )
}

fn date(value: f64) -> String {
    let since =
        Duration::try_from_secs_f64(value).ok().and_then(|since| i64::try_from(since.as_millis()).ok());
    let date = |millis| Timestamp::from_millis(millis).to_string();
    since
        .map(date)
        .and_then(|date| date.get(..16).map(|date| date.replace('T', " ")))
        .unwrap_or_else(|| short(value))
}

/// Three digits, and no zeros behind the point that say nothing.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 | 100.0.. => 0,
        10.0.. => 1,
        0.1.. => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn numbers_are_written_as_people_do() {
        for (value, unit, expected) in [
            (0.0, "", "0"),
            (1.0, "", "1"),
            (0.42, "", "0.42"),
            (12_345.678, "", "12346"),
            (0.00012, "", "0.0001"),
            (0.25, "cores", "0.25 cores"),
            (1.5, "seconds per second", "1.5 cores"),
            (512.0, "bytes", "512 B"),
            (5_368_709_120.0, "bytes", "5.0 GiB"),
            (1_500_000.0, "bytes per second", "1.4 MiB/s"),
            (0.25, "seconds", "250 ms"),
            (5_400.0, "seconds", "90 m"),
            (31_536_000.0, "seconds", "365 d"),
            (-86_400.0 * 3.0, "seconds", "-3 d"),
        ] {
            assert_eq!(shown(value, unit, "x"), expected, "{value} {unit}");
        }
        assert_eq!(shown(1_796_065_837.0, "seconds", "rezus_node_boot_time_seconds"), "2026-11-30 19:10");
    }
}
