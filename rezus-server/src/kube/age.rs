//! Ages as Kubernetes prints them in tables (`duration.HumanDuration`).

use rezus_core::base::Timestamp;

/// How long before `now` something was, in two units at most.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_millis() - since.as_millis()).div_euclid(1_000);
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |first: i64, unit: &str, second: i64, smaller: &str| match second {
        0 => format!("{first}{unit}"),
        second => format!("{first}{unit}{second}{smaller}"),
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        two(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else if days < 2_920 {
        two(years, "y", days % 365, "d")
    } else {
        format!("{years}y")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubernetes() {
        let (minute, hour, day) = (60, 3_600, 86_400);
        for (seconds, shown) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (37, "37s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (7 * minute + 31, "7m31s"),
            (10 * minute - 1, "9m59s"),
            (10 * minute, "10m"),
            (129 * minute, "129m"),
            (3 * hour, "3h"),
            (6 * hour - minute, "5h59m"),
            (8 * hour, "8h"),
            (26 * hour, "26h"),
            (48 * hour, "2d"),
            (3 * day + 4 * hour, "3d4h"),
            (8 * day, "8d"),
            (80 * day, "80d"),
            (730 * day, "2y"),
            (3 * 365 * day + 20 * day, "3y20d"),
            (9 * 365 * day, "9y"),
        ] {
            let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
            assert_eq!(age(at(1_000_000_000), at(1_000_000_000 + seconds)), shown, "{seconds}");
        }
    }
}
