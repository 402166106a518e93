//! Finds out where a configuration keeps its state: that must be here, or nowhere else.

use std::fs;
use std::path::Path;

use rezus_core::runs::executor::ExecutorError;
use serde_json::Value;

use super::files::system;
use super::tree::refuse;

/// Refuses a configuration whose root has another backend than `http`, or nothing that tofu reads. What cannot be read
/// here is left to tofu to complain about: it says where and why.
pub(super) fn check(folder: &Path, paths: &[String]) -> Result<(), ExecutorError> {
    let at_root = || paths.iter().filter(|path| !path.contains('/'));
    let ends_in = |path: &str, kinds: [&str; 2]| kinds.iter().any(|kind| path.ends_with(kind));
    let is_hcl = |path: &str| ends_in(path, [".tf", ".tofu"]);
    let is_json = |path: &str| ends_in(path, [".tf.json", ".tofu.json"]);
    if !at_root().any(|path| is_hcl(path) || is_json(path)) {
        return Err(refuse("it has no .tf, .tofu or .tf.json file at its root".to_owned()));
    }
    for path in at_root().filter(|path| is_hcl(path) || is_json(path)) {
        let text = fs::read(folder.join(path)).map_err(system("read a configuration"))?;
        let found = if is_json(path) { in_json(&text) } else { in_hcl(&text) };
        if let Some(kind) = found.into_iter().find(|kind| kind != "backend \"http\"") {
            return Err(refuse(format!(
                "{path} has a {kind} block, but rezus keeps this tenant's state: remove the block, or make it `backend \"http\" {{}}`"
            )));
        }
    }
    Ok(())
}

fn in_hcl(text: &[u8]) -> Vec<String> {
    let Some(body) = std::str::from_utf8(text).ok().and_then(|text| hcl_edit::parser::parse_body(text).ok())
    else {
        return Vec::new();
    };
    let terraform = body.get_blocks("terraform");
    let inner = terraform.flat_map(|block| block.body.blocks());
    inner
        .filter_map(|block| match block.ident.as_str() {
            "cloud" => Some("cloud".to_owned()),
            "backend" => block.labels.first().map(|label| backend(label.as_str())),
            _ => None,
        })
        .collect()
}

/// In JSON, a block is an object, or a list of them.
fn in_json(text: &[u8]) -> Vec<String> {
    let Ok(whole) = serde_json::from_slice::<Value>(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in each(&whole) {
        for terraform in file.get("terraform").into_iter().flat_map(each) {
            for backends in terraform.get("backend").into_iter().flat_map(each) {
                found.extend(backends.as_object().into_iter().flatten().map(|(kind, _)| backend(kind)));
            }
            if terraform.get("cloud").is_some_and(|cloud| !cloud.is_null()) {
                found.push("cloud".to_owned());
            }
        }
    }
    found
}

fn each(value: &Value) -> &[Value] {
    value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice)
}

fn backend(kind: &str) -> String {
    format!("backend \"{kind}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_however_they_are_written() {
        let hcl = |text: &str| in_hcl(text.as_bytes());
        assert_eq!(hcl("terraform {\n  backend \"s3\" {\n    key = \"x\"\n  }\n}\n"), ["backend \"s3\""]);
        assert_eq!(
            hcl("terraform {\n cloud {\n }\n}\nterraform {\n backend http {}\n}\n"),
            ["cloud", "backend \"http\""]
        );
        assert!(hcl("# terraform { backend \"s3\" {} }\nresource \"a\" \"backend\" {}\n").is_empty());
        assert!(
            hcl("variable \"a\" {\n  default = <<EOT\nterraform {\n  backend \"s3\" {}\n}\nEOT\n}\n")
                .is_empty()
        );
        assert!(hcl("terraform { required_version = \">= 1.6\" }\n").is_empty());
        assert!(hcl("terraform {").is_empty());
        let json = |text: &str| in_json(text.as_bytes());
        assert_eq!(json(r#"{"terraform": {"backend": {"s3": {}}}}"#), ["backend \"s3\""]);
        assert_eq!(
            json(r#"{"terraform": [{"backend": [{"gcs": {}}]}, {"cloud": {}}]}"#),
            ["backend \"gcs\"", "cloud"]
        );
        assert!(json("{").is_empty() && json("{}").is_empty() && json("[1]").is_empty());
    }
}
