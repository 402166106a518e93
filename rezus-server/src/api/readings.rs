//! The turns of reading a tenant's cluster, as they come in: what a recording is made of.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::observed::Recording;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Path;
use super::tenants::record;
use crate::collector::Turn;
use crate::compose::Plane;
use crate::error::ApiError;
use crate::serve::Draining;

/// A stream of turns.
struct Followed {
    tenant: TenantName,
    began: Timestamp,
    turns: Receiver<Turn>,
    draining: Draining,
}

/// Answers with one line for each turn, until the client has enough or the server ends.
pub(super) async fn follow(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let tenant = record(&plane, &name).await?.name;
    let (began, turns) = (plane.clock.now(), plane.board.turns());
    let followed = Followed { tenant, began, turns, draining: plane.draining.clone() };
    let lines = stream::unfold(followed, |mut followed| async move {
        let line = followed.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(line)), followed))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

impl Followed {
    async fn next(&mut self) -> Option<String> {
        loop {
            let turn = tokio::select! {
                turn = self.turns.recv() => turn,
                () = self.draining.begun() => return None,
            };
            match turn {
                Ok(Turn { tenant, source, reading }) if tenant == self.tenant => {
                    return Some(Recording::line(self.began, source, &reading) + "\n");
                }
                // Some are left out of the recording: whoever reads it is too slow.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
