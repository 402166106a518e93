//! Jobs that are executed: one task each, which holds the supervisor's pipes, or waits for the end of a job that an
//! earlier server began.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use rezus_core::runs::Stage;
use rezus_core::runs::executor::{Ending, ExecutorError, Exit, Stopped};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use super::files::{ProcessRecord, RunFiles, blocking, system};
use super::identity::{MARK, boot_id, marked};
use super::leftovers::end_leftovers;
use super::wire::{Control, WireJob, to_line};
use super::{ProcessConfig, supervisor};

/// How often a job that another process watches is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long a reason may be, in bytes.
const REASON: u64 = 4 << 10;

/// How far a job is.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The end, once it is known.
    pub(super) ended: Option<Ending>,
}

/// A job that is executed, or was.
#[derive(Debug)]
pub(super) struct Watch {
    controls: mpsc::UnboundedSender<Control>,
    progress: watch::Receiver<Progress>,
    was_asked: AtomicBool,
}

/// The ends that the job's task holds.
pub(super) struct TaskEnds {
    controls: mpsc::UnboundedReceiver<Control>,
    progress: watch::Sender<Progress>,
}

/// A supervisor whose program runs.
pub(super) struct Started {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Watch {
    pub(super) fn new() -> (Self, TaskEnds) {
        let (to_task, controls) = mpsc::unbounded_channel();
        let (progress, seen) = watch::channel(Progress::default());
        let watch = Self { controls: to_task, progress: seen, was_asked: AtomicBool::new(false) };
        (watch, TaskEnds { controls, progress })
    }

    /// One of a job that has ended.
    pub(super) fn ended(ending: Ending) -> Self {
        let (watch, ends) = Self::new();
        ends.progress.send_replace(Progress { ended: Some(ending) });
        watch
    }

    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.progress.borrow().ended.is_some()
    }

    /// Hands on what is to be done; a job that has ended has no use for it.
    pub(super) fn control(&self, control: Control) {
        if !matches!(control, Control::Secrets(_)) {
            self.was_asked.store(true, Ordering::Relaxed);
        }
        drop(self.controls.send(control));
    }

    fn why_stopped(&self, otherwise: Option<Stopped>) -> Option<Stopped> {
        if self.was_asked.load(Ordering::Relaxed) { Some(Stopped::Asked) } else { otherwise }
    }
}

/// Starts a supervisor, hands it its job, and waits until the program runs.
pub(super) async fn start(config: &ProcessConfig, job: WireJob) -> Result<Started, ExecutorError> {
    let refused = system("start the supervisor");
    let (program, arguments) = config
        .supervisor
        .split_first()
        .ok_or_else(|| refused(std::io::Error::other("no program is configured")))?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .env(MARK, &job.mark)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(&refused)?;
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(refused(std::io::Error::other("it has no pipes")));
    };
    let line = to_line(&job).map_err(|error| refused(error.into()))?;
    drop(job);
    // One that has ended says why.
    drop(input.write_all(&line).await);
    let mut first = [0];
    if output.read(&mut first).await.map_err(&refused)? == 1 && first == [supervisor::MOVED] {
        return Ok(Started { child, input, output });
    }
    let mut reason = Vec::new();
    output.take(REASON).read_to_end(&mut reason).await.map_err(&refused)?;
    let status = child.wait().await.map_err(&refused)?;
    let reason = match (first, status.signal()) {
        ([supervisor::FAILED], _) => String::from_utf8_lossy(&reason).into_owned(),
        (_, Some(signal)) => format!("the supervisor was ended by signal {signal}"),
        (_, None) => format!("the supervisor did not begin ({status})"),
    };
    Err(system("start the program")(std::io::Error::other(reason)))
}

