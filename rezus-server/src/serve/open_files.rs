//! The system's limit of open files, which connections share with the data.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that are no connections of these listeners: the data, the socket and its admins, and what else may come.
const OTHERS: u64 = 256;

/// Raises the limit as far as the system lets this process, and returns how many connections each of two listeners can have
/// under it, `wanted` at most.
pub(super) fn connections(wanted: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return wanted;
    };
    // Its default is low for programs that cannot deal with high numbers (`select`); this one can.
    let soft = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    let room = usize::try_from(soft.saturating_sub(OTHERS) / 2).unwrap_or(usize::MAX).max(1);
    if room < wanted {
        tracing::warn!(
            limit = soft,
            connections = room,
            "the limit of open files is low: raise it (ulimit -n), or lower server.max_connections"
        );
    }
    wanted.min(room)
}
