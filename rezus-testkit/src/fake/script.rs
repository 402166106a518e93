//! What a program does when it is executed, as data.

use std::path::{Path, PathBuf};

use crate::recording::Tool;

/// A program that does this and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// What it does, one after the other. At the end it exits with 0.
    pub acts: Vec<Act>,
    /// What it does when it is interrupted.
    pub on_interrupt: OnInterrupt,
    /// Which of a job's steps this is, from 0: those before end well and say nothing. The last one where it is not
    /// said.
    pub step: Option<usize>,
}

/// One thing that a program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes to standard output.
    Say(Vec<u8>),
    /// Writes to standard error.
    Complain(Vec<u8>),
    /// Waits until the gate of this name is open.
    Wait(String),
    /// Exits.
    Exit(i32),
}

/// What a program does when it is interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupt {
    /// It is ended by the signal.
    #[default]
    Die,
    /// Nothing.
    Ignore,
    /// It writes something and exits.
    Exit {
        /// To standard output.
        says: Vec<u8>,
        /// The exit code.
        code: i32,
    },
}

impl Script {
    /// Writes lines, each with a line feed at its end.
    pub fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> Self {
        Self::default().say_lines(lines)
    }

    /// Writes what a real program wrote: the stream of this name under `recordings/`, without `.jsonl`.
    ///
    /// # Panics
    ///
    /// If there is none of this name.
    pub fn recorded(tool: Tool, name: &str) -> Self {
        let path = streams(tool).join(format!("{name}.jsonl"));
        Self::default().say(std::fs::read(path).expect("the stream was recorded"))
    }

    /// Then writes further lines.
    #[must_use]
    pub fn say_lines<S: AsRef<str>>(self, lines: impl IntoIterator<Item = S>) -> Self {
        lines.into_iter().fold(self, |script, line| script.say(format!("{}\n", line.as_ref())))
    }

    /// Then writes bytes.
    #[must_use]
    pub fn say(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Act::Say(bytes.into()))
    }

    /// Then writes bytes to standard error.
    #[must_use]
    pub fn complain(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Act::Complain(bytes.into()))
    }

    /// Then waits for a gate.
    #[must_use]
    pub fn wait(self, gate: &str) -> Self {
        self.then(Act::Wait(gate.to_owned()))
    }

    /// Then exits.
    #[must_use]
    pub fn exit(self, code: i32) -> Self {
        self.then(Act::Exit(code))
    }

    /// Says what it does when it is interrupted.
    #[must_use]
    pub fn on_interrupt(mut self, does: OnInterrupt) -> Self {
        self.on_interrupt = does;
        self
    }

    /// Says which of the job's steps this is.
    #[must_use]
    pub const fn in_step(mut self, step: usize) -> Self {
        self.step = Some(step);
        self
    }

    fn then(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }
}

/// Returns where the recorded streams of a program are.
pub fn streams(tool: Tool) -> PathBuf {
    let directory = match tool {
        Tool::OpenTofu => "opentofu-1.12.6",
        Tool::Terraform => "terraform-1.11.4",
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(directory).join("streams")
}
