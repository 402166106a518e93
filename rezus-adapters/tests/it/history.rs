//! The history under the laws of its port, and what only files and months show.

mod damage;
mod fixture;
mod jump;
mod kill;
mod month;
mod random;
mod readers;
mod start;
mod tiers;

use fixture::Store;
use rezus_adapters::history::HistorySettings;

rezus_testkit::time_series_contract!(Store::new(HistorySettings::default()));
rezus_testkit::durable_time_series_contract!(Store::new(HistorySettings::default()));
