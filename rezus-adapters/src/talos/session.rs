//! One cluster while its machines are asked, turn after turn.

use std::collections::BTreeSet;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::observed::facts::{Etcd, EtcdAlarm, EtcdMember, Facts, Member, Talos};
use rezus_core::observed::{Credential, Destinations, Failure, Reading, Session};
use tokio::time::Instant;

use super::cluster;
use super::dial::Dialer;
use super::endpoint::Endpoint;
use super::fault::{Blame, Fault};
use super::identity::Identity;
use super::machine::{self, Told};
use super::peer::Peer;
use super::reader::{self, Reader};
use super::record::{Record, Records};

/// How many machines of one cluster are asked at a time.
const AT_A_TIME: usize = 8;

/// What a turn gave: facts, and why the rest of them is missing.
type Turn = (Talos, Vec<(String, Failure)>);

/// Reads one cluster.
pub(super) struct TalosSession {
    clock: Arc<dyn Clock>,
    endpoints: Vec<Endpoint>,
    destinations: Arc<Destinations>,
    credential: Credential,
    given: Identity,
    reader: Reader,
    dialer: Dialer,
    /// The endpoint that answered last.
    good: Option<Endpoint>,
    /// Those that answer for themselves alone.
    workers: BTreeSet<Endpoint>,
    members: Vec<Member>,
    records: Records,
    etcd: Option<Etcd>,
}

