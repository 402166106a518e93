//! Following a run: to its end, and its log.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rezus_core::base::TenantName;
use rezus_core::runs::RunName;
use serde_json::Value;

use super::{API, Which, print};
use crate::cli::CliError;
use crate::cli::client::{Client, ClientError};
use crate::cli::table::harmless;

/// How often it is tried again to reach a server that is gone, one second after the other.
const PATIENCE: u32 = 60;

/// Exit code of a run that found changes, or waits for approval.
const CHANGES: u8 = 2;

/// Somebody who waits for the end of a run.
pub(super) struct Waiting<'c> {
    client: &'c Client,
    tenant: &'c TenantName,
    run: RunName,
    said: String,
    bar: Option<ProgressBar>,
}

/// What is known of a run that is followed.
enum Seen {
    GoesOn,
    /// Another run does its work.
    Follows(RunName),
    Over(u8),
}

impl<'c> Waiting<'c> {
    pub(super) fn new(client: &'c Client, tenant: &'c TenantName, run: &RunName) -> Self {
        let bar = io::stderr().is_terminal().then(ProgressBar::new_spinner);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { client, tenant, run: run.clone(), said: String::new(), bar }
    }

    /// Waits, and says by the exit code how it ended.
    pub(super) async fn end(mut self) -> Result<(), CliError> {
        let mut patience = PATIENCE;
        loop {
            match self.watch().await {
                Ok(Seen::Over(code)) => {
                    if let Some(bar) = &self.bar {
                        bar.finish_and_clear();
                    }
                    return if code == 0 { Ok(()) } else { Err(CliError::Outcome(code)) };
                }
                Ok(Seen::Follows(run)) => self.run = run,
                // A watch ends once in a while.
                Ok(Seen::GoesOn) => patience = PATIENCE,
                Err(error @ ClientError::Refused { .. }) => return Err(error.into()),
                Err(error) => {
                    patience = patience.checked_sub(1).ok_or(error)?;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Watches until the run is over or the watch is.
    async fn watch(&mut self) -> Result<Seen, ClientError> {
        let path = format!("{API}/namespaces/{}/runs", self.tenant);
        let one = format!("metadata.name={}", self.run);
        let query = [("watch", "true"), ("fieldSelector", one.as_str())];
        let mut pieces = self.client.stream(&path, &query).await?;
        let mut read = Vec::new();
        while let Some(piece) = pieces.next().await? {
            read.extend_from_slice(&piece);
            while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = read.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).map_err(|_| ClientError::Strange(200))?;
                match self.see(&event["object"]) {
                    _ if event["type"] == "ERROR" => return Ok(Seen::GoesOn),
                    Seen::GoesOn if event["type"] == "DELETED" => return Ok(Seen::Over(1)),
                    Seen::GoesOn => {}
                    over => return Ok(over),
                }
            }
        }
        // One that is gone is not watched for ever.
        self.client.get(&format!("{path}/{}", self.run), &[]).await?;
        Ok(Seen::GoesOn)
    }

    /// Says what is new, and tells whether that is the end.
    fn see(&mut self, run: &Value) -> Seen {
        let status = &run["status"];
        let Some(phase) = status["phase"].as_str() else {
            return Seen::GoesOn;
        };
        let message = status["message"].as_str().unwrap_or_default();
        self.say(phase, message);
        let found = match status["reason"].as_str() {
            Some("NoChanges") => 0,
            _ => CHANGES,
        };
        match phase {
            "Applied" => Seen::Over(0),
            "Planned" => Seen::Over(found),
            "AwaitingApproval" if status["approvedBy"].is_null() => Seen::Over(CHANGES),
            "Coalesced" => {
                let into = status["coalescedInto"].as_str().and_then(|name| RunName::parse(name).ok());
                into.map_or(Seen::Over(1), Seen::Follows)
            }
            "Pending" | "Planning" | "AwaitingApproval" | "Applying" => Seen::GoesOn,
            _ => Seen::Over(1),
        }
    }

    fn say(&mut self, phase: &str, message: &str) {
        let colon = if message.is_empty() { "" } else { ": " };
        let said = format!("{}: {}{colon}{}", self.run, harmless(phase), harmless(message));
        if said == self.said {
            return;
        }
        match &self.bar {
            Some(bar) => show(bar, &said, message),
            // Nobody can be told where printing fails.
            None => drop(writeln!(io::stderr(), "{said}")),
        }
        let is_over = !matches!(phase, "Pending" | "Planning" | "Applying");
        if let Some(bar) = self.bar.as_ref().filter(|_| is_over) {
            bar.suspend(|| drop(writeln!(io::stderr(), "{said}")));
        }
        self.said = said;
    }
}

/// Shows on a terminal how far a run is: `3 of 10 operations done` as a bar.
fn show(bar: &ProgressBar, said: &str, message: &str) {
    let mut words = message.split(' ');
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
    let (done, of, total) = (number(words.next()), words.next(), number(words.next()));
    let (template, message) = match (done, of, total) {
        (Some(done), Some("of"), Some(total)) => {
            bar.set_length(total);
            bar.set_position(done);
            ("{elapsed} {bar:30} {pos}/{len} {msg}", said.split(':').take(2).collect::<Vec<_>>().join(":"))
        }
        _ => ("{elapsed} {spinner} {msg}", said.to_owned()),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(message);
}

/// Prints a log: what is there, or as it grows until the run ends, over restarts of the server too.
pub(super) async fn logs(
    client: &Client,
    which: &Which,
    follow: bool,
    mut offset: u64,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let path = format!("{}/log", which.path());
    let mut patience = PATIENCE;
    loop {
        match copy(client, &path, follow, &mut offset, out).await {
            Ok(()) if !follow => return Ok(()),
            Ok(()) => {
                let run = client.get(&which.path(), &[]).await;
                let is_over = |run: &Value| {
                    !matches!(
                        print::phase(run).as_str(),
                        "Pending" | "Planning" | "AwaitingApproval" | "Applying"
                    )
                };
                if run.as_ref().is_ok_and(is_over) {
                    return Ok(());
                }
                patience = if run.is_ok() { PATIENCE } else { patience };
            }
            Err(error @ CliError::Client(ClientError::Refused { .. })) => return Err(error),
            Err(CliError::Client(error)) if follow => {
                patience = patience.checked_sub(1).ok_or(error)?;
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Prints a log from an offset on, which moves along.
async fn copy(
    client: &Client,
    path: &str,
    follow: bool,
    offset: &mut u64,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let from = offset.to_string();
    let query = [("offset", from.as_str()), ("follow", if follow { "true" } else { "false" })];
    let mut pieces = client.stream(path, &query).await?;
    while let Some(piece) = pieces.next().await? {
        out.write_all(&piece)?;
        out.flush()?;
        *offset += u64::try_from(piece.len()).unwrap_or(u64::MAX);
    }
    Ok(())
}
