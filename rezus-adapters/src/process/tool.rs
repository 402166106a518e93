//! Finds tofu or terraform, and asks which version it is.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rezus_core::runs::executor::{ExecutorError, Tool, ToolKind};

use super::files::{blocking, system};
use super::query;
use super::spawn;

/// The first release of OpenTofu.
pub const OLDEST_TOFU: [u64; 3] = [1, 6, 0];
/// The first Terraform of those that are tried: `-json` of plan and apply, `-refresh-only`, and `TF_HTTP_*` as tofu has
/// them.
pub const OLDEST_TERRAFORM: [u64; 3] = [1, 3, 0];

const TIMEOUT: Duration = Duration::from_secs(30);
const LIMIT: usize = 64 << 10;

/// What was found out about programs, by path; asked again when a file was changed.
#[derive(Debug, Default)]
pub(super) struct Tools(Mutex<HashMap<PathBuf, (Option<SystemTime>, Tool)>>);

impl Tools {
    /// See [`TofuExecutor::tool`](rezus_core::runs::executor::TofuExecutor::tool).
    pub(super) async fn find(&self, named: Option<PathBuf>) -> Result<Tool, ExecutorError> {
        let (path, changed) = blocking(move || locate(named)).await?;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
        if let Some((then, tool)) = known
            && then == changed
        {
            return Ok(tool);
        }
        let tool = ask(path.clone()).await?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(path, (changed, tool.clone()));
        Ok(tool)
    }
}

/// The program's path, and when it was changed.
fn locate(named: Option<PathBuf>) -> Result<(PathBuf, Option<SystemTime>), ExecutorError> {
    let changed = |path: &Path| path.metadata().ok().and_then(|it| it.modified().ok());
    if let Some(named) = named {
        // It works in another directory than the server.
        let path = std::path::absolute(&named).map_err(system("find the working directory"))?;
        if !is_program(&path) {
            let path = path.display();
            return Err(ExecutorError::NoTool(format!("{path} is no program that can be executed")));
        }
        let changed = changed(&path);
        return Ok((path, changed));
    }
    let search = env::var_os("PATH").unwrap_or_default();
    for kind in [ToolKind::Tofu, ToolKind::Terraform] {
        let in_folder = |folder: PathBuf| std::path::absolute(folder.join(kind.as_str())).ok();
        if let Some(path) = env::split_paths(&search).filter_map(in_folder).find(|path| is_program(path)) {
            let changed = changed(&path);
            return Ok((path, changed));
        }
    }
    Err(ExecutorError::NoTool(
        "neither tofu nor terraform is on the server's PATH: install one, or name its path".to_owned(),
    ))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Asks in plain text: in JSON both programs say the same.
async fn ask(path: PathBuf) -> Result<Tool, ExecutorError> {
    let shown = path.display().to_string();
    let mut command = spawn::command(&path, Path::new("/"), &BTreeMap::new(), None, None);
    command.arg("version");
    let answer = query::run(command, TIMEOUT, LIMIT).await.map_err(|error| match error {
        ExecutorError::TimedOut => ExecutorError::NoTool(format!("{shown} did not say its version in time")),
        ExecutorError::System { source, .. } if source.kind() != io::ErrorKind::WouldBlock => {
            ExecutorError::NoTool(format!("{shown} cannot be executed: {source}"))
        }
        other => other,
    })?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let Some((kind, version)) = text.lines().find_map(read_version) else {
        let message = format!("{shown} is neither tofu nor terraform: `version` does not say so");
        return Err(ExecutorError::NoTool(message));
    };
    let oldest = match kind {
        ToolKind::Tofu => OLDEST_TOFU,
        ToolKind::Terraform => OLDEST_TERRAFORM,
    };
    if numbers(version).is_none_or(|numbers| numbers < oldest) {
        let [major, minor, patch] = oldest;
        return Err(ExecutorError::NoTool(format!(
            "{shown} is {} {version}: {major}.{minor}.{patch} is the oldest that can be used",
            kind.as_str()
        )));
    }
    Ok(Tool { path, kind, version: version.to_owned() })
}

fn read_version(line: &str) -> Option<(ToolKind, &str)> {
    let (name, version) = line.trim_end().split_once(" v")?;
    match name {
        "OpenTofu" => Some((ToolKind::Tofu, version)),
        "Terraform" => Some((ToolKind::Terraform, version)),
        _ => None,
    }
}

/// The three numbers of a version; what comes before a release is taken for it.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let release = version.split(['-', '+']).next()?;
    let mut numbers = release.split('.').map(str::parse);
    let all = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
    if numbers.next().is_some() { None } else { Some(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_say_who_they_are() {
        assert_eq!(read_version("OpenTofu v1.12.6"), Some((ToolKind::Tofu, "1.12.6")));
        assert_eq!(read_version("Terraform v1.11.4"), Some((ToolKind::Terraform, "1.11.4")));
        assert_eq!(read_version("GNU bash v5"), None);
        assert_eq!(numbers("1.10.0-beta1"), Some([1, 10, 0]));
        assert!(numbers("1.10.0").unwrap() > OLDEST_TOFU && numbers("1.5.7").unwrap() < OLDEST_TOFU);
        assert_eq!(numbers("1.10"), None);
        assert_eq!(numbers("1.2.3.4"), None);
    }
}
