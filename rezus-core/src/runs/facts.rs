//! What is known of a run, whatever its phase.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::executor::Tool;
use super::stream::Change;
use super::{Approval, Counts, Created, Drifted, RunName, RunRequest};
use crate::base::{TenantName, Timestamp};

/// The changes of a node group's machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// The node group.
    pub name: String,
    /// Created, replaced ones included.
    pub add: u64,
    /// Destroyed, replaced ones included.
    pub remove: u64,
    /// Destroyed and created again.
    pub replace: u64,
}

/// What is known of a run, whatever its phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Whose.
    pub tenant: TenantKey,
    /// Its name.
    pub name: RunName,
    /// Its uid: no other run ever has it.
    pub uid: String,
    /// Labels that its maker gave it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What was asked for.
    pub request: RunRequest,
    /// Whether it waits for approval.
    pub approval: Approval,
    /// When it was asked for, in milliseconds since 1970.
    pub queued_at: i64,
    /// When it began.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
    /// Why it is where it is, in one word.
    pub reason: Option<String>,
    /// The same in words.
    pub message: Option<String>,
    /// The program that does it.
    pub tool: Option<Tool>,
    /// Where it works.
    pub work_dir: Option<std::path::PathBuf>,
    /// The digest of the configuration.
    pub config_digest: Option<String>,
    /// What its owner calls the configuration.
    pub config_revision: Option<String>,
    /// The tenant's newest version when the plan was begun.
    pub version_before: Option<u64>,
    /// The newest version that this run wrote.
    pub version_after: Option<u64>,
    /// What the plan changes.
    pub counts: Option<Counts>,
    /// The same one by one, as [`Tally::told_changes`](super::Tally::told_changes) has them.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// How many more there are.
    #[serde(default)]
    pub changes_omitted: u64,
    /// What the plan changes by node group.
    #[serde(default)]
    pub groups: Vec<GroupCounts>,
    /// What is not as the state has it, of a drift check.
    #[serde(default)]
    pub drift: Vec<Drifted>,
    /// A digest of what the plan changes, values aside, where the plan itself is not kept.
    #[serde(default)]
    pub plan_digest: Option<String>,
    /// The program's exit code.
    pub exit_code: Option<i32>,
    /// Who approved it.
    pub approved_by: Option<String>,
    /// Who cancelled it.
    pub cancelled_by: Option<String>,
    /// Which run does its work.
    pub coalesced_into: Option<RunName>,
    /// What was created and is in no version.
    #[serde(default)]
    pub unrecorded: Vec<Created>,
    /// Whether that is what is not known to be in the newest version, as that could not be looked into.
    #[serde(default)]
    pub unread: bool,
    /// Who said that the unrecorded are taken care of.
    pub dismissed_by: Option<String>,
    /// The names under which its programs work on the state: of versions and locks that are its own.
    #[serde(default)]
    pub principals: Vec<String>,
}

impl RunFacts {
    /// What is known of a run that was just asked for.
    pub fn new(
        tenant: TenantKey,
        name: RunName,
        uid: String,
        request: RunRequest,
        approval: Approval,
        now: Timestamp,
    ) -> Self {
        Self {
            tenant,
            name,
            uid,
            labels: BTreeMap::new(),
            request,
            approval,
            queued_at: now.as_millis(),
            started_at: None,
            finished_at: None,
            reason: None,
            message: None,
            tool: None,
            work_dir: None,
            config_digest: None,
            config_revision: None,
            version_before: None,
            version_after: None,
            counts: None,
            changes: Vec::new(),
            changes_omitted: 0,
            groups: Vec::new(),
            drift: Vec::new(),
            plan_digest: None,
            exit_code: None,
            approved_by: None,
            cancelled_by: None,
            coalesced_into: None,
            unrecorded: Vec::new(),
            unread: false,
            dismissed_by: None,
            principals: Vec::new(),
        }
    }
}

impl RunFacts {
    /// How many resources the plan changes that are as the state has them: of a drift check, those that only the
    /// configuration has otherwise.
    pub fn pending(&self) -> u64 {
        let drifted: BTreeSet<&str> = self.drift.iter().map(|it| it.address.as_str()).collect();
        let is_pending = |change: &&Change| !drifted.contains(change.address.as_str());
        let told = self.changes.iter().filter(is_pending).count();
        self.changes_omitted.saturating_add(u64::try_from(told).unwrap_or(u64::MAX))
    }
}

/// A tenant's name as it is kept with a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantKey(pub TenantName);

impl TryFrom<String> for TenantKey {
    type Error = crate::base::NameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        TenantName::parse(&text).map(Self)
    }
}

impl From<TenantKey> for String {
    fn from(key: TenantKey) -> Self {
        key.0.to_string()
    }
}
