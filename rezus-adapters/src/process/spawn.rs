//! How the program is started: with an environment of its own, as leader of a process group, and as whoever it is to
//! be.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use zeroize::Zeroizing;

/// What the program sees beside the environment it is given: nobody answers questions, and nobody is told of it.
const OWN: [(&str, &str); 3] = [("TF_IN_AUTOMATION", "1"), ("TF_INPUT", "0"), ("CHECKPOINT_DISABLE", "1")];

/// A command with exactly this environment and what rezus adds of its own, which the former overrides.
pub(super) fn command(
    tool: &Path,
    work_dir: &Path,
    environment: &BTreeMap<String, Zeroizing<String>>,
    plugin_cache: Option<&Path>,
    run_as: Option<(u32, u32)>,
) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(work_dir).env_clear().envs(OWN);
    if let Some(cache) = plugin_cache {
        command.env("TF_PLUGIN_CACHE_DIR", cache);
    }
    command.envs(environment.iter().map(|(name, value)| (name.as_str(), OsStr::new(value.as_str()))));
    if let Some((uid, gid)) = run_as {
        command.uid(uid).gid(gid);
    }
    command.process_group(0).stdin(Stdio::null());
    command
}
