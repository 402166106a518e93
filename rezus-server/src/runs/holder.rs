//! Who holds a lock: a run that works now, one that has ended, or somebody else.

use rezus_core::base::TenantName;
use rezus_core::declared::store::{HeldLock, TenantRecord};
use rezus_core::runs::{Phase, RunName};

use super::{Runs, RunsError, is_under_way};

/// Who holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// A run's program that works now.
    Alive(RunName, Phase),
    /// A run's program that has ended.
    Gone(RunName),
    /// Nobody whom rezus has begun.
    #[default]
    Unknown,
}

impl Holder {
    /// As the API has it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Alive(..) => "alive",
            Self::Gone(_) => "gone",
            Self::Unknown => "unknown",
        }
    }

    /// The run, where it is one.
    pub const fn run(&self) -> Option<&RunName> {
        match self {
            Self::Alive(run, _) | Self::Gone(run) => Some(run),
            Self::Unknown => None,
        }
    }
}

impl Runs {
    /// Tells who holds a tenant's lock, as it is in its record.
    ///
    /// # Errors
    ///
    /// [`RunsError::Store`].
    pub async fn holder(&self, record: &TenantRecord) -> Result<Holder, RunsError> {
        match &record.lock {
            Some(lock) if is_of_a_program(lock) => self.holder_of(record, lock).await,
            _ => Ok(Holder::Unknown),
        }
    }

    /// Fails if a tenant's lock is held by a run that works now, and not by whoever would let go of it.
    ///
    /// # Errors
    ///
    /// [`RunsError::HoldsLock`], [`RunsError::Store`], [`RunsError::States`].
    pub async fn may_release(&self, tenant: &TenantName, who: &str) -> Result<(), RunsError> {
        let Some((record, _)) = self.0.means.backend.store().tenant(tenant).await? else {
            return Ok(());
        };
        if record.lock.as_ref().is_none_or(|lock| lock.acquired_by == who) {
            return Ok(());
        }
        match self.holder(&record).await? {
            Holder::Alive(run, phase) => Err(RunsError::HoldsLock { run, phase }),
            Holder::Gone(_) | Holder::Unknown => Ok(()),
        }
    }

    async fn holder_of(&self, record: &TenantRecord, lock: &HeldLock) -> Result<Holder, RunsError> {
        let by = &lock.acquired_by;
        for run in self.of(&record.name).await?.into_iter().rev() {
            let facts = run.facts();
            if facts.principals.contains(by) || by.strip_prefix("run:") == Some(facts.name.as_str()) {
                let (name, phase) = (facts.name.clone(), run.phase());
                let is_alive = is_under_way(phase);
                return Ok(if is_alive { Holder::Alive(name, phase) } else { Holder::Gone(name) });
            }
        }
        Ok(Holder::Unknown)
    }
}

/// Tells whether a lock may be of a run: its programs work with tokens for the state.
fn is_of_a_program(lock: &HeldLock) -> bool {
    ["backend:", "run:"].iter().any(|prefix| lock.acquired_by.starts_with(prefix))
}
