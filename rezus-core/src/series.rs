//! The history of the status plane: samples of series over time, as Prometheus has them. Nothing here knows a state.
//!
//! A series is a set of [`Labels`], its metric's name (`__name__`) and its `tenant` among them; a [`Sample`] is one value of
//! it at one time. What takes samples is a [`TimeSeriesSink`]; what can be asked for them again is a [`TimeSeries`].
//!
//! # What becomes of unusual samples
//!
//! | sample | what becomes of it |
//! | --- | --- |
//! | a counter that fell | kept as it is; [`counter_increase`] counts what came after the fall, as Prometheus does |
//! | of the time of one that is there | the first one stays; a repeat of the newest is counted ([`Appended::repeated`]) |
//! | out of order, not older than [`Window::late`] | kept in its place, whatever the order of arrival |
//! | older than that | refused and counted ([`Appended::late`]) |
//! | ahead of the clock by more than [`Window::early`] | refused and counted ([`Appended::early`]) |
//! | after the clock was set back | as any other: the measure is the clock, not the newest sample |
//! | NaN, infinite, minus zero | kept bit for bit; left out of rollups where they are no number |
//! | [`STALE`] | kept: the series ended here; it is no value |

mod gorilla;
mod labels;
mod matcher;
mod port;
#[cfg(feature = "promql")]
pub mod promql;
mod rollup;
mod sample;

pub use gorilla::{Pack, Packer};
pub use labels::{Labels, LabelsError, NAME, TENANT};
pub use matcher::{Matcher, MatcherError, Operator};
pub use port::{
    Appended, Entry, Forwarded, Forwarder, Selection, Series, SeriesError, TimeSeries, TimeSeriesSink, Window,
};
pub use rollup::{roll_up, widen};
pub use sample::{Rollup, STALE, Sample, counter_increase};
