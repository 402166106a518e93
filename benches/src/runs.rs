//! Runs, asked for and followed as clients do.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::{Client, Outcome};

/// Where runs and what they bring about are shown.
const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// The phases in which a run goes on.
const UNDER_WAY: [&str; 4] = ["Pending", "Planning", "AwaitingApproval", "Applying"];

/// A run that was asked for.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name.
    pub name: String,
    /// The version of what is shown of it.
    pub version: String,
}

impl Client {
    /// Makes a tenant whose runs are of the configuration in a directory and wait for nobody.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub async fn configure(&self, tenant: &str, dir: &Path) -> Outcome<()> {
        self.exchange("POST", "/rezus/v1/tenants", &json!({ "name": tenant })).await?;
        let settings = json!({ "dir": dir, "approval": "auto" });
        self.exchange("PATCH", &format!("/rezus/v1/tenants/{tenant}"), &settings).await.map(drop)
    }

    /// Asks for a run.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub async fn ask_run(&self, tenant: &str, operation: &str) -> Outcome<NewRun> {
        let run = json!({
            "apiVersion": "rezuscloud.io/v1alpha1",
            "kind": "Run",
            "metadata": { "generateName": format!("{operation}-") },
            "spec": { "operation": operation },
        });
        let run = self.exchange("POST", &format!("{API}/namespaces/{tenant}/runs"), &run).await?;
        let of = |name: &str| run["metadata"][name].as_str().map(str::to_owned).ok_or("a run without it");
        Ok(NewRun { name: of("name")?, version: of("resourceVersion")? })
    }

    /// Watches a tenant's runs from a version on until so many have ended, those of all tenants where none is named;
    /// returns each run's status by tenant and name.
    ///
    /// # Errors
    ///
    /// When the watch ends before.
    pub async fn watch_runs(
        &self,
        tenant: Option<&str>,
        version: &str,
        count: usize,
    ) -> Outcome<BTreeMap<String, Value>> {
        let place = tenant.map(|tenant| format!("/namespaces/{tenant}")).unwrap_or_default();
        let target = format!("{API}{place}/runs?watch=true&timeoutSeconds=1800&resourceVersion={version}");
        let mut answer = self.open("GET", &target, "").await?;
        let (mut ended, mut rest) = (BTreeMap::new(), Vec::new());
        while let Some(piece) = answer.chunk().await? {
            rest.extend_from_slice(&piece);
            while let Some(at) = memchr::memchr(b'\n', &rest) {
                let event: Value = serde_json::from_slice(&rest[..at])?;
                rest.drain(..=at);
                let run = &event["object"];
                let phase = run["status"]["phase"].as_str().ok_or_else(|| format!("no run: {event}"))?;
                if !UNDER_WAY.contains(&phase) {
                    let of = |name: &str| run["metadata"][name].as_str().unwrap_or_default();
                    let name = format!("{}/{}", of("namespace"), of("name"));
                    ended.insert(name, run["status"].clone());
                }
            }
            if ended.len() >= count {
                return Ok(ended);
            }
        }
        Err(format!("a watch ended when {} of {count} runs had", ended.len()).into())
    }

    /// Asks for a run of a tenant that has no other, and waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end as expected.
    pub async fn run(&self, tenant: &str, operation: &str, expected: &str) -> Outcome<()> {
        let asked = self.ask_run(tenant, operation).await?;
        let ended = self.watch_runs(Some(tenant), &asked.version, 1).await?;
        match ended.into_values().next() {
            Some(status) if status["phase"] == expected => Ok(()),
            status => Err(format!("the run {} is not {expected}: {status:?}", asked.name).into()),
        }
    }
}
