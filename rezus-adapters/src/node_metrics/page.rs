//! What a page of `node_exporter` tells.

use std::collections::BTreeMap;

use rezus_core::base::Timestamp;
use rezus_core::observed::Sample;
use rezus_core::observed::facts::{Filesystem, Load, MachineMetrics, Memory};

use crate::text::{clean, some};

/// How many file systems of a machine are told.
const MOST_FILESYSTEMS: usize = 64;

/// What was gathered of a page so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// How many samples are of `node_exporter`.
    pub(super) known: usize,
    node_name: Option<String>,
    booted: Option<f64>,
    loads: [Option<f64>; 3],
    memory: [Option<f64>; 2],
    /// By device: where it is mounted, its size and what is free.
    filesystems: BTreeMap<String, BTreeMap<String, [Option<f64>; 2]>>,
    cpu_busy: Option<f64>,
    cpu: Option<f64>,
    received: Option<f64>,
    sent: Option<f64>,
    synced: Option<bool>,
    offset: Option<f64>,
}

impl Page {
    /// Takes what is of account, and passes over the rest.
    pub(super) fn take(&mut self, sample: &Sample<'_>) {
        if !sample.name.starts_with("node_") || !sample.value.is_finite() {
            return;
        }
        self.known += 1;
        let value = sample.value;
        let add = |sum: &mut Option<f64>| *sum = Some(sum.unwrap_or(0.0) + value);
        match sample.name {
            "node_uname_info" => self.node_name = sample.label("nodename").and_then(|name| some(&name)),
            "node_boot_time_seconds" => self.booted = Some(value),
            "node_load1" => self.loads[0] = Some(value),
            "node_load5" => self.loads[1] = Some(value),
            "node_load15" => self.loads[2] = Some(value),
            "node_memory_MemTotal_bytes" => self.memory[0] = Some(value),
            "node_memory_MemAvailable_bytes" => self.memory[1] = Some(value),
            "node_filesystem_size_bytes" => self.filesystem(sample, 0),
            "node_filesystem_avail_bytes" => self.filesystem(sample, 1),
            "node_cpu_seconds_total" => {
                add(&mut self.cpu);
                let idle = sample.label("mode").is_some_and(|mode| mode == "idle" || mode == "iowait");
                if !idle {
                    add(&mut self.cpu_busy);
                }
            }
            "node_network_receive_bytes_total" if !is_loopback(sample) => add(&mut self.received),
            "node_network_transmit_bytes_total" if !is_loopback(sample) => add(&mut self.sent),
            "node_timex_sync_status" => self.synced = Some(value > 0.5),
            "node_timex_offset_seconds" => self.offset = Some(value),
            _ => {}
        }
    }

    /// Only file systems on devices, and neither images, which are always full, nor what pods mount.
    fn filesystem(&mut self, sample: &Sample<'_>, part: usize) {
        let (Some(device), Some(at)) = (sample.label("device"), sample.label("mountpoint")) else { return };
        let of_account = device.starts_with("/dev/")
            && !device.starts_with("/dev/loop")
            && !["/var/lib/kubelet/", "/run/"].iter().any(|start| at.starts_with(start));
        let is_new = !self.filesystems.contains_key(device.as_ref());
        if !of_account || (is_new && self.filesystems.len() >= MOST_FILESYSTEMS) {
            return;
        }
        let mounts = self.filesystems.entry(device.into_owned()).or_default();
        if mounts.len() < MOST_FILESYSTEMS || mounts.contains_key(at.as_ref()) {
            let parts = mounts.entry(at.into_owned()).or_default();
            if let Some(place) = parts.get_mut(part) {
                *place = Some(sample.value);
            }
        }
    }

    /// What the machine at `asked` told.
    pub(super) fn tell(self, asked: &str, at: Timestamp) -> MachineMetrics {
        let [load1, load5, load15] = self.loads;
        let [total, available] = self.memory.map(|bytes| bytes.and_then(whole));
        let load = load1.zip(load5).zip(load15).map(|((load1, load5), load15)| Load { load1, load5, load15 });
        let memory = total.zip(available);
        let memory = memory.map(|(total_bytes, available_bytes)| Memory { total_bytes, available_bytes });
        // One device is told once, where it is mounted by the shortest name.
        let filesystems = self.filesystems.into_values().filter_map(|mounts| {
            let (at, parts) = mounts.into_iter().min_by_key(|(at, _)| at.len())?;
            let [size_bytes, available_bytes] = parts.map(|bytes| bytes.and_then(whole));
            Some(Filesystem {
                mounted_on: clean(&at),
                size_bytes: size_bytes.filter(|size| *size > 0)?,
                available_bytes: available_bytes?,
            })
        });
        let mut filesystems: Vec<Filesystem> = filesystems.collect();
        filesystems.sort_by(|a, b| a.mounted_on.cmp(&b.mounted_on));
        let booted = self.booted.and_then(|seconds| whole(seconds * 1_000.0));
        MachineMetrics {
            asked: asked.to_owned(),
            node_name: self.node_name,
            at: Some(at),
            booted_at: booted.and_then(|millis| i64::try_from(millis).ok()).map(Timestamp::from_millis),
            load,
            memory,
            filesystems,
            cpu_busy_seconds: self.cpu_busy,
            cpu_seconds: self.cpu,
            received_bytes: self.received,
            sent_bytes: self.sent,
            time_synced: self.synced,
            time_offset_seconds: self.offset,
        }
    }
}

fn is_loopback(sample: &Sample<'_>) -> bool {
    sample.label("device").is_some_and(|device| device == "lo")
}

/// A whole number that is not negative, as Prometheus writes all numbers: as a fraction.
fn whole(value: f64) -> Option<u64> {
    format!("{:.0}", value.max(0.0)).parse().ok()
}
