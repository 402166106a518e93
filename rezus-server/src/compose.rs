//! The composition root: the only place that names adapters.

use std::sync::Arc;

use axum::Router;
use rezus_adapters::clock::SystemClock;
use rezus_adapters::sqlite::{OpenError, SqliteStore};
use rezus_core::access::AccountStore;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::declared::backend::StateBackend;
use rezus_core::declared::compute::Compute;
use rezus_core::declared::mapping::{Mappings, MappingsInForce};
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::projector::Projector;
use rezus_core::declared::reader::StateReader;
use rezus_core::declared::store::{HistoryStore, IndexStore, StateStore};

use crate::auth::{self, Auth};
use crate::config::{Config, StateConfig};
use crate::data_dir::{DataDir, DataDirError, DataDirLock};
use crate::kube::catalogue::Catalogue;
use crate::kube::past::Past;
use crate::mapping_files::MappingsError;
use crate::serve::{Draining, Limits, limited};
use crate::state_backend::Intake;
use crate::sweep::Sweep;
use crate::telemetry::Metrics;
use crate::{api, kube, peer, state_backend, telemetry};

/// What routes work with.
#[derive(Clone, Debug)]
pub struct Plane {
    /// Who asks, and the trail of what was done.
    pub auth: Auth,
    /// The rules over the store.
    pub backend: StateBackend,
    /// Reads through the index.
    pub reader: StateReader,
    /// What states declare, as resources.
    pub projector: Projector,
    /// What they declared as of a version.
    pub past: Past,
    /// What is shown of them.
    pub catalogue: Catalogue,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The server's own metrics.
    pub metrics: Arc<Metrics>,
    /// Bodies under way.
    pub intake: Arc<Intake>,
    /// Where long computing is done.
    pub compute: Arc<dyn Compute>,
    /// Versions that are let go.
    pub sweep: Sweep,
    /// The state backend's limits.
    pub limits: Arc<StateConfig>,
    /// What requests are held to, and how many are under way.
    pub admission: Limits,
    /// Tells when the server is about to end.
    pub draining: Draining,
    /// The URLs of the listeners, once they are bound.
    pub listeners: Arc<std::sync::OnceLock<Vec<String>>>,
}

/// A plane over a data directory, which it holds for itself.
#[derive(Debug)]
pub struct Composed {
    /// The plane.
    pub plane: Plane,
    /// The right to the data directory: given back when dropped.
    pub lock: DataDirLock,
}

/// Why there is no plane.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be had.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// The mappings are not sound.
    #[error(transparent)]
    Mappings(MappingsError),
}

/// Puts a plane together over a data directory that exists.
///
/// # Errors
///
/// [`StartError`] if another process has the directory, or its database cannot be opened.
pub fn compose(config: &Config, data_dir: &DataDir) -> Result<Composed, StartError> {
    let lock = data_dir.lock()?;
    data_dir.check()?;
    let store = SqliteStore::open(&data_dir.database())?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mappings = mappings(config)?;
    Ok(Composed { plane: plane(config, Stores::of(store), clock, mappings), lock })
}

/// Reads the mappings in force: the built-in ones, and those of the configured directory.
fn mappings(config: &Config) -> Result<Mappings, StartError> {
    match &config.projection.mappings {
        Some(dir) => crate::mapping_files::load(dir).map_err(StartError::Mappings),
        None => Ok(Mappings::built_in()),
    }
}

/// The stores that a plane works on: one adapter or several.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Tenants, versions and locks.
    pub states: Arc<dyn StateStore>,
    /// The derived index.
    pub index: Arc<dyn IndexStore>,
    /// The table of object history.
    pub history: Arc<dyn HistoryStore>,
    /// The mark of resource versions.
    pub mark: Arc<dyn VersionMark>,
    /// Users, tokens, and the audit trail.
    pub accounts: Arc<dyn AccountStore>,
}

impl Stores {
    /// All of them in one file.
    pub fn of(store: SqliteStore) -> Self {
        Self {
            states: Arc::new(store.clone()),
            index: Arc::new(store.clone()),
            history: Arc::new(store.clone()),
            mark: Arc::new(store.clone()),
            accounts: Arc::new(store),
        }
    }
}

/// Puts a plane together over given ports.
pub fn plane(config: &Config, stores: Stores, clock: Arc<dyn Clock>, mappings: Mappings) -> Plane {
    let Stores { states, index, history, mark, accounts } = stores;
    let intake = Arc::new(Intake::new(&config.state));
    let metrics = Arc::new(Metrics::new());
    let compute: Arc<dyn Compute> = Arc::<Intake>::clone(&intake);
    let mappings = MappingsInForce::new(mappings);
    let reader = StateReader::new(Arc::clone(&states), index, Arc::clone(&compute), mappings.clone());
    let projector =
        Projector::new(Arc::clone(&states), reader.clone(), history, Arc::clone(&compute), mappings.clone())
            .with_notices(Arc::<Metrics>::clone(&metrics));
    Plane {
        auth: Auth::new(&config.auth, &config.audit, accounts, Arc::clone(&clock)),
        past: Past::new(Arc::clone(&states), projector.clone()),
        catalogue: Catalogue::new(
            Arc::clone(&states),
            projector.clone(),
            reader.clone(),
            mark,
            Arc::clone(&clock),
        ),
        projector,
        sweep: Sweep::new(Arc::clone(&states), Arc::clone(&clock), config.retention.policy()),
        backend: StateBackend::new(states, Arc::clone(&clock), Arc::clone(&compute), mappings),
        reader,
        clock,
        metrics,
        intake,
        compute,
        limits: Arc::new(config.state.clone()),
        admission: Limits::new(&config.limits),
        draining: Draining::new(),
        listeners: Arc::default(),
    }
}

/// Returns the machine's time, for commands that show ages.
pub fn now() -> Timestamp {
    SystemClock.now()
}

/// Returns all routes over a plane. Requests must carry a [`Peer`](crate::peer::Peer) as their connection's info.
pub fn router(plane: &Plane) -> Router {
    let routes = state_backend::routes(plane.clone())
        .merge(api::routes(plane.clone()))
        .merge(kube::routes(plane.clone()))
        .merge(kube::discovery::routes())
        .merge(kube::openapi::routes())
        .merge(kube::review::routes())
        .merge(telemetry::routes(plane.clone()))
        .fallback(api::unknown_path)
        .method_not_allowed_fallback(api::unknown_method);
    let routes = limited(peer::guarded(auth::authenticated(routes, plane)), plane.admission.clone());
    // Outside of all that answers without reading a body.
    let routes = state_backend::bounded(routes, &plane.limits);
    telemetry::observed(routes, Arc::clone(&plane.metrics))
}
