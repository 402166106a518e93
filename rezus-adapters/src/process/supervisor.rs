//! The supervisor: the process between the server and the program. It owns the program's output, outlives the server,
//! and ends the program when the server is gone.
//!
//! It reads a [`WireJob`] and then [`Control`]s from its standard input, whose end means that the server is gone. To its
//! standard output it writes [`FAILED`] and why the program cannot be started, or [`MOVED`] once it runs and whenever a
//! file has changed. Nobody has to read that.

use std::io::{self, BufRead as _, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;
use rezus_core::runs::SecretText;
use rezus_core::runs::executor::{Ending, Exit, Stopped};
use zeroize::Zeroizing;

use super::files::{ProcessRecord, RunFiles};
use super::identity::{Identity, MARK, Stat, all, boot_id};
use super::spawn;
use super::spool::Spool;
use super::wire::{Control, WireJob};

/// The program cannot be started; the reason follows.
pub(super) const FAILED: u8 = b'!';
/// The program runs, or a file has changed.
pub(super) const MOVED: u8 = b'.';

/// How long what a program has left behind is waited for, each in turn: its processes, and its output.
const PATIENCE: Duration = Duration::from_secs(10);

/// Executes one job, which is read from standard input, to its end.
///
/// A process of its own does nothing but this: the binary's hidden sub-command calls it before anything else.
pub fn supervise() -> ExitCode {
    match Supervisor::begin() {
        Ok(supervisor) => {
            supervisor.watch();
            ExitCode::SUCCESS
        }
        Err((what, error)) => {
            let mut message = vec![FAILED];
            message.extend_from_slice(format!("{what}: {error}").as_bytes());
            tell(&message);
            ExitCode::FAILURE
        }
    }
}

/// What comes to pass.
enum Message {
    Control(Control),
    ServerLost,
    /// The child has ended, and is not waited for yet.
    Exited,
}

struct Supervisor {
    job: WireJob,
    files: RunFiles,
    record: ProcessRecord,
    spool: Arc<Mutex<Spool>>,
    messages: Receiver<Message>,
    sender: Sender<Message>,
    running: Running,
    ends_at: Instant,
    /// Why it was interrupted, if it was.
    stopped: Option<Stopped>,
    /// When it is killed, if it was interrupted.
    kill_at: Option<Instant>,
    killed: bool,
}

/// One program.
struct Running {
    child: Child,
    group: Pid,
    /// Tells when all its output was read.
    drained: Receiver<()>,
}

type Failure = (&'static str, io::Error);

fn or<T, E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Result<T, Failure> {
    move |error| Err((what, error.into()))
}

impl Supervisor {
    fn begin() -> Result<Self, Failure> {
        detach().or_else(or("cannot set up the supervisor"))?;
        let mut input = io::BufReader::new(io::stdin());
        let mut line = Zeroizing::new(Vec::new());
        input.read_until(b'\n', &mut line).or_else(or("cannot read the job"))?;
        let mut job: WireJob = serde_json::from_slice(&line).or_else(or("cannot read the job"))?;
        drop(line);
        let files = RunFiles::at(job.folder.clone());
        let secrets: Vec<_> = std::mem::take(&mut job.secrets).iter().map(secret).collect();
        let spool =
            Spool::open(&files, job.stage, job.log_limit, &secrets).or_else(or("cannot open the log"))?;
        let spool = Arc::new(Mutex::new(spool));
        let mut record = ProcessRecord {
            boot_id: boot_id().or_else(or("cannot read the boot's ID"))?,
            supervisor: Some(own_identity().or_else(or("cannot read /proc"))?),
            child: None,
            step: 0,
            work_dir: job.work_dir.clone(),
            grace_millis: job.grace_millis,
        };
        let (sender, messages) = mpsc::channel();
        let running = run_step(&job, &files, &mut record, &spool, &sender)?;
        tell(&[MOVED]);
        let (to, into) = (sender.clone(), Arc::clone(&spool));
        thread::spawn(move || listen(input, &to, &into));
        let ends_at = Instant::now().checked_add(Duration::from_millis(job.timeout_millis));
        let far = Instant::now() + Duration::from_hours(24 * 365);
        Ok(Self {
            job,
            files,
            record,
            spool,
            messages,
            sender,
            running,
            ends_at: ends_at.unwrap_or(far),
            stopped: None,
            kill_at: None,
            killed: false,
        })
    }

    /// Executes the steps to the end and says how that was.
    fn watch(mut self) {
        let exit = loop {
            self.wait_for_exit();
            let exit = self.clear_away();
            let is_last = self.record.step + 1 >= self.job.steps.len();
            if exit != Exit::Code(0) || self.stopped.is_some() || is_last {
                break exit;
            }
            self.record.step += 1;
            match run_step(&self.job, &self.files, &mut self.record, &self.spool, &self.sender) {
                Ok(running) => self.running = running,
                Err((what, error)) => {
                    lock(&self.spool).note(&format!("rezus: {what}: {error}"));
                    // As a shell says it.
                    break Exit::Code(127);
                }
            }
        };
        lock(&self.spool).finish();
        let ending = Ending { exit, step: self.record.step, stopped: self.stopped, killed: self.killed };
        // Without it the server finds out itself that nothing runs any more.
        drop(self.files.write_ending(self.job.stage, &ending));
        tell(&[MOVED]);
    }

    /// Waits until the program has ended, and does meanwhile what is asked for.
    fn wait_for_exit(&mut self) {
        loop {
            let until = if self.stopped.is_none() { Some(self.ends_at) } else { self.kill_at };
            let message = match until {
                Some(until) => self.messages.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => self.messages.recv().map_err(RecvTimeoutError::from),
            };
            match message {
                Ok(Message::Exited) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Control(Control::Interrupt)) => self.interrupt(Stopped::Asked),
                Ok(Message::Control(Control::Kill)) => {
                    self.stopped.get_or_insert(Stopped::Asked);
                    self.kill();
                }
                Ok(Message::Control(Control::Secrets(_))) => {}
                Ok(Message::ServerLost) => self.interrupt(Stopped::ServerLost),
                Err(RecvTimeoutError::Timeout) if self.kill_at.is_some() => self.kill(),
                Err(RecvTimeoutError::Timeout) => self.interrupt(Stopped::TimedOut),
            }
        }
    }

    /// Once: at the second interrupt tofu no longer saves its state.
    fn interrupt(&mut self, why: Stopped) {
        if self.stopped.is_none() {
            self.stopped = Some(why);
            self.kill_at = Instant::now().checked_add(Duration::from_millis(self.job.grace_millis));
            self.signal(Signal::SIGINT);
        }
    }

    fn kill(&mut self) {
        self.kill_at = None;
        self.killed = true;
        self.signal(Signal::SIGKILL);
    }

    /// The number of a child that was not waited for is nobody else's.
    fn signal(&self, signal: Signal) {
        let _ = killpg(self.running.group, signal);
    }

    /// Ends all that the program has left running, and reads the rest of its output.
    fn clear_away(&mut self) -> Exit {
        self.signal(Signal::SIGKILL);
        let status = self.running.child.wait();
        let (done, swept) = mpsc::channel::<()>();
        thread::spawn(move || {
            sweep();
            drop(done);
        });
        // A process that even SIGKILL does not end hangs in the kernel.
        let _ = swept.recv_timeout(PATIENCE);
        let _ = self.running.drained.recv_timeout(PATIENCE);
        lock(&self.spool).end_program();
        status.map_or(Exit::Unknown, exit)
    }
}

/// Starts a step, and what watches it.
fn run_step(
    job: &WireJob,
    files: &RunFiles,
    record: &mut ProcessRecord,
    spool: &Arc<Mutex<Spool>>,
    sender: &Sender<Message>,
) -> Result<Running, Failure> {
    const RECORD: &str = "cannot write which processes there are";
    record.child = None;
    files.write_process(job.stage, record).or_else(or(RECORD))?;
    let (mut output, input) = io::pipe().or_else(or("cannot make a pipe"))?;
    let errors = input.try_clone().or_else(or("cannot make a pipe"))?;
    let cache = job.plugin_cache.as_deref();
    let mut command = spawn::command(&job.tool, &job.work_dir, &job.environment, cache, job.run_as);
    command.env(MARK, &job.mark).args(job.steps.get(record.step).into_iter().flatten());
    // One pipe for both keeps the order.
    command.stdout(input).stderr(errors);
    let child = command.spawn().or_else(or("cannot start the program"))?;
    // It holds the pipe's end that is written to.
    drop(command);
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    record.child = Identity::of(pid).ok();
    // The child is told by its mark too.
    drop(files.write_process(job.stage, record));

    let to = sender.clone();
    thread::spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(Pid::from_raw(pid)), flags) == Err(nix::Error::EINTR) {}
        // The supervisor listens to its end.
        drop(to.send(Message::Exited));
    });
    let (done, drained) = mpsc::channel::<()>();
    let spool = Arc::clone(spool);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    lock(&spool).push(&buffer[..count]);
                    tell(&[MOVED]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        drop(done);
    });
    Ok(Running { child, group: Pid::from_raw(pid), drained })
}

