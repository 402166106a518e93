//! The thread that writes. Jobs that wait for it share one transaction, and so one sync.

use std::sync::mpsc;
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::JobError;

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

/// A handle of the thread; the thread ends when the handle is dropped.
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(connection: Connection) -> Result<Self, std::io::Error> {
        let (jobs, queue) = mpsc::channel();
        thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            let mut connection = connection;
            write(&mut connection, &queue);
        })?;
        Ok(Self { jobs })
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
        self.jobs.send(job).map_err(|_| JobError::Closed)?;
        answered.await.map_err(|_| JobError::Closed)?
    }
}

fn write(connection: &mut Connection, queue: &mpsc::Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut finished = Vec::new();
        let committed = transaction(connection, first, queue, &mut finished);
        for finish in finished {
            (finish.answer)(committed.clone());
        }
    }
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
        transaction.execute_batch("SAVEPOINT job")?;
        let finish = job(Ok(&transaction));
        let undo = if finish.keep { "" } else { "ROLLBACK TO job;" };
        finished.push(finish);
        transaction.execute_batch(&format!("{undo} RELEASE job"))?;
        next = if finished.len() < JOBS_A_TRANSACTION { queue.try_recv().ok() } else { None };
    }
    transaction.commit()?;
    Ok(())
}
