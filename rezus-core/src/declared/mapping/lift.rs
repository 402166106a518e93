//! One named scalar out of a document that must not be shown.
//!
//! The document is a Talos machine configuration, in block-style YAML or in JSON. It is read line by line: no
//! anchors, no tags, nothing that a document could make expensive.

use super::text;
use crate::declared::json::{Cursor, Kind};

/// The scalars that may leave a document: none of them is a secret in any configuration that Talos takes.
const MAY_LEAVE: [&str; 7] = [
    "machine.type",
    "machine.install.image",
    "machine.network.hostname",
    "machine.kubelet.image",
    "cluster.clusterName",
    "cluster.controlPlane.endpoint",
    "cluster.apiServer.image",
];
/// How long a document may be.
const LONGEST_DOCUMENT: usize = 4 * 1024 * 1024;
/// How long the scalar may be.
const LONGEST_SCALAR: usize = 253;

/// What to lift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lift {
    is_base64: bool,
    path: Vec<String>,
}

impl Lift {
    pub(super) fn new(is_base64: bool, path: &str) -> Result<Self, String> {
        if !MAY_LEAVE.contains(&path) {
            return Err(format!("{path:?} may not be lifted: only {}", MAY_LEAVE.join(", ")));
        }
        Ok(Self { is_base64, path: path.split('.').map(str::to_owned).collect() })
    }

    /// Returns the scalar.
    pub(super) fn of(&self, document: &str) -> Option<String> {
        if document.len() > LONGEST_DOCUMENT {
            return None;
        }
        let decoded;
        let document = if self.is_base64 {
            decoded = text::base64(document)?;
            decoded.as_str()
        } else {
            document
        };
        let found =
            if document.trim_start().starts_with('{') { self.json(document) } else { self.yaml(document) };
        found.filter(|found| found.len() <= LONGEST_SCALAR && !found.contains(char::is_whitespace))
    }

    fn json(&self, document: &str) -> Option<String> {
        let mut cursor = Cursor::new(document);
        for name in &self.path {
            if cursor.peek().ok()? != Kind::Object {
                return None;
            }
            cursor.begin_object().ok()?;
            loop {
                if cursor.next_member().ok()??.decode() == name.as_str() {
                    break;
                }
                cursor.skip_value().ok()?;
            }
        }
        let kind = cursor.peek().ok()?;
        (kind == Kind::String).then(|| cursor.string().ok().map(|text| text.decode().into_owned()))?
    }

    fn yaml(&self, document: &str) -> Option<String> {
        // How far the lines of each mapping on the way are indented; the last one's is not known before its first.
        let mut indents = vec![Some(0)];
        for line in document.lines() {
            let body = line.trim_start_matches(' ');
            let indent = line.len() - body.len();
            if body.is_empty() || body.starts_with('#') {
                continue;
            }
            if indent == 0 && (body.starts_with("---") || body.starts_with("...")) {
                indents = vec![Some(0)];
                continue;
            }
            while indents.len() > 1 && indents.last().is_some_and(|at| at.is_some_and(|at| indent < at)) {
                indents.pop();
            }
            if let [.., Some(above), last @ None] = indents.as_mut_slice() {
                if indent <= *above {
                    indents.pop();
                } else {
                    *last = Some(indent);
                }
            }
            if indents.last() != Some(&Some(indent)) {
                continue;
            }
            let Some((name, value)) = entry(body) else { continue };
            if self.path.get(indents.len() - 1).map(String::as_str) != Some(name) {
                continue;
            }
            if indents.len() == self.path.len() {
                return scalar(value);
            }
            if scalar(value).is_none() && !value.starts_with(['|', '>', '{', '[', '&', '*', '!']) {
                indents.push(None);
            }
        }
        None
    }
}

/// Splits `name: value`; both may be quoted.
fn entry(line: &str) -> Option<(&str, &str)> {
    let quoted = line.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (name, rest) = match quoted.or_else(|| line.strip_prefix('\'').and_then(|rest| rest.split_once('\'')))
    {
        Some((name, rest)) => (name, rest.trim_start().strip_prefix(':')?),
        None => line.split_once(':')?,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some((name.trim_end(), rest.trim()))
}

/// Reads a scalar on one line.
fn scalar(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            let (text, _) = rest.split_once(quote)?;
            return (!text.contains('\\')).then(|| text.to_owned());
        }
    }
    let plain = value.split(" #").next().unwrap_or_default().trim();
    let is_plain =
        !plain.is_empty() && !plain.starts_with(['#', '|', '>', '{', '[', '&', '*', '!', '%', '@', '`']);
    is_plain.then(|| plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "version: v1alpha1 # a comment\nmachine:\n    files:\n        - content: |\n            machine:\n            type: worker\n    token: abc.def\n    # the role\n    type: \"controlplane\"\n    install:\n        image: factory.talos.dev/installer/x:v1.11.2\ncluster:\n    controlPlane:\n        endpoint: https://10.0.0.1:6443\n---\napiVersion: v1alpha1\nkind: HostnameConfig\n";

    fn lifted(path: &str, document: &str) -> Option<String> {
        Lift::new(false, path).unwrap().of(document)
    }

    #[test]
    fn scalars_are_found_in_yaml() {
        assert_eq!(lifted("machine.type", DOCUMENT).as_deref(), Some("controlplane"));
        assert_eq!(
            lifted("machine.install.image", DOCUMENT).as_deref(),
            Some("factory.talos.dev/installer/x:v1.11.2")
        );
        assert_eq!(
            lifted("cluster.controlPlane.endpoint", DOCUMENT).as_deref(),
            Some("https://10.0.0.1:6443")
        );
        assert_eq!(lifted("cluster.clusterName", DOCUMENT), None);
        let quoted = "\"machine\":\n  \"ca\":\n    \"key\": \"x\"\n  \"type\": \"worker\"\n";
        assert_eq!(lifted("machine.type", quoted).as_deref(), Some("worker"));
    }

    #[test]
    fn scalars_are_found_in_json_and_base64() {
        let json = r#"{"machine":{"ca":{"type":1},"type":"worker"}}"#;
        assert_eq!(lifted("machine.type", json).as_deref(), Some("worker"));
        let lift = Lift::new(true, "machine.type").unwrap();
        assert_eq!(lift.of("bWFjaGluZToKICB0eXBlOiB3b3JrZXIK").as_deref(), Some("worker"));
        assert_eq!(lift.of("%%%"), None);
    }

    #[test]
    fn only_what_is_harmless_may_leave() {
        assert!(Lift::new(false, "machine.token").is_err());
        for odd in [
            "",
            "machine",
            "machine: {type: worker}",
            "machine:\ntype: worker",
            "{\"machine\":",
            "a: |\n  machine:\n   type: x",
        ] {
            assert_eq!(lifted("machine.type", odd), None, "{odd}");
        }
    }
}
