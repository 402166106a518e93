//! What steps do to texts: patterns, tables, units, and parts of texts.

use std::borrow::Cow;

use crate::declared::resource::Decimal;

/// A pattern in which `*` stands for any text; case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob(Vec<String>);

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        Self(pattern.split('*').map(str::to_lowercase).collect())
    }

    pub(super) fn fits(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let [first, middle @ ..] = self.0.as_slice() else {
            return false;
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        let [middle @ .., last] = middle else {
            return rest.is_empty();
        };
        for part in middle {
            let Some(at) = rest.find(part.as_str()) else {
                return false;
            };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
        rest.ends_with(last.as_str())
    }
}

/// A table of values; case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Role,
    Power,
    Own { entries: Vec<(String, String)>, other: Option<String> },
}

const CONTROL_PLANE: [&str; 8] =
    ["controlplane", "control-plane", "control_plane", "control", "master", "cp", "init", "server"];
const WORKER: [&str; 5] = ["worker", "workers", "node", "agent", "wk"];
const RUNNING: [&str; 8] = ["running", "active", "started", "on", "poweredon", "powered_on", "true", "up"];
const STOPPED: [&str; 16] = [
    "stopped",
    "off",
    "halted",
    "shutoff",
    "shut off",
    "stopped in place",
    "terminated",
    "shutdown",
    "poweredoff",
    "powered_off",
    "suspended",
    "paused",
    "inactive",
    "deallocated",
    "false",
    "down",
];
const CHANGING: [&str; 18] = [
    "changing",
    "starting",
    "stopping",
    "pending",
    "new",
    "provisioning",
    "queued",
    "building",
    "build",
    "rebooting",
    "reboot",
    "shutting-down",
    "staging",
    "suspending",
    "repairing",
    "migrating",
    "initializing",
    "resizing",
];

impl Table {
    pub(super) fn look_up(&self, text: &str) -> Option<&str> {
        let text = text.trim();
        let is_in = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
        match self {
            Self::Role if is_in(&CONTROL_PLANE) => Some("controlplane"),
            Self::Role if is_in(&WORKER) => Some("worker"),
            Self::Power if is_in(&RUNNING) => Some("running"),
            Self::Power if is_in(&STOPPED) => Some("stopped"),
            Self::Power if is_in(&CHANGING) => Some("changing"),
            Self::Role | Self::Power => None,
            Self::Own { entries, other } => {
                let lower = text.to_lowercase();
                let found = entries.iter().find(|(from, _)| *from == lower);
                found.map(|(_, to)| to.as_str()).or(other.as_deref())
            }
        }
    }
}

/// A unit of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The unit is `factor / 10^digits` MiB.
    factor: u128,
    digits: u32,
}

impl Unit {
    pub(super) fn named(name: &str) -> Option<Self> {
        // 1 / 2^20 is 5^20 / 10^20.
        const BYTE: u128 = 5_u128.pow(20);
        let (factor, digits) = match name.trim() {
            "b" | "B" | "byte" | "bytes" => (BYTE, 20),
            "KB" | "kB" => (BYTE, 17),
            "KiB" | "k" | "K" => (5_u128.pow(10), 10),
            "MB" => (BYTE, 14),
            "MiB" | "M" | "m" => (1, 0),
            "GB" => (BYTE, 11),
            "GiB" | "G" | "g" => (1 << 10, 0),
            "TB" => (BYTE, 8),
            "TiB" | "T" | "t" => (1 << 20, 0),
            _ => return None,
        };
        Some(Self { factor, digits })
    }

    /// Makes MiB of a number in this unit.
    pub(super) fn to_mib(self, number: &str) -> Option<String> {
        let (mantissa, scale) = exact(number)?;
        written(mantissa.checked_mul(self.factor)?, scale + self.digits)
    }
}

/// Multiplies two decimals that are not negative.
pub(super) fn product(left: &str, right: &str) -> Option<String> {
    let ((a, x), (b, y)) = (exact(left)?, exact(right)?);
    written(a.checked_mul(b)?, x + y)
}

fn exact(number: &str) -> Option<(u128, u32)> {
    let number = Decimal::parse(number.trim())?;
    let (whole, fraction) = number.as_str().split_once('.').unwrap_or((number.as_str(), ""));
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, u32::try_from(fraction.len()).ok()?))
}

fn written(mantissa: u128, scale: u32) -> Option<String> {
    Decimal::parse(&format!("{mantissa}e-{scale}")).map(|number| number.as_str().to_owned())
}