/// Hears what the server says until it is gone.
fn listen(mut input: io::BufReader<io::Stdin>, to: &Sender<Message>, spool: &Mutex<Spool>) {
    let mut line = Zeroizing::new(Vec::new());
    // A line that was cut off is of a server that is gone.
    while input.read_until(b'\n', &mut line).is_ok() && line.last() == Some(&b'\n') {
        match serde_json::from_slice(&line) {
            // At once: what is read next may have them.
            Ok(Control::Secrets(secrets)) => {
                let secrets: Vec<_> = secrets.iter().map(secret).collect();
                lock(spool).add_secrets(&secrets);
            }
            Ok(control) => drop(to.send(Message::Control(control))),
            Err(_) => {}
        }
        line = Zeroizing::new(Vec::new());
    }
    drop(to.send(Message::ServerLost));
}

/// Leaves the server's session, so that no signal meant for that comes here, and makes all orphans of the program this
/// process's children.
fn detach() -> io::Result<()> {
    close_inherited()?;
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        // Handled and not ignored: a program that is started inherits what is ignored.
        signal_hook::flag::register(signal_number(signal), Arc::new(AtomicBool::new(false)))?;
    }
    nix::unistd::setsid()?;
    nix::sys::prctl::set_child_subreaper(true)?;
    umask(Mode::from_bits_truncate(0o077));
    // What is in memory here, and in the program's, must not become a file.
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // Whether anybody reads it must not hold this process up.
    fcntl(io::stdout(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Closes what whoever started the server has left open, such as sockets or a lock: the program would hold them too.
fn close_inherited() -> io::Result<()> {
    let mut open: Vec<i32> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // One of them was the directory's, which is closed by now.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

#[expect(clippy::as_conversions, reason = "the number is what the enum stands for")]
const fn signal_number(signal: Signal) -> i32 {
    signal as i32
}

/// Ends and waits for all processes that the program has left: as it has ended, they are children of this one.
fn sweep() {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    while has_children() {
        let is_own = |pid: &i32| Stat::read(*pid).is_some_and(|stat| stat.parent == own);
        let children: Vec<_> = all().into_iter().filter(is_own).map(Pid::from_raw).collect();
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = kill(child, Signal::SIGKILL);
            while waitpid(child, None) == Err(nix::Error::EINTR) {}
        }
    }
}

/// Looking for them among all processes takes a while where there are many.
fn has_children() -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::All, flags) != Err(nix::Error::ECHILD)
}

fn own_identity() -> io::Result<Identity> {
    Identity::of(i32::try_from(std::process::id()).map_err(io::Error::other)?)
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

fn secret(text: &Zeroizing<String>) -> SecretText {
    SecretText::new(text.to_string())
}

fn lock(spool: &Mutex<Spool>) -> MutexGuard<'_, Spool> {
    spool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the server something, if it listens.
fn tell(bytes: &[u8]) {
    let _ = nix::unistd::write(io::stdout(), bytes);
}
