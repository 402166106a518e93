//! The status plane: what was seen, by whom, and how old the news is. Nothing here knows a state.
//!
//! A [`ClusterScraper`] reads one [`Source`] of one cluster once and gives a [`Reading`]: [`facts`] it read, and a
//! [`Failure`] for each part that it could not read. What is made of them is computed by pure functions each time somebody
//! looks: an observer that died leaves values that age.

mod exposition;
pub mod facts;
mod failure;
mod incarnation;
pub mod judge;
mod matching;
mod node_id;
mod observation;
mod picture;
mod pods;
mod quantity;
mod recording;
mod sampling;
mod scraper;
mod source;

pub use exposition::{Exposed, Exposition, ExpositionError, ExpositionLimits, Labels, LineFault, Sample};
pub use failure::{Failure, Phase, TlsFault};
pub use incarnation::{Incarnation, Incarnations, Marks, Recognized};
pub use matching::{Claim, Found, Identity, Matches, Rule, Seen, matched};
pub use node_id::machine_id;
pub use observation::{Freshness, Observation, Pace};
pub use picture::{KubernetesPicture, Picture, Standing, TalosPicture};
pub use pods::{ContainerKind, ContainerSeen, Ended, PodBook, PodCondition, PodPhase, PodSeen};
pub use quantity::{Quantity, QuantityError};
pub use recording::{Recording, RecordingError};
pub use sampling::{MetricInfo, MetricKind, Sampler, cluster_series, clusters, metrics};
pub use scraper::{ClusterScraper, Credential, Destinations, Reading, Session, Target};
pub use source::Source;
