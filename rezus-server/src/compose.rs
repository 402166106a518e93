//! The composition root: the only place that names adapters.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rezus_adapters::clock::SystemClock;
use rezus_adapters::history::{History, HistoryError, HistorySettings, Sync, Tended};
use rezus_adapters::kubernetes::KubernetesScraper;
use rezus_adapters::node_metrics::NodeMetricsScraper;
use rezus_adapters::process::{ProcessConfig, ProcessExecutor};
use rezus_adapters::recorded::RecordedScraper;
use rezus_adapters::remote_write::{RemoteWrite, RemoteWriteConfig, RemoteWriteError};
use rezus_adapters::ring::{Ring, RingSettings, SeriesCaps};
use rezus_adapters::sqlite::{OpenError, SqliteStore};
use rezus_adapters::talos::TalosScraper;
use rezus_core::access::AccountStore;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::declared::backend::StateBackend;
use rezus_core::declared::compute::Compute;
use rezus_core::declared::mapping::{Mappings, MappingsInForce};
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::projector::Projector;
use rezus_core::declared::reader::StateReader;
use rezus_core::declared::store::{HistoryStore, IndexStore, StateStore};
use rezus_core::observed::{ClusterScraper, Source};
use rezus_core::runs::executor::TofuExecutor;
use rezus_core::runs::store::RunStore;
use rezus_core::series::{Forwarder, TimeSeries};

