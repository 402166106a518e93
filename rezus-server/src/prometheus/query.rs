//! Evaluating: read what a query selects, compute on a thread that may take its time, answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::series::promql::{Query, Range};
use rezus_core::series::{Selection, Series, TimeSeries};

use super::answer::{Answer, Refusal, write_value};
use super::params::Params;
use crate::compose::Plane;

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
    // A regular expression can take a while to be understood.
    let parsed = tokio::task::spawn_blocking(move || Query::parse(&text)).await;
    let query = parsed.map_err(|error| Refusal::internal(error.to_string()))??;
    if query.is_window() && !range.is_instant() {
        return Err(Refusal::parameter(
            "query",
            "invalid expression type \"range vector\" for range query, must be Scalar or instant Vector",
        ));
    }
    let config = &plane.queries.config;
    let timeout = params.duration("timeout")?.unwrap_or(Duration::MAX).min(config.timeout.0);
    let late = || Refusal::timeout("query timed out in query execution");
    let work = async {
        // Of so many at a time, so that their memory is bounded.
        let place = Arc::clone(&plane.queries.places).acquire_owned().await;
        let place = place.map_err(|_| Refusal::internal("no more queries are evaluated"))?;
        let selections = query.selections(range, params.tenants.as_ref(), config.max_samples);
        let data = select(plane.series.as_ref(), selections).await?;
        let limit = config.max_samples;
        let clock = Arc::clone(&plane.clock);
        let end = clock.now().after(timeout);
        let is_left = Arc::new(AtomicBool::new(false));
        let waiting = Waiting(Arc::clone(&is_left));
        let computed = tokio::task::spawn_blocking(move || {
            let is_over = || is_left.load(Ordering::Relaxed) || is_past(clock.as_ref(), end);
            let answer = query.evaluate(range, &data, limit, &is_over).map(|value| write_value(&value));
            drop(place);
            answer
        });
        let answer = computed.await.map_err(|error| Refusal::internal(error.to_string()))?;
        drop(waiting);
        Ok(Answer::new(answer?))
    };
    tokio::time::timeout(timeout, work).await.map_err(|_| late())?
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
