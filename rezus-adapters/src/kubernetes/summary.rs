//! What kubelets themselves tell of their nodes, through the API server: asked where there is no metrics server, a few nodes
//! in each turn.

use std::collections::BTreeMap;
use std::time::Duration;

use rezus_core::observed::Failure;
use rezus_core::observed::facts::{Node, Usage};
use tokio::time::Instant;

use super::poll::Poll;

/// How many nodes are asked in a turn: each answer passes through the API server.
const NODES: usize = 16;

/// How often one node is asked.
const AGAIN: Duration = Duration::from_mins(5);

/// How long nobody is asked once it was refused.
const REFUSED: Duration = Duration::from_hours(1);

/// What was told, and when each node was asked last.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    asked: BTreeMap<String, (Instant, Option<Usage>)>,
    refused_at: Option<Instant>,
}

impl Summaries {
    /// Asks those nodes that were asked longest ago, and gives what is known of all.
    ///
    /// # Errors
    ///
    /// [`Failure`] where that is refused.
    pub(super) async fn read(
        &mut self,
        poll: &mut Poll<'_>,
        nodes: &[Node],
        until: Instant,
    ) -> Result<Vec<Usage>, Failure> {
        let now = Instant::now();
        if self.refused_at.is_some_and(|at| now.duration_since(at) < REFUSED) {
            return Ok(Vec::new());
        }
        self.asked.retain(|name, _| nodes.binary_search_by(|node| node.name.as_str().cmp(name)).is_ok());
        let last = |node: &Node| self.asked.get(&node.name).map(|(at, _)| *at);
        let mut due: Vec<(Option<Instant>, String)> = nodes
            .iter()
            .map(|node| (last(node), node.name.clone()))
            .filter(|(at, _)| at.is_none_or(|at| now.duration_since(at) >= AGAIN))
            .collect();
        due.sort();
        for (_, name) in due.into_iter().take(NODES) {
            if Instant::now() >= until {
                break;
            }
            match poll.summary(&name, until).await {
                Ok(usage) => drop(self.asked.insert(name, (now, Some(usage)))),
                Err(failure @ Failure::Forbidden { .. }) => {
                    self.refused_at = Some(now);
                    return Err(failure);
                }
                // A kubelet that does not answer is seen by its node; the others are asked all the same.
                Err(_) => drop(self.asked.insert(name, (now, None))),
            }
        }
        let known = self.asked.values().filter(|(at, _)| now.duration_since(*at) < 2 * AGAIN);
        Ok(known.filter_map(|(_, usage)| usage.clone()).collect())
    }
}
