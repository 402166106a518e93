//! What the server says of the samples that it keeps.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use rezus_core::series::{Appended, Forwarded};

use crate::samples::Told;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantLabels {
    tenant: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

type Counts<L> = Family<L, Counter<u64, AtomicU64>>;

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn gauge(number: u64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(whole(number));
    gauge
}

fn outcomes(counts: &[(&'static str, u64)]) -> Counts<OutcomeLabels> {
    let family = Counts::default();
    for (outcome, count) in counts {
        family.get_or_create(&OutcomeLabels { outcome }).inc_by(*count);
    }
    family
}

/// Registers what became of samples so far.
pub(super) fn register(
    registry: &mut Registry,
    told: &Told,
    forwarded: Option<Forwarded>,
    bytes: BTreeMap<&'static str, u64>,
) {
    let Told { appended, no_room, lost, not_forwarded, waiting, live } = told;
    let Appended { kept, repeated, late, early, over_limit } = *appended;
    let samples = outcomes(&[
        ("kept", kept),
        ("repeated", repeated),
        ("late", late),
        ("early", early),
        ("over_limit", over_limit),
        ("lost", *lost),
    ]);
    registry.register(
        "samples",
        "Samples, by what became of them: kept; a repeat; too late; too early; of too many series; not written before an end",
        samples,
    );
    let dropped = Counts::<TenantLabels>::default();
    for (tenant, count) in no_room {
        dropped.get_or_create(&TenantLabels { tenant: tenant.to_string() }).inc_by(*count);
    }
    registry.register("samples_dropped", "Samples for which there was no room in the queue", dropped);
    let number = |count: usize| gauge(u64::try_from(count).unwrap_or(u64::MAX));
    registry.register("samples_waiting", "Samples that wait to be written", number(*waiting));
    registry.register("series_live", "Series that are sampled and have not ended", number(*live));
    let disk = Family::<KindLabels, Gauge>::default();
    for (kind, bytes) in bytes {
        disk.get_or_create(&KindLabels { kind }).set(whole(bytes));
    }
    registry.register_with_unit(
        "series_disk",
        "Size of the samples on disk: not compacted (tail, sealed); of days (raw); rollups (fine, coarse); set aside (damaged)",
        Unit::Bytes,
        disk,
    );
    if let Some(forwarded) = forwarded {
        register_forwarded(registry, &forwarded, *not_forwarded);
    }
}

fn register_forwarded(registry: &mut Registry, forwarded: &Forwarded, not_forwarded: u64) {
    let Forwarded { sent, refused, dropped, retried, pending, pending_bytes, succeeded_at } = *forwarded;
    let samples = outcomes(&[("sent", sent), ("refused", refused), ("dropped", dropped + not_forwarded)]);
    registry.register(
        "remote_write_samples",
        "Samples to be sent on, by what became of them: sent; refused by the receiver; dropped before they were sent",
        samples,
    );
    let retries = Counter::<u64, AtomicU64>::default();
    retries.inc_by(retried);
    registry.register(
        "remote_write_retries",
        "Requests of remote write that came to nothing and were made again",
        retries,
    );
    registry.register("remote_write_pending", "Samples that wait to be sent on", gauge(pending));
    registry.register_with_unit(
        "remote_write_queue",
        "Bytes of samples that wait to be sent on",
        Unit::Bytes,
        gauge(pending_bytes),
    );
    if let Some(at) = succeeded_at {
        let success: Gauge = Gauge::default();
        success.set(at.as_millis() / 1_000);
        registry.register_with_unit(
            "remote_write_success",
            "When samples were last sent on, since 1970",
            Unit::Seconds,
            success,
        );
    }
}
