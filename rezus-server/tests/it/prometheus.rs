//! Series as Prometheus' HTTP API gives them: the same as a real one, to whoever may see them, for what Grafana asks.

mod compare;
mod generate;
mod grafana;
mod lab;
mod limits;
mod real;
mod sight;
mod spans;
