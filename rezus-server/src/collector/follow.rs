//! Reads one source of one tenant, turn after turn.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::observed::{Failure, Reading, Session, Source};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Inner, Paces, Scrapers, Whom};

/// How long a turn may take; a scraper ends earlier by itself.
const LONGEST: Duration = Duration::from_secs(45);
const GRACE: Duration = Duration::from_secs(5);

/// Over how long the first turns of tenants are spread.
const SPREAD: Duration = Duration::from_secs(5);

/// How long one waits at least after news that came by itself: a burst of it is one turn.
const BREATH: Duration = Duration::from_millis(250);

/// The first and the longest wait after a turn that told nothing, and for whose cause trying again soon is of no use.
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// How often it is looked whether another credential is in force while one waits for a turn that is far off.
const LOOK: Duration = Duration::from_secs(30);

/// Who was asked last, and the session that does; none where that could not be opened, or went wrong.
struct Opened {
    whom: Whom,
    /// When what is shown to it is valid no longer, where anything is.
    expires_at: Option<Timestamp>,
    /// The key by which its certificate is verified, where it has one.
    authority: Option<String>,
    session: Option<Box<dyn Session>>,
}

/// Reads one source of a tenant until the task is ended, once it has `begun`.
// Inside, and not around it: a future that holds another one is twice as large, and there are three of each tenant.
pub(super) async fn follow(
    inner: Arc<Inner>,
    tenant: TenantName,
    scrapers: Scrapers,
    begun: Shared<BoxFuture<'static, ()>>,
) {
    begun.await;
    let source = scrapers.live.source();
    let every = Paces::of(&inner.means.config).of_source(source).0;
    let mut opened: Option<Opened> = None;
    let mut silent: u32 = 0;
    // The first news is not waited for longer than needed: as far apart as tenants are, they stay.
    let mut turn = Instant::now() + jitter(&tenant, source, every.min(SPREAD));
    loop {
        sleep_until(turn).await;
        let reading = match open(&inner, &tenant, &scrapers, &mut opened).await {
            // The tenant has nothing that is read so: there is nothing to say of it.
            Ok(false) => {
                inner.means.board.has_none(&tenant, source);
                None
            }
            Ok(true) => Some(read(&inner, &mut opened, silent, every.min(LONGEST)).await),
            Err(failure) => Some(nothing(&inner, failure)),
        };
        let backs_off = reading.as_ref().is_some_and(|reading| {
            reading.facts.is_none() && reading.failures.iter().any(|(_, failure)| failure.backs_off())
        });
        let wait = if backs_off {
            silent = silent.saturating_add(1);
            retry_after(reading.as_ref()).unwrap_or_else(|| back_off(silent, every))
        } else {
            silent = 0;
            // Whoever asks for fewer requests of some kind gets fewer of all, but not so few that what it tells grows old.
            let is_too_much =
                |(_, failure): &(String, Failure)| matches!(failure, Failure::RateLimited { .. });
            let is_limited = reading.as_ref().is_some_and(|reading| reading.failures.iter().any(is_too_much));
            if is_limited { every.saturating_mul(2) } else { every }
        };
        if let Some(mut reading) = reading {
            let (expires_at, authority) = opened
                .as_ref()
                .map_or((None, None), |opened| (opened.expires_at, opened.authority.as_deref()));
            let incarnation = inner.means.board.recognize(&tenant, source, &mut reading, authority);
            inner.means.samples.take(&tenant, source, &reading, &incarnation, expires_at, every);
            inner.means.board.take(&tenant, source, reading);
        }
        turn = Instant::now() + wait;
        wait_for(&inner, &tenant, source, &mut opened, turn).await;
        turn = turn.min(Instant::now());
    }
}

/// Waits for the next turn: until its time, until there is news, or until the target is another one.
async fn wait_for(
    inner: &Inner,
    tenant: &TenantName,
    source: Source,
    opened: &mut Option<Opened>,
    turn: Instant,
) {
    let breath = Instant::now() + BREATH;
    loop {
        let look = turn.min(Instant::now() + LOOK);
        if let Some(Opened { session: Some(session), .. }) = opened {
            tokio::select! {
                () = sleep_until(look) => {}
                () = session.changed() => return sleep_until(breath).await,
            }
        } else {
            sleep_until(look).await;
        }
        if Instant::now() >= turn {
            return;
        }
        // A new version of the state may hold another credential: it is used within one cycle, not after a long wait.
        let now = inner.means.targets.of(tenant, source).await;
        let before = opened.as_ref().map(|opened| &opened.whom);
        if now.is_ok_and(|now| now.is_some() && now.as_ref() != before) {
            return;
        }
    }
}

