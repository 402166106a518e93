//! How one machine is, and what is shown of it.

use rezus_core::base::Timestamp;
use rezus_core::client::{FoundBy, MachineSpec, MachineStatus};
use rezus_core::observed::facts::{MachineMetrics, TalosMachine};
use rezus_core::observed::matching::{Found, Matches, Rule};
use rezus_core::observed::{Freshness, Observation, Source};

use super::memory::{Memory, Said, Told};
use super::{Joined, Seen, parts};
use crate::collector::pace_of_machine;
use crate::kube::item::Row;
use crate::kube::kinds::MACHINE;
use crate::kube::object::seconds;
