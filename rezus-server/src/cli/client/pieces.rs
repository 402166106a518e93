//! An answer that is read as it comes, however long it is.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::task::JoinHandle;

use super::ClientError;

/// The body of an answer, piece by piece.
#[derive(Debug)]
pub(in crate::cli) enum Pieces {
    Http(reqwest::Response),
    Https(Incoming, #[expect(dead_code, reason = "held while the body is read")] Connection),
    InProcess(Body),
}

/// A connection that ends with its answer.
#[derive(Debug)]
pub(in crate::cli) struct Connection(pub(super) JoinHandle<Result<(), hyper::Error>>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pieces {
    /// The next piece; `None` at the end.
    pub(in crate::cli) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let frame = match self {
                Self::Http(answer) => return answer.chunk().await.map_err(ClientError::Http),
                Self::Https(body, _) => body.frame().await.transpose().map_err(ClientError::Broken)?,
                Self::InProcess(body) => {
                    body.frame().await.transpose().map_err(|_| ClientError::Strange(200))?
                }
            };
            match frame.map(hyper::body::Frame::into_data) {
                None => return Ok(None),
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers say nothing here.
                Some(Err(_)) => {}
            }
        }
    }

    /// All that is left.
    pub(super) async fn rest(mut self) -> Result<Bytes, ClientError> {
        let mut rest = Vec::new();
        while let Some(piece) = self.next().await? {
            rest.extend_from_slice(&piece);
        }
        Ok(rest.into())
    }
}
