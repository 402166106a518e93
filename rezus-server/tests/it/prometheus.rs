//! Series as Prometheus' HTTP API gives them: the same as a real one, to whoever may see them, for what Grafana asks.

mod grafana;
mod lab;
mod limits;
mod sight;
