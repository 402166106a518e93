//! The thread that writes. Jobs that wait for it share one transaction, and so one sync.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::JobError;
use super::maintenance;

/// How many jobs may share a transaction.
const JOBS_A_TRANSACTION: usize = 64;

/// What becomes of a job's effects.
pub(super) enum Verdict<T> {
    /// They are committed.
    Keep(T),
    /// They are undone; the answer stands all the same.
    Undo(T),
}

/// A job in the queue: does its work, or learns why it cannot, and returns how to answer once the transaction's fate
/// is known.
type Job = Box<dyn FnOnce(Result<&Connection, JobError>) -> Finish + Send>;
struct Finish {
    keep: bool,
    answer: Box<dyn FnOnce(Result<(), JobError>) + Send>,
}

/// A handle of the thread. When it is dropped, the thread does what is queued, moves the log into the file, and ends.
pub(super) struct Writer {
    /// Absent only while the handle is being dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        // A thread that panicked has nothing more to say.
        drop(self.thread.take().map(thread::JoinHandle::join));
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(connection: Connection) -> Result<Self, std::io::Error> {
        let (jobs, queue) = mpsc::channel();
        let thread = thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            let mut connection = connection;
            write(&mut connection, &queue);
            // So that the file alone is all there is to copy. Where a reader is in the way the log stays, and counts.
            drop(connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs a job in a transaction and returns its answer once that is durable. A job that was queued runs, even if
    /// nobody waits for its answer any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<Verdict<T>, JobError> + Send + 'static,
    ) -> Result<T, JobError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let outcome = connection.and_then(job);
            let keep = matches!(outcome, Ok(Verdict::Keep(_)));
            let answer = move |committed: Result<(), JobError>| {
                let result = match outcome {
                    Ok(Verdict::Keep(value)) => committed.map(|()| value),
                    Ok(Verdict::Undo(value)) => Ok(value),
                    Err(error) => Err(error),
                };
                // Whoever asked may have gone: its request was cancelled.
                drop(answer.send(result));
            };
            Finish { keep, answer: Box::new(answer) }
        });
        let jobs = self.jobs.as_ref().ok_or(JobError::Closed)?;
        jobs.send(job).map_err(|_| JobError::Closed)?;
        answered.await.map_err(|_| JobError::Closed)?
    }
}

/// How many transactions may come one upon the other before a chore is done all the same.
const TRANSACTIONS_A_CHORE: u32 = 64;

/// How long the queue must be empty before the thread does what nobody waits for.
const IDLE: Duration = Duration::from_millis(20);

fn write(connection: &mut Connection, queue: &mpsc::Receiver<Job>) {
    let (mut chores, mut busy_for) = (Chores::Some, 0);
    loop {
        let first = match chores {
            Chores::Some => queue.recv_timeout(IDLE),
            Chores::None => queue.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
        };
        let first = match first {
            Ok(first) => first,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                chores = do_a_chore(connection);
                continue;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        let mut finished = Vec::new();
        let committed = transaction(connection, first, queue, &mut finished);
        for finish in finished {
            (finish.answer)(committed.clone());
        }
        chores = Chores::Some;
        busy_for += 1;
        if busy_for >= TRANSACTIONS_A_CHORE {
            chores = do_a_chore(connection);
            busy_for = 0;
        }
    }
}

/// Whether there may be something to do that nobody waits for.
enum Chores {
    Some,
    None,
}

/// Removes a batch of what is nobody's, or else moves the log into the file. A chore that fails is tried again after the
/// next change: whatever is wrong with the file, those who wait for a change are told.
fn do_a_chore(connection: &mut Connection) -> Chores {
    let collected = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(JobError::from)
        .and_then(|transaction| {
            let removed = maintenance::collect(&transaction)?;
            transaction.commit()?;
            Ok(removed)
        });
    if matches!(collected, Ok(1..)) {
        return Chores::Some;
    }
    // The pages that it has in memory are not kept while nobody waits.
    drop(connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE); PRAGMA shrink_memory"));
    Chores::None
}

/// Runs the first job and those that queued up meanwhile. Jobs whose effects are to be undone leave the others alone;
/// where SQLite undid the whole transaction by itself (a full disk), the savepoint is gone and every job fails.
fn transaction(
    connection: &mut Connection,
    first: Job,
    queue: &mpsc::Receiver<Job>,
    finished: &mut Vec<Finish>,
) -> Result<(), JobError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
    let transaction = match transaction {
        Ok(transaction) => transaction,
        Err(error) => {
            let error = JobError::from(error);
            finished.push(first(Err(error.clone())));
            return Err(error);
        }
    };
    let mut next = Some(first);
    while let Some(job) = next {
        if let Err(error) = transaction.execute_batch("SAVEPOINT job") {
            let error = JobError::from(error);
            finished.push(job(Err(error.clone())));
            return Err(error);
        }
        let finish = job(Ok(&transaction));
        let undo = if finish.keep { "" } else { "ROLLBACK TO job;" };
        finished.push(finish);
        transaction.execute_batch(&format!("{undo} RELEASE job"))?;
        next = if finished.len() < JOBS_A_TRANSACTION { queue.try_recv().ok() } else { None };
    }
    transaction.commit()?;
    Ok(())
}
