//! Evaluating: read what a query selects, compute on a thread that may take its time, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::series::promql::{Query, Range};
use rezus_core::series::{Selection, Series, TimeSeries};

use super::answer::{Answer, Refusal, write_value};
use super::params::Params;
use crate::compose::Plane;

/// How large an answer may be, in bytes: it is in memory until it was read.
const MOST_BYTES: usize = 64 << 20;

/// Evaluates at one time.
pub(super) async fn instant(State(plane): State<Plane>, params: Params) -> Result<Answer, Refusal> {
    let range = Range::at(params.time_or("time", plane.clock.now())?);
    evaluate(&plane, &params, range).await
}

/// Evaluates at steps.
pub(super) async fn range(State(plane): State<Plane>, params: Params) -> Result<Answer, Refusal> {
    let step = params.duration("step")?;
    let step = step.ok_or_else(|| Refusal::parameter("step", "cannot parse \"\" to a valid duration"))?;
    let range = Range::new(params.time("start")?, params.time("end")?, step)?;
    evaluate(&plane, &params, range).await
}

/// Tells the work that nobody waits for it any more.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn evaluate(plane: &Plane, params: &Params, range: Range) -> Result<Answer, Refusal> {
    let text = params.get("query").unwrap_or_default().to_owned();
    let longest = plane.queries.time();
    let timeout = params.duration("timeout")?.unwrap_or(longest).min(longest);
    let (store, clock, tenants) =
        (Arc::clone(&plane.series), Arc::clone(&plane.clock), params.tenants.clone());
    let limit = plane.queries.config.max_samples;
    let is_left = Arc::new(AtomicBool::new(false));
    let _waiting = Waiting(Arc::clone(&is_left));
    let work = async move {
        let end = clock.now().after(timeout);
        let broken = |error: tokio::task::JoinError| Refusal::internal(error.to_string());
        // A regular expression can take a while to be understood.
        let query = tokio::task::spawn_blocking(move || Query::parse(&text)).await.map_err(broken)??;
        if query.is_window() && !range.is_instant() {
            return Err(Refusal::parameter(
                "query",
                "invalid expression type \"range vector\" for range query, must be Scalar or instant Vector",
            ));
        }
        let data = select(store.as_ref(), query.selections(range, tenants.as_ref(), limit)).await?;
        let computed = tokio::task::spawn_blocking(move || {
            let is_over = || is_left.load(Ordering::Relaxed) || is_past(clock.as_ref(), end);
            query.evaluate(range, &data, limit, &is_over).map(|value| write_value(&value))
        });
        let answer = computed.await.map_err(broken)??;
        if answer.len() > MOST_BYTES {
            return Err(Refusal::too_much(format!(
                "the answer has more than {} MiB: ask for a shorter time, fewer series, or wider steps",
                MOST_BYTES >> 20
            )));
        }
        Ok(Answer::new(answer))
    };
    plane.queries.run(timeout, work).await?
}

fn is_past(clock: &dyn Clock, end: Timestamp) -> bool {
    clock.now() >= end
}

/// Reads what is selected; all of it together may be as much as each.
async fn select(series: &dyn TimeSeries, selections: Vec<Selection>) -> Result<Vec<Vec<Series>>, Refusal> {
    let mut read = Vec::with_capacity(selections.len());
    let mut left = selections.first().map_or(0, |selection| selection.limit);
    for selection in selections {
        let found = series.select(&Selection { limit: left, ..selection }).await?;
        let size: usize = found.iter().map(|series| series.samples.len() + series.rolled.len()).sum();
        left = left.saturating_sub(size);
        read.push(found);
    }
    Ok(read)
}