impl fmt::Debug for TalosSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TalosSession").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl TalosSession {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        endpoints: Vec<Endpoint>,
        destinations: Destinations,
        credential: Credential,
    ) -> Result<Self, Failure> {
        let given = Identity::new(&credential)?;
        given.check(clock.now())?;
        let destinations = Arc::new(destinations);
        let dialer = Dialer::new(Arc::clone(&given.config), Arc::clone(&destinations));
        Ok(Self {
            clock,
            endpoints,
            destinations,
            credential,
            given,
            reader: Reader::default(),
            dialer,
            good: None,
            workers: BTreeSet::new(),
            members: Vec::new(),
            records: Records::default(),
            etcd: None,
        })
    }

    async fn turn(&mut self, started: Timestamp, deadline: Instant) -> Result<Turn, Failure> {
        self.identify(started)?;
        let mut failures = Vec::new();
        let (entry, members) = self.enter(deadline).await?;
        self.good = Some(entry.clone());
        let mut facts = Talos::default();
        match members {
            Ok(members) => {
                self.members.clone_from(&members);
                facts.members = Some(members);
            }
            Err(failure) => failures.push(("members".to_owned(), failure)),
        }
        self.become_reader(&entry, started, deadline).await;
        failures.extend(self.reader.failure().map(|failure| ("reader".to_owned(), failure.clone())));
        let peer = Peer::new(self.dialer.channel(&entry)?, None, deadline)?;
        match cluster::info(&peer).await {
            Ok((id, name)) => (facts.cluster_id, facts.cluster_name) = (id, name),
            Err(fault) => failures.push(("cluster".to_owned(), fault.failure)),
        }
        self.records.refresh(&self.members, &self.endpoints);
        failures.extend(self.machines(&entry, started, deadline).await);
        let (machines, missing) = self.records.tell();
        failures.extend(missing);
        facts.machines = machines;
        facts.etcd.clone_from(&self.etcd);
        Ok((facts, failures))
    }

    /// Shows the certificate that is valid now.
    fn identify(&mut self, now: Timestamp) -> Result<(), Failure> {
        if self.reader.identity.as_ref().is_some_and(|identity| identity.check(now).is_err()) {
            self.reader.identity = None;
            self.dialer = Dialer::new(Arc::clone(&self.given.config), Arc::clone(&self.destinations));
        }
        if self.reader.identity.is_some() { Ok(()) } else { self.given.check(now) }
    }

    /// The first endpoint that answers, and the members as it knows them.
    async fn enter(&self, deadline: Instant) -> Result<(Endpoint, Result<Vec<Member>, Failure>), Failure> {
        let mut failures = Vec::new();
        for endpoint in self.in_order() {
            let peer = Peer::new(self.dialer.channel(endpoint)?, None, deadline)?;
            match cluster::members(&peer).await {
                Ok(members) => return Ok((endpoint.clone(), Ok(members))),
                Err(fault) if fault.blame == Blame::Answer => {
                    return Ok((endpoint.clone(), Err(fault.failure)));
                }
                Err(fault) => failures.push(fault.failure),
            }
            self.dialer.forget(endpoint);
            if peer.is_late() {
                break;
            }
        }
        // That one is down says less than that another one is refused.
        let silence =
            |failure: &Failure| matches!(failure, Failure::Unreachable { .. } | Failure::Timeout { .. });
        let first = failures.iter().position(|failure| !silence(failure)).unwrap_or(0);
        let none = || Failure::Internal { detail: "no endpoint".to_owned() };
        Err(failures.into_iter().nth(first).unwrap_or_else(none))
    }

    /// All endpoints: the one that answered last, others, and workers.
    fn in_order(&self) -> Vec<&Endpoint> {
        let mut endpoints: Vec<&Endpoint> = self.endpoints.iter().collect();
        endpoints
            .sort_by_key(|endpoint| (self.workers.contains(endpoint), self.good.as_ref() != Some(endpoint)));
        endpoints
    }

    /// Goes on with a certificate that may only read, where the one given may do more.
    async fn become_reader(&mut self, entry: &Endpoint, now: Timestamp, deadline: Instant) {
        if !self.given.is_admin || self.given.check(now).is_err() || !self.reader.is_due(now) {
            return;
        }
        // Whoever may only read may not have certificates made.
        let admin = Dialer::new(Arc::clone(&self.given.config), Arc::clone(&self.destinations));
        let dialer = if self.reader.identity.is_some() { &admin } else { &self.dialer };
        let others = self.endpoints.iter().filter(|endpoint| *endpoint != entry);
        let mut made = Err(Fault::timeout(Duration::ZERO));
        for endpoint in std::iter::once(entry).chain(others) {
            let peer = dialer.channel(endpoint).and_then(|channel| Peer::new(channel, None, deadline));
            made = match peer {
                Ok(peer) => reader::make(&peer, &self.credential).await,
                Err(failure) => Err(Fault::answer(failure)),
            };
            // Workers do not make certificates.
            if !matches!(&made, Err(fault) if matches!(fault.failure, Failure::Unsupported { .. })) {
                break;
            }
        }
        match made.and_then(|identity| identity.check(now).map(|()| identity).map_err(Fault::answer)) {
            Ok(identity) => {
                self.dialer = Dialer::new(Arc::clone(&identity.config), Arc::clone(&self.destinations));
                self.reader.made(identity);
            }
            Err(fault) => self.reader.refused(now, fault),
        }
    }

    /// Asks the machines that are due, as far as there is time.
    async fn machines(
        &mut self,
        entry: &Endpoint,
        started: Timestamp,
        deadline: Instant,
    ) -> Option<(String, Failure)> {
        let proxies = self.in_order().into_iter().filter(|endpoint| *endpoint != entry).cloned();
        let proxies = std::iter::once(entry.clone()).chain(proxies);
        let proxies = Proxies {
            usable: Mutex::new(proxies.filter(|proxy| !self.workers.contains(proxy)).collect()),
            workers: Mutex::default(),
        };
        let queue = self.records.queue(started);
        let total = queue.len();
        let mut waiting = queue.into_iter();
        let mut asked = FuturesUnordered::new();
        let mut answers = Vec::new();
        loop {
            while asked.len() < AT_A_TIME && Instant::now() < deadline {
                let Some(name) = waiting.next() else { break };
                asked.push(self.ask(name, &proxies, started, deadline));
            }
            match asked.next().await {
                Some(answer) => answers.push(answer),
                None => break,
            }
        }
        drop(asked);
        let mut done = 0;
        let mut lists = Vec::new();
        let mut alarms = Vec::new();
        for (name, answer, in_time) in answers {
            done += usize::from(in_time);
            let Some(record) = self.records.get_mut(&name) else { continue };
            match answer {
                Ok(mut told) => {
                    lists.extend(told.listed.take());
                    alarms.append(&mut told.alarms);
                    record.told(told, started, in_time);
                }
                Err(fault) if in_time => record.silent(fault, started),
                Err(_) => {}
            }
        }
        self.workers.extend(proxies.workers.into_inner().unwrap_or_else(PoisonError::into_inner));
        if let Some(etcd) = etcd_of(lists, alarms) {
            self.etcd = Some(etcd);
        }
        (done < total).then(|| ("machines".to_owned(), Failure::Partial { done, total }))
    }

    /// Asks one machine, through whoever forwards calls or, where nobody does, by itself. Tells whether there was time for it.
    async fn ask(
        &self,
        name: String,
        proxies: &Proxies,
        started: Timestamp,
        deadline: Instant,
    ) -> (String, Result<Told, Fault>, bool) {
        let answer = match self.records.get(&name) {
            Some(record) => self.ask_record(record, proxies, started, deadline).await,
            None => Err(Fault::answer(Failure::Internal { detail: "a machine is not known".to_owned() })),
        };
        (name, answer, Instant::now() < deadline)
    }

    async fn ask_record(
        &self,
        record: &Record,
        proxies: &Proxies,
        started: Timestamp,
        deadline: Instant,
    ) -> Result<Told, Fault> {
        let asks_its_clock = record.asks_its_clock(started);
        let read = async |endpoint: &Endpoint, node: Option<&str>| {
            let channel = self.dialer.channel(endpoint).map_err(Fault::answer)?;
            let peer = Peer::new(channel, node, deadline).map_err(Fault::answer)?;
            machine::read(&peer, record.known(), &self.clock, asks_its_clock).await
        };
        if record.forwarded {
            while let Some(proxy) = proxies.first() {
                match read(&proxy, Some(&record.machine.asked)).await {
                    Err(fault) if matches!(fault.blame, Blame::Endpoint | Blame::Worker) => {
                        proxies.strike(&proxy, fault.blame);
                    }
                    answer => return answer,
                }
            }
        }
        let answer = read(&record.direct, None).await;
        if answer.as_ref().is_err_and(|fault| fault.blame != Blame::Answer) {
            self.dialer.forget(&record.direct);
        }
        answer
    }
}