/// Follows a job that this process has started, to its end.
pub(super) async fn follow(started: Started, files: RunFiles, stage: Stage, watch: &Watch, ends: TaskEnds) {
    let Started { mut child, mut input, mut output } = started;
    let TaskEnds { mut controls, progress } = ends;
    let writing = tokio::spawn(async move {
        while let Some(control) = controls.recv().await {
            let Ok(line) = to_line(&control) else { continue };
            if input.write_all(&line).await.is_err() {
                break;
            }
        }
        // The end of this pipe tells the supervisor that the server is gone: it stays open until nobody reads it.
        std::future::pending::<()>().await;
    });
    // Dropped with this task too: a runtime that ends must not leave the pipe open.
    let writing = AbortOnDrop(writing);
    let mut buffer = [0; 4096];
    while matches!(output.read(&mut buffer).await, Ok(1..)) {
        progress.send_modify(|_| {});
    }
    // Nobody but the supervisor has the other end: it is gone. What it was, its files say.
    drop(child.wait().await);
    drop(writing);
    let ending = match read_ending(&files, stage).await {
        Some(ending) => ending,
        None => end_leftovers(&files, stage, watch.why_stopped(None)).await,
    };
    progress.send_replace(Progress { ended: Some(ending) });
}

/// Follows a job that an earlier server has started. Its supervisor interrupts it by itself.
pub(super) async fn follow_found(files: RunFiles, stage: Stage, watch: &Watch, ends: TaskEnds) {
    let TaskEnds { mut controls, progress } = ends;
    let mut looks = tokio::time::interval(LOOK);
    let ending = loop {
        tokio::select! {
            _ = looks.tick() => {}
            Some(control) = controls.recv() => if matches!(control, Control::Kill) {
                kill_child(&files, stage).await;
            }
        }
        // In this order: it writes its ending while it lives.
        let lives = lives(&files, stage).await;
        if let Some(ending) = read_ending(&files, stage).await {
            break ending;
        }
        if !lives {
            break end_leftovers(&files, stage, watch.why_stopped(Some(Stopped::ServerLost))).await;
        }
        progress.send_modify(|_| {});
    };
    progress.send_replace(Progress { ended: Some(ending) });
}

/// Ends a task when it is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads an ending. One that cannot be read is none: then nobody knows how it was.
async fn read_ending(files: &RunFiles, stage: Stage) -> Option<Ending> {
    let files = files.clone();
    let read = move || Ok(files.read_ending(stage).ok().flatten());
    blocking(read).await.ok().flatten()
}

/// Tells whether a job's supervisor is at work.
async fn lives(files: &RunFiles, stage: Stage) -> bool {
    let files = files.clone();
    let look = move || {
        let Ok(Some(record)) = files.read_process(stage) else {
            return Ok(false);
        };
        if !is_of_this_boot(&record) {
            return Ok(false);
        }
        Ok(match record.supervisor {
            Some(supervisor) => supervisor.is_alive(),
            // Started, and not yet so far that it has written its number: it bears the mark.
            None => !marked(&mark_of(&files)).is_empty(),
        })
    };
    blocking(look).await.unwrap_or(false)
}

async fn kill_child(files: &RunFiles, stage: Stage) {
    let files = files.clone();
    let kill = move || {
        if let Ok(Some(ProcessRecord { child: Some(child), boot_id: boot, .. })) = files.read_process(stage)
            && boot_id().is_ok_and(|id| id == boot)
        {
            child.signal_group(Signal::SIGKILL);
        }
        Ok(())
    };
    // What cannot be killed now is killed after its grace.
    drop(blocking(kill).await);
}

/// Tells whether the machine was not started anew since.
pub(super) fn is_of_this_boot(record: &ProcessRecord) -> bool {
    boot_id().is_ok_and(|id| id == record.boot_id)
}

/// The mark of a run, by its folder.
pub(super) fn mark_of(files: &RunFiles) -> String {
    let name = |part: Option<&std::path::Path>| {
        part.and_then(std::path::Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    format!("{}/{}", name(files.path().parent()), name(Some(files.path())))
}

/// An ending that nobody saw.
pub(super) const fn unseen(step: usize, stopped: Option<Stopped>, killed: bool) -> Ending {
    Ending { exit: Exit::Unknown, step, stopped, killed }
}