use crate::auth::{self, Auth};
use crate::collector::{self, Board, Collector, Scrapers, Targets};
use crate::config::{Config, SeriesConfig, SeriesSync, StateConfig};
use crate::data_dir::{DataDir, DataDirError, DataDirLock};
use crate::error::Chain;
use crate::kube::catalogue::{self, Catalogue, Observed, RunsShown};
use crate::kube::past::Past;
use crate::mapping_files::MappingsError;
use crate::prometheus::{self, Queries};
use crate::pulls::{Desk, Pulls};
use crate::runs::{Live, Means, Runs};
use crate::samples::Samples;
use crate::secrets::Secrets;
use crate::serve::{Draining, Limits, limited};
use crate::state_backend::Intake;
use crate::sweep::Sweep;
use crate::telemetry::Metrics;
use crate::workspaces::Workspaces;
use crate::{api, kube, peer, state_backend, telemetry, tls};

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
    /// Runs.
    pub runs: Runs,
    /// Plaintexts of encrypted states.
    pub pulls: Pulls,
    /// Which of them are wanted.
    pub desk: Desk,
    /// Where runs are kept, and what is set of tenants.
    pub run_store: Arc<dyn RunStore>,
    /// What is set of tenants.
    pub workspaces: Workspaces,
    /// With what their clusters are reached.
    pub secrets: Secrets,
    /// What was seen of them.
    pub board: Board,
    /// Who looks at them.
    pub collector: Collector,
    /// What was sampled of that.
    pub series: Arc<dyn TimeSeries>,
    /// Samples on their way there.
    pub samples: Samples,
    /// By what they are sent on as well, if anywhere.
    pub forwarder: Option<Arc<dyn Forwarder>>,
    /// What is to be done for their store.
    pub upkeep: SeriesUpkeep,
    /// What queries of it are held to.
    pub queries: Queries,
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
    /// The store of samples cannot be opened.
    #[error(transparent)]
    Series(#[from] HistoryError),
    /// Samples cannot be sent on.
    #[error(transparent)]
    RemoteWrite(#[from] RemoteWriteError),
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
    let (series, upkeep) = series(&config.series, data_dir, &clock)?;
    let forwarder = forwarder(&config.series, data_dir, &clock)?;
    let stores = Stores::of(store, series);
    let plane = plane(config, stores, executor(config, data_dir), scrapers(&clock), clock, mappings);
    Ok(Composed { plane: Plane { forwarder, upkeep, ..plane }, lock })
}

/// Opens the store of samples. Where none are kept, nothing is on disk.
fn series(
    config: &SeriesConfig,
    data_dir: &DataDir,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<dyn TimeSeries>, SeriesUpkeep), StartError> {
    let caps = SeriesCaps { per_tenant: config.max_series_per_tenant, total: config.max_series };
    let ring = RingSettings { hot: config.hot.0, caps, ..RingSettings::default() };
    if !config.enabled {
        return Ok((Arc::new(Ring::new(ring, Arc::clone(clock))), SeriesUpkeep::default()));
    }
    data_dir.create_series()?;
    let days = |days: u32| Duration::from_hours(24) * days;
    let settings = HistorySettings {
        ring,
        raw: days(config.keep_raw_days),
        fine: days(config.keep_5m_days),
        coarse: days(config.keep_1h_days),
        max_bytes: Some(config.max_bytes.0),
        sync: match config.sync {
            SeriesSync::Process => Sync::Process,
            SeriesSync::Power => Sync::Power,
        },
    };
    match History::open(&data_dir.series(), settings, Arc::clone(clock)) {
        Ok(history) => Ok((Arc::new(history.clone()), SeriesUpkeep(Some(history)))),
        Err(error @ HistoryError::Order) => Err(error.into()),
        Err(error) => {
            // States and their locks are worth more than samples.
            let cause = crate::error::Chain(&error);
            tracing::error!(%cause, "samples cannot be opened: until the next start they are kept in memory alone");
            Ok((Arc::new(Ring::new(ring, Arc::clone(clock))), SeriesUpkeep::default()))
        }
    }
}

/// Opens the queue of samples that are sent on, where any are.
fn forwarder(
    config: &SeriesConfig,
    data_dir: &DataDir,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Arc<dyn Forwarder>>, StartError> {
    let Some(remote) = config.remote_write.as_ref() else { return Ok(None) };
    let remote = RemoteWriteConfig {
        url: remote.url.clone(),
        bearer_token_file: remote.bearer_token_file.clone(),
        basic_auth_file: remote.basic_auth_file.clone(),
        ca_file: remote.ca_file.clone().or_else(|| tls::system_authorities().map(Path::to_owned)),
        queue: data_dir.series().join("remote-write.db"),
        queue_bytes: remote.queue.0,
    };
    Ok(Some(Arc::new(RemoteWrite::open(&remote, Arc::clone(clock))?)))
}

/// Executes tofu and terraform as child processes, under supervisors that are this program once more.
fn executor(config: &Config, data_dir: &DataDir) -> Arc<dyn TofuExecutor> {
    let runs = &config.runs;
    let cache = runs.plugin_cache.clone().unwrap_or_else(|| data_dir.plugin_cache());
    Arc::new(ProcessExecutor::new(ProcessConfig {
        dir: data_dir.runs(),
        work: runs.work.clone().unwrap_or_else(|| data_dir.work()),
        // By this name it is found even where the file was replaced by a newer release meanwhile.
        supervisor: vec!["/proc/self/exe".into(), SUPERVISE.into()],
        run_as: runs.run_as.map(|it| (it.uid, it.gid)),
        plugin_cache: Some(cache),
    }))
}

/// Reads clusters.
fn scrapers(clock: &Arc<dyn Clock>) -> Vec<Scrapers> {
    let recorded =
        |source| -> Arc<dyn ClusterScraper> { Arc::new(RecordedScraper::new(source, Arc::clone(clock))) };
    let live = |source| -> Arc<dyn ClusterScraper> {
        let clock = Arc::clone(clock);
        match source {
            Source::Kubernetes => Arc::new(KubernetesScraper::new(clock)),
            Source::Talos => Arc::new(TalosScraper::new(clock)),
            Source::NodeMetrics => Arc::new(NodeMetricsScraper::new(clock)),
        }
    };
    Source::ALL.map(|source| Scrapers { live: live(source), recorded: recorded(source) }).into()
}

/// The command by which this program becomes a supervisor.
pub const SUPERVISE: &str = "supervise";

/// Watches over a run's program, as its job on standard input says.
pub fn supervise() -> std::process::ExitCode {
    rezus_adapters::process::supervise()
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
    /// Runs, and what is set of tenants.
    pub runs: Arc<dyn RunStore>,
    /// Samples of what is observed.
    pub series: Arc<dyn TimeSeries>,
}

/// What is to be done for the store of samples now and then: to move it to files, and to remove what is old.
#[derive(Clone, Debug, Default)]
pub struct SeriesUpkeep(Option<History>);

/// How often.
const TEND: Duration = Duration::from_secs(5);

impl SeriesUpkeep {
    /// Tends the store, until it is dropped.
    pub async fn run(self) {
        let Some(history) = self.0 else { return };
        loop {
            match history.tend().await {
                Ok(Tended { more, set_aside }) => {
                    for damaged in &set_aside {
                        tracing::error!(cause = %Chain(damaged), "samples are lost");
                    }
                    tokio::time::sleep(if more { TEND / 50 } else { TEND }).await;
                }
                Err(error) => {
                    tracing::warn!(cause = %Chain(&error), "the store of samples cannot be tended now");
                    tokio::time::sleep(TEND * 12).await;
                }
            }
        }
    }

    /// Returns how many bytes of samples are on disk, by the kind of the files.
    pub fn bytes(&self) -> BTreeMap<&'static str, u64> {
        self.0.as_ref().map(History::bytes_by_kind).unwrap_or_default()
    }
}

impl Stores {
    /// All of them in one file, but for samples.
    pub fn of(store: SqliteStore, series: Arc<dyn TimeSeries>) -> Self {
        Self {
            states: Arc::new(store.clone()),
            index: Arc::new(store.clone()),
            history: Arc::new(store.clone()),
            mark: Arc::new(store.clone()),
            accounts: Arc::new(store.clone()),
            runs: Arc::new(store),
            series,
        }
    }
}

/// Puts a plane together over given ports.
pub fn plane(
    config: &Config,
    stores: Stores,
    executor: Arc<dyn TofuExecutor>,
    scrapers: Vec<Scrapers>,
    clock: Arc<dyn Clock>,
    mappings: Mappings,
) -> Plane {
    let Stores { states, index, history, mark, accounts, runs, series } = stores;
    let intake = Arc::new(Intake::new(&config.state));
    let metrics = Arc::new(Metrics::new());
    let compute: Arc<dyn Compute> = Arc::<Intake>::clone(&intake);
    let mappings = MappingsInForce::new(mappings);
    let reader = StateReader::new(Arc::clone(&states), index, Arc::clone(&compute), mappings.clone());
    let projector =
        Projector::new(Arc::clone(&states), reader.clone(), history, Arc::clone(&compute), mappings.clone())
            .with_notices(Arc::<Metrics>::clone(&metrics));
    let auth = Auth::new(&config.auth, &config.audit, accounts, Arc::clone(&clock));
    let live = Live::default();
    let workspaces = Workspaces::new(Arc::clone(&runs), &config.tenants);
    let shown = RunsShown { store: Arc::clone(&runs), live: live.clone(), workspaces: workspaces.clone() };
    let secrets = Secrets::new(Arc::clone(&states), reader.clone(), workspaces.clone());
    let desk = Desk::default();
    let board = Board::default();
    let samples = Samples::new(Arc::clone(&series), config.series.enabled);
    let catalogue = Catalogue::new(catalogue::Means {
        states: Arc::clone(&states),
        projector: projector.clone(),
        secrets: secrets.clone(),
        runs: shown,
        mark,
        clock: Arc::clone(&clock),
        desk: desk.clone(),
        observed: Observed::new(board.clone(), &config.collector),
    });
    let collector = Collector::new(collector::Means {
        scrapers,
        targets: Targets::new(secrets.clone(), workspaces.clone(), catalogue.clone()),
        states: Arc::clone(&states),
        workspaces: workspaces.clone(),
        board: board.clone(),
        samples: samples.clone(),
        clock: Arc::clone(&clock),
        config: config.collector.clone(),
    });
    let backend = StateBackend::new(Arc::clone(&states), Arc::clone(&clock), Arc::clone(&compute), mappings)
        .with_encryption(config.encryption());
    let listeners = Arc::default();
    let runs_of = Runs::new(Means {
        store: Arc::clone(&runs),
        executor,
        backend: backend.clone(),
        reader: reader.clone(),
        projector: projector.clone(),
        auth: auth.clone(),
        catalogue: catalogue.clone(),
        live,
        clock: Arc::clone(&clock),
        desk: desk.clone(),
        config: config.runs.clone(),
        workspaces: workspaces.clone(),
        listeners: Arc::clone(&listeners),
    });
    let plaintexts = reader.plaintexts().clone();
    Plane {
        pulls: Pulls::new(runs_of.clone(), desk.clone(), plaintexts, catalogue.clone(), Arc::clone(&clock)),
        desk,
        past: Past::new(Arc::clone(&states), projector.clone()),
        sweep: Sweep::new(states, Arc::clone(&clock), config.retention.policy()),
        runs: runs_of,
        auth,
        catalogue,
        projector,
        backend,
        reader,
        secrets,
        board,
        collector,
        series,
        samples,
        forwarder: None,
        upkeep: SeriesUpkeep::default(),
        queries: Queries::new(&config.query),
        workspaces,
        run_store: runs,
        clock,
        metrics,
        intake,
        compute,
        limits: Arc::new(config.state.clone()),
        admission: Limits::new(&config.limits).with_uploads(config.runs.max_configuration),
        draining: Draining::new(),
        listeners,
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
        .merge(prometheus::routes(plane.clone()))
        .merge(telemetry::routes(plane.clone()))
        .fallback(api::unknown_path)
        .method_not_allowed_fallback(api::unknown_method);
    let routes = limited(peer::guarded(auth::authenticated(routes, plane)), plane.admission.clone());
    // Outside of all that answers without reading a body.
    let routes = prometheus::worded(state_backend::bounded(routes, &plane.limits));
    telemetry::observed(routes, Arc::clone(&plane.metrics))
}