/// Opens a session of what is to be read now, unless it is open already. Tells whether there is anything.
async fn open(
    inner: &Inner,
    tenant: &TenantName,
    scrapers: &Scrapers,
    opened: &mut Option<Opened>,
) -> Result<bool, Failure> {
    let whom = match inner.means.targets.of(tenant, scrapers.live.source()).await {
        Ok(Some(whom)) => whom,
        Ok(None) => {
            *opened = None;
            return Ok(false);
        }
        Err(failure) => {
            *opened = None;
            return Err(failure);
        }
    };
    if opened.as_ref().is_some_and(|opened| opened.whom == whom && opened.session.is_some()) {
        return Ok(true);
    }
    let session = match &whom {
        Whom::Live(target) => scrapers.live.open(target.clone()),
        Whom::Recording(target) => scrapers.recorded.open(target.clone()),
    };
    let (session, outcome) = match session {
        Ok(session) => (Some(session), Ok(true)),
        Err(failure) => (None, Err(failure)),
    };
    // Who cannot be asked is remembered as well: only another one is asked before the next turn.
    let credential = match &whom {
        Whom::Live(target) => target.credential.as_ref(),
        Whom::Recording(_) => None,
    };
    let expires_at = credential.and_then(|it| crate::tls::ends(&it.certificate));
    let authority = credential.and_then(|it| crate::tls::fingerprint(&it.ca));
    *opened = Some(Opened { whom, expires_at, authority, session });
    outcome
}

async fn read(inner: &Inner, opened: &mut Option<Opened>, silent: u32, budget: Duration) -> Reading {
    let slots = if silent == 0 { &inner.slots } else { &inner.doubtful };
    let _slot = slots.acquire().await;
    let Some(Opened { session: kept, .. }) = opened else {
        return nothing(inner, Failure::CredentialMissing);
    };
    let Some(session) = kept else { return nothing(inner, Failure::CredentialMissing) };
    let turn = AssertUnwindSafe(session.read(budget)).catch_unwind();
    match timeout(budget + GRACE, turn).await {
        Ok(Ok(reading)) => reading,
        Ok(Err(_)) => {
            // What panicked may be in any state: the next turn begins anew.
            *kept = None;
            nothing(inner, Failure::Internal { detail: "it panicked: see the server's log".to_owned() })
        }
        Err(_) => {
            *kept = None;
            nothing(inner, Failure::Timeout { after: budget + GRACE })
        }
    }
}

/// A turn that told nothing.
fn nothing(inner: &Inner, failure: Failure) -> Reading {
    let now = inner.means.clock.now();
    Reading { started: now, finished: now, facts: None, failures: vec![("all".to_owned(), failure)] }
}

fn retry_after(reading: Option<&Reading>) -> Option<Duration> {
    reading?.failures.iter().find_map(|(_, failure)| match failure {
        Failure::RateLimited { retry_after } => retry_after.map(|wait| wait.clamp(BREATH, LONGEST_WAIT)),
        _ => None,
    })
}

/// 30 seconds, doubled with each time, up to ten minutes; never sooner than a usual turn.
fn back_off(times: u32, every: Duration) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1).min(16)));
    wait.min(LONGEST_WAIT).max(every)
}

/// When within a span a tenant's turns begin: the same each time, and spread over tenants.
fn jitter(tenant: &TenantName, source: Source, span: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (tenant.as_str(), source).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1_000).unwrap_or(0);
    span.saturating_mul(share) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_ten_minutes() {
        let wait = |times| back_off(times, Duration::from_secs(30)).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 60].map(wait), [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(back_off(1, Duration::from_mins(1)), Duration::from_mins(1));
    }

    #[test]
    fn turns_are_spread() {
        let span = Duration::from_secs(30);
        let name = |number: usize| TenantName::parse(&format!("tenant-{number}")).unwrap();
        let all: Vec<_> = (0..1_000).map(|number| jitter(&name(number), Source::Kubernetes, span)).collect();
        for third in 0..3 {
            let (from, to) = (span * third / 3, span * (third + 1) / 3);
            let count = all.iter().filter(|wait| (from..to).contains(*wait)).count();
            assert!((200..470).contains(&count), "{count}");
        }
        assert_eq!(jitter(&name(7), Source::Talos, span), jitter(&name(7), Source::Talos, span));
    }
}
