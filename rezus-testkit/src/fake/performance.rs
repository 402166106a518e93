//! A script that is carried out.

use std::sync::Arc;
use std::time::Duration;

use rezus_core::runs::Redactor;
use rezus_core::runs::executor::{Ending, Exit, Job, Stopped};
use rezus_core::runs::stream::{self, Event};
use tokio::sync::watch;
use tokio::time::Instant;

use super::executor::Shared;
use super::{Act, OnInterrupt, Script};

/// What a program was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    GoOn,
    /// To end.
    Interrupt(Stopped),
    /// It is killed.
    Kill,
    /// It is killed, and nobody sees it.
    Lose,
}

impl Order {
    /// Takes a further order, if it says more than the one before; tells whether it does.
    pub(super) const fn raise(&mut self, order: Self) -> bool {
        let says_more = match (*self, order) {
            (_, Self::GoOn) | (Self::Interrupt(_), Self::Interrupt(_)) | (Self::Kill | Self::Lose, _) => {
                false
            }
            (Self::GoOn | Self::Interrupt(_), _) => true,
        };
        if says_more {
            *self = order;
        }
        says_more
    }
}

/// A job under way.
pub(super) struct Performance {
    shared: Arc<Shared>,
    job: Job,
    orders: watch::Receiver<Order>,
    changed: watch::Receiver<u64>,
    /// The line that has not ended yet.
    line: Vec<u8>,
    cut: u64,
}

/// How a program ended.
struct End {
    exit: Exit,
    stopped: Option<Stopped>,
    killed: bool,
}

impl Performance {
    pub(super) fn new(shared: Arc<Shared>, job: Job, orders: watch::Receiver<Order>) -> Self {
        let changed = shared.changed.subscribe();
        Self { shared, job, orders, changed, line: Vec::new(), cut: 0 }
    }

    /// Does what the script says, to the end.
    pub(super) async fn perform(mut self, script: Script) {
        let end = self.act(&script).await;
        if !self.line.is_empty() {
            self.say(b"\n");
        }
        if self.cut > 0 {
            let note = format!("rezus: {} more bytes were written than this log may hold\n", self.cut);
            self.shared.change(|state| {
                if let Some(run) = state.runs.get_mut(&self.job.id) {
                    run.log.extend_from_slice(note.as_bytes());
                }
            });
        }
        let step = script.step.unwrap_or(self.job.steps.len() - 1);
        let End { exit, stopped, killed } = end;
        self.shared.change(|state| {
            let run = state.runs.get_mut(&self.job.id);
            if let Some(stage) = run.and_then(|run| run.stages.get_mut(&self.job.stage)) {
                stage.ended = Some(Ending { exit, step, stopped, killed });
            }
        });
    }

    async fn act(&mut self, script: &Script) -> End {
        let ends_at = Instant::now() + self.job.timeout.min(Duration::from_hours(24 * 365));
        for act in &script.acts {
            match act {
                Act::Say(bytes) | Act::Complain(bytes) => self.say(bytes),
                Act::Exit(code) => return End { exit: Exit::Code(*code), stopped: None, killed: false },
                Act::Wait(gate) => {
                    let order = tokio::select! {
                        () = opened(&self.shared, &mut self.changed, gate) => continue,
                        order = told(&mut self.orders, Order::GoOn) => order,
                        () = tokio::time::sleep_until(ends_at) => Order::Interrupt(Stopped::TimedOut),
                    };
                    if let Some(end) = self.obey(script, order, gate).await {
                        return end;
                    }
                }
            }
        }
        End { exit: Exit::Code(0), stopped: None, killed: false }
    }

    /// Does as it is told. `None` where that is nothing, and the gate was opened.
    async fn obey(&mut self, script: &Script, order: Order, gate: &str) -> Option<End> {
        let killed = |stopped| End { exit: Exit::Signal(9), stopped: Some(stopped), killed: true };
        let stopped = match order {
            Order::GoOn => return None,
            Order::Interrupt(stopped) => stopped,
            Order::Kill => return Some(killed(Stopped::Asked)),
            Order::Lose => return Some(End { exit: Exit::Unknown, stopped: None, killed: false }),
        };
        match &script.on_interrupt {
            OnInterrupt::Die => Some(End { exit: Exit::Signal(2), stopped: Some(stopped), killed: false }),
            OnInterrupt::Exit { says, code } => {
                self.say(says);
                Some(End { exit: Exit::Code(*code), stopped: Some(stopped), killed: false })
            }
            OnInterrupt::Ignore => {
                let seen = *self.orders.borrow();
                tokio::select! {
                    () = opened(&self.shared, &mut self.changed, gate) => {
                        Some(End { exit: Exit::Code(0), stopped: Some(stopped), killed: false })
                    }
                    order = told(&mut self.orders, seen) => match order {
                        Order::Lose => Some(End { exit: Exit::Unknown, stopped: None, killed: true }),
                        _ => Some(killed(stopped)),
                    },
                    () = tokio::time::sleep(self.job.grace) => Some(killed(stopped)),
                }
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        let (shared, job) = (Arc::clone(&self.shared), &self.job);
        shared.change(|state| {
            let Some(run) = state.runs.get_mut(&job.id) else {
                return;
            };
            let Some(stage) = run.stages.get_mut(&job.stage) else {
                return;
            };
            let mut redactor = Redactor::new(&stage.secrets);
            for byte in bytes {
                if *byte != b'\n' {
                    self.line.push(*byte);
                    continue;
                }
                let line = std::mem::take(&mut self.line);
                let mut shown = Vec::new();
                let as_text = std::str::from_utf8(&line).ok();
                if let Some((line, event)) = as_text.and_then(|line| Some((line, stream::parse(line)?))) {
                    let mut text = String::new();
                    stream::render(line, &mut text);
                    shown.extend(redactor.redact(&text).into_bytes());
                    if event != Event::Other {
                        stage.events.push(event.redacted(&redactor));
                    }
                } else {
                    redactor.push(&line, &mut shown);
                    redactor.finish(&mut shown);
                    shown.push(b'\n');
                }
                let room = usize::try_from(job.log_limit).unwrap_or(usize::MAX).saturating_sub(run.log.len());
                let kept = shown.len().min(room);
                run.log.extend_from_slice(&shown[..kept]);
                self.cut += u64::try_from(shown.len() - kept).unwrap_or(0);
            }
        });
    }
}

async fn opened(shared: &Shared, changed: &mut watch::Receiver<u64>, gate: &str) {
    loop {
        changed.mark_unchanged();
        if shared.lock().gates.contains(gate) {
            return;
        }
        if changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for another order than this one.
async fn told(orders: &mut watch::Receiver<Order>, than: Order) -> Order {
    match orders.wait_for(|order| *order != than).await {
        Ok(order) => *order,
        // The run was forgotten.
        Err(_) => Order::Lose,
    }
}