/// Returns the part behind the last separator; all of it if there is none.
pub(super) fn last<'t>(text: &'t str, separator: &str) -> &'t str {
    text.rsplit_once(separator).map_or(text, |(_, last)| last)
}

/// Returns the part before the first separator; all of it if there is none.
pub(super) fn before<'t>(text: &'t str, separator: &str) -> &'t str {
    text.split_once(separator).map_or(text, |(first, _)| first)
}

/// Returns the host of a URL or of `HOST:PORT`.
pub(super) fn url_host(text: &str) -> Option<&str> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some(bracketed) = host.strip_prefix('[') {
        return bracketed.split_once(']').map(|(host, _)| host).filter(|host| !host.is_empty());
    }
    let host = match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    };
    Some(host).filter(|host| !host.is_empty())
}

/// Splits `NAME:VALUE` or `NAME=VALUE`, at whichever comes first.
pub(super) fn pair(text: &str) -> Option<(&str, &str)> {
    text.split_once([':', '=']).map(|(name, value)| (name.trim(), value.trim()))
}

/// Returns the words of a text that lists tags.
pub(super) fn tags(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| matches!(c, ';' | ',') || c.is_whitespace()).filter(|tag| !tag.is_empty())
}

/// Decodes base64 (RFC 4648, either alphabet), white space passed over.
pub(super) fn base64(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for character in encoded.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let sextet = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => return None,
        };
        held = (held << 6) | u32::from(sextet);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
        held &= 0xff;
    }
    String::from_utf8(bytes).ok()
}

/// Tells whether a text counts as nothing.
pub(super) fn is_nothing(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.eq_ignore_ascii_case("dhcp")
}

/// Maps the inside of a borrowed or owned text.
pub(super) fn sliced<'t>(
    text: Cow<'t, str>,
    slice: impl for<'s> Fn(&'s str) -> Option<&'s str>,
) -> Option<Cow<'t, str>> {
    match text {
        Cow::Borrowed(text) => slice(text).map(Cow::Borrowed),
        Cow::Owned(text) => slice(&text).map(|part| Cow::Owned(part.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_texts() {
        let cases = [
            ("lo", "lo", true),
            ("lo", "lo0", false),
            ("cilium*", "CILIUM_host", true),
            ("*/hetznercloud/hcloud", "registry.opentofu.org/hetznercloud/hcloud", true),
            ("a*b*c", "aXbYc", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "x", false),
        ];
        for (pattern, text, fits) in cases {
            assert_eq!(Glob::new(pattern).fits(text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn units_are_exact() {
        let cases = [
            ("GiB", "1.5", Some("1536")),
            ("bytes", "8589934592", Some("8192")),
            ("KiB", "4194304", Some("4096")),
            ("MB", "1024", Some("976.5625")),
            ("GB", "2", Some("1907.3486328125")),
            ("MiB", "8.192e3", Some("8192")),
            ("TiB", "1", Some("1048576")),
            ("GiB", "-1", None),
            ("bytes", "99999999999999999999999999999999", None),
            ("GiB", "x", None),
        ];
        for (unit, number, expected) in cases {
            assert_eq!(Unit::named(unit).unwrap().to_mib(number).as_deref(), expected, "{number} {unit}");
        }
        assert_eq!(Unit::named("stone"), None);
        assert_eq!(product("2", "1.50").as_deref(), Some("3"));
    }

    #[test]
    fn parts_of_texts() {
        assert_eq!((last("a/b", "/"), last("a", "/"), before("a/b/c", "/")), ("b", "a", "a"));
        let hosts = [
            ("https://u@api.x.example:6443/p", Some("api.x.example")),
            ("https://[fd00::1]:6443", Some("fd00::1")),
            ("10.0.0.1:6443", Some("10.0.0.1")),
            ("fd00::1", Some("fd00::1")),
            ("https://", None),
        ];
        for (url, host) in hosts {
            assert_eq!(url_host(url), host, "{url}");
        }
        assert_eq!(pair("role = worker"), Some(("role", "worker")));
        assert_eq!(tags("a; b,c").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(base64("aGVs\nbG8=").as_deref(), Some("hello"));
        assert_eq!(base64("%"), None);
    }

    #[test]
    fn tables() {
        assert_eq!(Table::Role.look_up("Control-Plane"), Some("controlplane"));
        assert_eq!(Table::Role.look_up("bastion"), None);
        assert_eq!(Table::Power.look_up("SHUTOFF"), Some("stopped"));
        let own = Table::Own { entries: vec![("a".into(), "b".into())], other: Some("c".into()) };
        assert_eq!((own.look_up("A"), own.look_up("x")), (Some("b"), Some("c")));
    }
}
