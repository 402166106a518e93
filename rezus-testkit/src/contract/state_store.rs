//! The laws of `StateStore`.

mod commits;
mod locks;
mod reads;
mod upkeep;

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::declared::store::StateStore;

pub use commits::*;
pub use locks::*;
pub use reads::*;
pub use upkeep::*;

/// Storage of its own for one law.
#[async_trait]
pub trait StateStoreFixture: Send + Sync {
    /// Opens a handle on the storage. A second one, while the first is in use, is another client; a second one after
    /// the first was dropped is a restart.
    async fn open(&self) -> Arc<dyn StateStore>;
}

/// Makes a test of each law of `StateStore`, in a module `state_store_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! state_store_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            state_store_laws,
            $crate::contract::state_store,
            $fixture,
            a_change_that_comes_too_late_changes_nothing,
            a_dropped_commit_is_all_or_nothing,
            a_forced_unlock_is_remembered_as_broken,
            a_large_body_is_kept,
            a_lock_is_held_then_released_then_forgotten,
            a_lock_that_is_held_shows_with_all_that_was_said_of_it,
            a_locks_id_is_held_in_one_tenant_at_a_time,
            a_locks_id_is_never_a_tenants_name,
            a_locks_id_is_unique_under_concurrent_clients,
            a_pin_shows_everywhere_and_no_later_change_loses_it,
            a_removed_tenant_comes_back_as_a_new_one,
            a_removed_tenants_lock_is_remembered,
            a_snapshot_of_an_operation_is_marked,
            a_tenant_without_versions_has_none,
            a_tombstone_is_a_version_without_bytes,
            a_write_is_read_by_every_handle,
            bodies_are_kept_byte_for_byte,
            every_fact_of_a_version_is_kept,
            every_part_of_a_body_can_be_read,
            held_comes_before_released_and_the_last_release_before_earlier_ones,
            of_concurrent_changes_exactly_one_is_made,
            refusals_are_kept_for_tenants_that_do_not_exist,
            refusals_of_made_up_names_are_few,
            refusals_are_kept_newest_first_and_no_more_than_a_hundred,
            removing_versions_moves_neither_counter_nor_highest_serial,
            removing_versions_spares_the_newest_and_the_pinned,
            reopening_keeps_everything,
            settings_are_changed_without_a_version,
            tenants_are_listed_by_name,
            tidying_up_forgets_old_refusals_of_nobody_and_nothing_else,
            versions_are_listed_oldest_first,
            what_is_done_to_one_tenant_leaves_others_alone,
            what_is_not_there_is_none,
        );
    };
}
