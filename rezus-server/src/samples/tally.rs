//! What became of samples, counted since the start.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rezus_core::base::TenantName;
use rezus_core::series::Appended;

/// Counts.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    appended: Appended,
    no_room: BTreeMap<TenantName, u64>,
    lost: u64,
    not_forwarded: u64,
}

/// What became of samples so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What the store said.
    pub appended: Appended,
    /// Dropped for want of room in the queue, of whom. Tenants of which none were are not in it.
    pub no_room: BTreeMap<TenantName, u64>,
    /// Dropped since they could not be written before the server ended.
    pub lost: u64,
    /// Kept, but not to be sent on: the queue of what is sent on could not be written.
    pub not_forwarded: u64,
    /// Samples that wait to be written.
    pub waiting: usize,
    /// Series that are sampled and have not ended.
    pub live: usize,
}

impl Tally {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn no_room(&self, tenant: &TenantName, samples: usize) {
        *self.counted().no_room.entry(tenant.clone()).or_default() += number(samples);
    }

    pub(super) fn lost(&self, samples: usize) {
        self.counted().lost += number(samples);
    }

    pub(super) fn not_forwarded(&self, samples: usize) {
        self.counted().not_forwarded += number(samples);
    }

    pub(super) fn appended(&self, more: Appended) {
        let Appended { kept, repeated, late, early, over_limit } = more;
        let appended = &mut self.counted().appended;
        appended.kept += kept;
        appended.repeated += repeated;
        appended.late += late;
        appended.early += early;
        appended.over_limit += over_limit;
    }

    pub(super) fn told(&self, waiting: usize, live: usize) -> Told {
        let Counted { appended, no_room, lost, not_forwarded } = &*self.counted();
        Told {
            appended: *appended,
            no_room: no_room.clone(),
            lost: *lost,
            not_forwarded: *not_forwarded,
            waiting,
            live,
        }
    }
}

fn number(samples: usize) -> u64 {
    u64::try_from(samples).unwrap_or(u64::MAX)
}
