//! The messages, and their compressed form: `prometheus.WriteRequest` in a block of snappy.

use std::collections::BTreeMap;

use prost::Message;
use rezus_core::series::{Entry, Labels};

use super::queue::Row;

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    /// By name.
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    /// By time.
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Sample {
    /// Zero where it is not there. Minus zero has to be, which is not seen to for a value that is no option.
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
    /// In milliseconds since 1970.
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Packs samples for the queue.
pub(super) fn packed(entries: &[Entry]) -> Row {
    let mut series: BTreeMap<&Labels, Vec<Sample>> = BTreeMap::new();
    for Entry { labels, sample } in entries {
        let value = (sample.value.to_bits() != 0).then_some(sample.value);
        let sample = Sample { value, timestamp: sample.at.as_millis() };
        series.entry(labels).or_default().push(sample);
    }
    let series = series.into_iter().map(|(labels, samples)| {
        let label = |(name, value): (&str, &str)| Label { name: name.to_owned(), value: value.to_owned() };
        TimeSeries { labels: labels.iter().map(label).collect(), samples }
    });
    let request = WriteRequest { series: series.collect() };
    Row { samples: u64::try_from(entries.len()).unwrap_or(u64::MAX), bytes: compressed(&request) }
}

/// Makes one request of what is in the queue: each series once, its samples by time. Nothing where a row cannot be read.
pub(super) fn merged(rows: &[Row]) -> Option<Vec<u8>> {
    let mut series: BTreeMap<Vec<Label>, Vec<Sample>> = BTreeMap::new();
    for row in rows {
        let bytes = snap::raw::Decoder::new().decompress_vec(&row.bytes).ok()?;
        for TimeSeries { labels, mut samples } in WriteRequest::decode(&*bytes).ok()?.series {
            series.entry(labels).or_default().append(&mut samples);
        }
    }
    let series = series.into_iter().map(|(labels, mut samples)| {
        samples.sort_by_key(|sample| sample.timestamp);
        TimeSeries { labels, samples }
    });
    Some(compressed(&WriteRequest { series: series.collect() }))
}

/// A block of snappy, not a stream of frames.
fn compressed(request: &WriteRequest) -> Vec<u8> {
    // It fails for 4 GiB and more, which a batch never has.
    snap::raw::Encoder::new().compress_vec(&request.encode_to_vec()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rezus_core::base::Timestamp;
    use rezus_core::series::{STALE, Sample as Value};

    use super::*;

    fn entry(name: &str, node: &str, millis: i64, value: f64) -> Entry {
        let labels = Labels::new([("__name__", name), ("tenant", "prod"), ("node", node)]).unwrap();
        Entry { labels, sample: Value { at: Timestamp::from_millis(millis), value } }
    }

    fn read(bytes: &[u8]) -> WriteRequest {
        let bytes = snap::raw::Decoder::new().decompress_vec(bytes).unwrap();
        WriteRequest::decode(&*bytes).unwrap()
    }

    #[test]
    fn a_request_has_each_series_once_with_its_labels_and_samples_in_order() {
        let rows = [
            packed(&[entry("up", "b", 30, 3.0), entry("up", "a", 30, -0.0)]),
            packed(&[entry("load", "b", 20, 0.5), entry("up", "b", 10, 1.0), entry("up", "b", 20, STALE)]),
        ];
        assert_eq!(rows.each_ref().map(|row| row.samples), [2, 3]);
        let request = read(&merged(&rows).unwrap());
        let shown: Vec<_> = request
            .series
            .iter()
            .map(|series| {
                let labels: Vec<_> =
                    series.labels.iter().map(|label| format!("{}={}", label.name, label.value)).collect();
                let samples: Vec<_> = series
                    .samples
                    .iter()
                    .map(|it| (it.timestamp, it.value.unwrap_or(0.0).to_bits()))
                    .collect();
                (labels.join(","), samples)
            })
            .collect();
        let samples = |samples: &[(i64, f64)]| -> Vec<(i64, u64)> {
            samples.iter().map(|(at, value)| (*at, value.to_bits())).collect()
        };
        let expected = [
            ("__name__=load,node=b,tenant=prod".to_owned(), samples(&[(20, 0.5)])),
            ("__name__=up,node=a,tenant=prod".to_owned(), samples(&[(30, -0.0)])),
            ("__name__=up,node=b,tenant=prod".to_owned(), samples(&[(10, 1.0), (20, STALE), (30, 3.0)])),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_damaged_is_told() {
        let mut row = packed(&[entry("up", "a", 1, 1.0)]);
        row.bytes.truncate(row.bytes.len() / 2);
        assert_eq!(merged(&[row]), None);
    }
}
