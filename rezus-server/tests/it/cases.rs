//! What broke other servers of this kind, as trials.

mod locking;
mod size;
mod slow;
mod storage;
mod writing;
