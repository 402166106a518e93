//! What `node_exporter` tells of machines.

use serde::{Deserialize, Serialize};

use super::talos::{Filesystem, Load, Memory};
use crate::base::Timestamp;

/// The machines whose `node_exporter` was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMetrics {
    /// Those that answered, sorted by what was asked.
    pub machines: Vec<MachineMetrics>,
}

/// What one `node_exporter` told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineMetrics {
    /// The host that was asked.
    pub asked: String,
    /// `nodename` of `node_uname_info`.
    pub node_name: Option<String>,
    /// When it was read.
    pub at: Option<Timestamp>,
    /// `node_boot_time_seconds`.
    pub booted_at: Option<Timestamp>,
    /// `node_load1`, `node_load5`, `node_load15`.
    pub load: Option<Load>,
    /// `node_memory_MemTotal_bytes`, `node_memory_MemAvailable_bytes`.
    pub memory: Option<Memory>,
    /// `node_filesystem_size_bytes`, `node_filesystem_avail_bytes`, of file systems on devices.
    pub filesystems: Vec<Filesystem>,
    /// Seconds of processor time in modes other than idle and iowait, over all cores (`node_cpu_seconds_total`).
    pub cpu_busy_seconds: Option<f64>,
    /// Seconds of processor time in all modes, over all cores.
    pub cpu_seconds: Option<f64>,
    /// Bytes received, over all devices but `lo` (`node_network_receive_bytes_total`).
    pub received_bytes: Option<f64>,
    /// Bytes sent (`node_network_transmit_bytes_total`).
    pub sent_bytes: Option<f64>,
    /// Whether the clock follows another one (`node_timex_sync_status`).
    pub time_synced: Option<bool>,
    /// Seconds that the clock is off (`node_timex_offset_seconds`).
    pub time_offset_seconds: Option<f64>,
}
