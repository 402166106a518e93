//! Gives runs their turn, and ends them with the server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rezus_core::runs::executor::RunId;
use rezus_core::runs::{Cause, Learns as _, Run};

use super::{Order, Runs};

impl Runs {
    /// Takes up what an earlier server left, and gives runs their turn until the task is ended.
    pub async fn serve(self) {
        self.take_over().await;
        loop {
            let woken = self.0.wake.notified();
            let next = self.give_turns().await;
            match next {
                Some(after) => {
                    // Whichever comes first.
                    drop(tokio::time::timeout(after, woken).await);
                }
                None => woken.await,
            }
        }
    }

    /// Begins what may begin, and says after how long more may.
    async fn give_turns(&self) -> Option<Duration> {
        let mut board = self.0.board.lock().await;
        // Under the lock: whoever closes tells all that have begun.
        if self.0.closed.load(Ordering::SeqCst) || self.are_allowed().is_err() {
            return None;
        }
        let now = self.0.means.clock.now();
        let frozen = board.frozen.clone();
        while let Some(id) = board.queue.next(now, |tenant| !frozen.contains_key(tenant)) {
            let (orders, received) = tokio::sync::mpsc::unbounded_channel();
            let Some(entry) = board.runs.get_mut(&id) else {
                board.queue.finish(&id);
                continue;
            };
            entry.orders = Some(orders);
            self.0.busy.send_modify(|busy| *busy += 1);
            let runs = self.clone();
            tokio::spawn(async move {
                let (driver, of) = (runs.clone(), id.clone());
                // In a task of its own: whatever happens to it, the place is given back.
                let driven = tokio::spawn(async move { Box::pin(driver.drive(&of, received)).await });
                if let Err(error) = driven.await {
                    tracing::error!(tenant.name = %id.tenant, run = %id.run, %error, "what drives a run has failed");
                }
                runs.leave(&id).await;
            });
        }
        for (tenant, why) in frozen {
            let held: Vec<RunId> = board.queue.waiting(&tenant).cloned().collect();
            for id in held {
                let Some(entry) = board.runs.get_mut(&id) else { continue };
                let message = format!("the tenant is frozen: {why}");
                if let Run::Pending(run) = &entry.run
                    && run.facts().message.as_deref() != Some(message.as_str())
                {
                    entry.run = Run::Pending(run.clone().because(Cause::new("Frozen", message)));
                    self.0.means.live.say(&id, entry.run.record());
                    self.0.means.catalogue.touch(&id.tenant);
                }
            }
        }
        board.queue.next_time(now).map(|at| at.since(now))
    }

    /// A run's turn is over.
    pub(super) async fn leave(&self, id: &RunId) {
        let mut board = self.0.board.lock().await;
        board.queue.finish(id);
        if let Some(entry) = board.runs.get_mut(id) {
            entry.orders = None;
        }
        drop(board);
        self.0.busy.send_modify(|busy| *busy = busy.saturating_sub(1));
        self.0.wake.notify_one();
    }

    /// Refuses new runs, interrupts those under way, and waits for `grace` until they have saved what they did.
    pub async fn close(&self, grace: Duration) {
        self.0.closed.store(true, Ordering::SeqCst);
        let mut board = self.0.board.lock().await;
        let mut told = 0_usize;
        for entry in board.runs.values_mut().filter(|entry| entry.orders.is_some()) {
            entry.asked.shutdown = true;
            entry.order(Order::Interrupt);
            told += 1;
        }
        drop(board);
        if told == 0 {
            return;
        }
        tracing::info!(runs = told, "stopping: runs are interrupted, and may save what they did");
        let mut busy = self.0.busy.subscribe();
        if tokio::time::timeout(grace, busy.wait_for(|busy| *busy == 0)).await.is_err() {
            tracing::warn!("runs did not end in the grace: their supervisors see them to their end");
        }
    }

    /// Says how far a run is, without keeping it: it is so for a moment only.
    pub(super) async fn say_progress(&self, id: &RunId, done: u64, total: u64) {
        let mut board = self.0.board.lock().await;
        if let Some(entry) = board.runs.get_mut(id)
            && let Run::Applying(run) = &entry.run
        {
            let message = format!("{done} of {total} operations done");
            entry.run = Run::Applying(run.clone().learn(|facts| facts.message = Some(message)));
            self.0.means.live.say(id, entry.run.record());
            self.0.means.catalogue.touch(&id.tenant);
        }
    }
}
