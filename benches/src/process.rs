//! Processes: the benchmark itself once more, for a piece of work that must have a process of its own; and programs
//! found by name.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Outcome;

/// The argument that makes a benchmark do one job and say one number.
const CHILD: &str = "--child";

/// Returns the job that this process was started for, and the file it is to be done with; `None` for the benchmark
/// proper.
pub fn child_job() -> Option<(String, PathBuf)> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next()? == CHILD).then_some(())?;
    Some((arguments.next()?, arguments.next()?.into()))
}

/// Runs this program once more for one job, and returns the number that it says last: nothing of what the benchmark did
/// before is in the memory of that process.
///
/// # Errors
///
/// When the process cannot be started, fails, or says no number.
pub fn ask_child(job: &str, file: &Path) -> Outcome<u64> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([OsStr::new(CHILD), OsStr::new(job), file.as_os_str()]).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("the process for {job} failed: {}", output.status).into());
    }
    let said = String::from_utf8(output.stdout)?;
    Ok(said.lines().last().unwrap_or_default().trim().parse()?)
}

/// Says the most memory that this process had, in KiB: the answer to [`ask_child`].
///
/// # Errors
///
/// When it cannot be told.
pub fn answer_peak() -> Outcome<()> {
    crate::say(&vm_kib(std::process::id(), "VmHWM")?.to_string());
    Ok(())
}

/// Returns a memory figure of a process in KiB: `VmHWM` is the most it had, `VmRSS` what it has.
///
/// # Errors
///
/// When there is no such process or figure.
pub fn vm_kib(process: u32, figure: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")).ok_or("no such figure")?;
    Ok(number.trim().parse()?)
}

/// Returns for how long this process's first thread has had a processor, however many others wanted it meanwhile.
///
/// # Errors
///
/// When the kernel does not say.
pub fn processor_time() -> Outcome<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos = text.split_whitespace().next().ok_or("no such figure")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Returns for how long all threads of a process have had processors, those that ended too, to a hundredth of a second.
///
/// # Errors
///
/// When there is no such process.
pub fn cpu_time(process: u32) -> Outcome<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may have anything in it; `utime` and `stime` are the 14th and 15th of all.
    let (_, rest) = text.rsplit_once(')').ok_or("no such figure")?;
    let mut ticks = 0;
    for figure in rest.split_whitespace().skip(11).take(2) {
        ticks += figure.parse::<u64>()?;
    }
    // The kernel tells them in hundredths of a second, whatever its own clock is (USER_HZ).
    Ok(Duration::from_millis(ticks * 10))
}

/// Finds a program by name where the shell would.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Returns the children of a process that were started with this argument.
///
/// # Errors
///
/// When the kernel does not say what there is.
pub fn children(parent: u32, argument: &str) -> Outcome<Vec<u32>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Ok(number) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // One that has ended meanwhile is none.
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{number}/{file}")).unwrap_or_default();
        let is_child = read("status")
            .lines()
            .any(|line| line.strip_prefix("PPid:").is_some_and(|text| text.trim().parse() == Ok(parent)));
        if is_child && read("cmdline").split('\0').any(|word| word == argument) {
            children.push(number);
        }
    }
    Ok(children)
}
