//! A program that says what a real tofu was recorded to say.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rezus_core::declared::Fingerprint;
use serde_json::Value;
use tempfile::TempDir;

use crate::lock;

/// It works on the state as a real one does. What it says lies beside it: of a pull, by the state that the server has
/// and the key that it was given.
const SCRIPT: &str = r#"#!/bin/sh
set -eu
here=$(dirname "$0")
send() {
  printf 'user = "%s:%s"\n' "$TF_HTTP_USERNAME" "$TF_HTTP_PASSWORD" |
    curl --config - --silent --show-error --fail --noproxy '*' "$@"
}
digest() { sha256sum | cut -c 1-64; }
case "$1" in
version)
  echo 'OpenTofu v1.12.6'
  ;;
init)
  echo '{"@level":"info","@message":"Initializing the backend..."}'
  ;;
state)
  state=$(send "$TF_HTTP_ADDRESS" | digest)
  key=$(printf %s "${TF_ENCRYPTION-}" | digest)
  answer="$here/$state.$key"
  cat "$answer.stdout"
  cat "$answer.stderr" >&2
  exit "$(cat "$answer.exit")"
  ;;
plan)
  for word; do
    case "$word" in -out=*) cp "$here/plan" "${word#-out=}" ;; esac
  done
  cat "$here/said"
  cat "$here/changes"
  exit 2
  ;;
show)
  cat "$here/shown"
  ;;
apply)
  send -X LOCK --data-binary "@$here/lock" "$TF_HTTP_LOCK_ADDRESS"
  cat "$here/said"
  send -H 'content-type: application/json' --data-binary "@$here/next" "$TF_HTTP_ADDRESS?ID=scripted"
  send -X UNLOCK --data-binary "@$here/lock" "$TF_HTTP_UNLOCK_ADDRESS"
  ;;
*)
  exit 99
  ;;
esac
"#;

/// A program that says what it is told to.
#[derive(Debug)]
pub(super) struct ScriptedTofu(TempDir);

impl ScriptedTofu {
    pub(super) fn new() -> Self {
        let script = Self(TempDir::new().unwrap());
        script.put("tofu", SCRIPT);
        std::fs::set_permissions(script.program(), std::fs::Permissions::from_mode(0o755)).unwrap();
        script.put("lock", lock::info("scripted", lock::APPLY));
        script
    }

    pub(super) fn program(&self) -> PathBuf {
        self.0.path().join("tofu")
    }

    /// Where it and what it says is.
    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.0.path().join(name), content).unwrap();
    }

    /// Has a pull of this state with this key say so.
    pub(super) fn pulls(&self, state: &str, key: &str, exit: i64, stdout: &str, stderr: &str) {
        let digest = |text: &str| Fingerprint::of(text.as_bytes()).sha256_hex();
        let name = format!("{}.{}", digest(state), digest(key.trim_end()));
        self.put(&format!("{name}.stdout"), stdout);
        self.put(&format!("{name}.stderr"), stderr);
        self.put(&format!("{name}.exit"), exit.to_string());
    }

    /// Has a pull say what it was recorded to say.
    pub(super) fn pulls_as(&self, step: &Value) {
        let text = |member: &str| step[member].as_str().unwrap_or_default();
        let exit = step["exit"].as_i64().unwrap();
        let state = text("state in the backend afterwards");
        self.pulls(state, text("TF_ENCRYPTION"), exit, text("stdout"), text("stderr"));
    }

    /// Has plans be these bytes, that change this, which `show -json` shows so.
    pub(super) fn plans(&self, plan: &[u8], changes: &str, shown: &str) {
        self.put("plan", plan);
        self.put("changes", changes);
        self.put("shown", shown);
    }

    /// Has plans and applies say this.
    pub(super) fn says(&self, text: &str) {
        self.put("said", text);
    }

    /// Has the next apply leave this state.
    pub(super) fn leaves(&self, state: &str) {
        self.put("next", state);
    }
}