/// The endpoints that calls may go through in this turn.
struct Proxies {
    usable: Mutex<Vec<Endpoint>>,
    workers: Mutex<BTreeSet<Endpoint>>,
}

impl Proxies {
    fn first(&self) -> Option<Endpoint> {
        self.usable.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    fn strike(&self, proxy: &Endpoint, blame: Blame) {
        self.usable.lock().unwrap_or_else(PoisonError::into_inner).retain(|usable| usable != proxy);
        if blame == Blame::Worker {
            self.workers.lock().unwrap_or_else(PoisonError::into_inner).insert(proxy.clone());
        }
    }
}

/// The newest list of members, and whether others differ from it.
fn etcd_of(mut lists: Vec<(Timestamp, Vec<EtcdMember>)>, mut alarms: Vec<EtcdAlarm>) -> Option<Etcd> {
    lists.sort_by_key(|(at, _)| *at);
    let (at, members) = lists.pop()?;
    let ids = |members: &[EtcdMember]| {
        members.iter().map(|member| (member.id, member.is_learner)).collect::<Vec<_>>()
    };
    let newest = ids(&members);
    let lists_differ = lists.iter().any(|(_, other)| ids(other) != newest);
    let is_apart =
        |other: &[EtcdMember]| other.iter().all(|member| members.iter().all(|newest| newest.id != member.id));
    let lists_disjoint = lists.iter().any(|(_, other)| !other.is_empty() && is_apart(other));
    alarms.sort_by(|a, b| (a.member_id, &a.alarm).cmp(&(b.member_id, &b.alarm)));
    alarms.dedup();
    Some(Etcd { members, listed_at: Some(at), lists_differ, lists_disjoint, alarms })
}

#[async_trait]
impl Session for TalosSession {
    async fn read(&mut self, budget: Duration) -> Reading {
        let started = self.clock.now();
        let (facts, failures) = match self.turn(started, Instant::now() + budget).await {
            Ok((facts, failures)) => (Some(Facts::Talos(facts)), failures),
            Err(failure) => (None, vec![("all".to_owned(), failure)]),
        };
        self.dialer.close();
        Reading { started, finished: self.clock.now(), facts, failures }
    }

    /// Machines are polled.
    async fn changed(&mut self) {
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(at: i64, ids: &[u64]) -> (Timestamp, Vec<EtcdMember>) {
        let member = |id: &u64| EtcdMember { id: *id, ..EtcdMember::default() };
        (Timestamp::from_millis(at), ids.iter().map(member).collect())
    }

    #[test]
    fn lists_of_two_clusters_have_nobody_in_common() {
        let told = |lists| {
            let etcd = etcd_of(lists, Vec::new()).unwrap();
            (etcd.members.len(), etcd.lists_differ, etcd.lists_disjoint)
        };
        assert_eq!(told(vec![list(2, &[1, 2, 3]), list(1, &[1, 2, 3])]), (3, false, false));
        assert_eq!(told(vec![list(2, &[1, 2, 3]), list(1, &[1, 2])]), (3, true, false));
        assert_eq!(told(vec![list(1, &[9]), list(2, &[1, 2, 3]), list(1, &[1, 2, 3])]), (3, true, true));
        assert_eq!(told(vec![list(2, &[1]), list(1, &[])]), (1, true, false));
    }
}
