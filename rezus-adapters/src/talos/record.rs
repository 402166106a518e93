//! What a session knows of each machine from one turn to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::observed::Failure;
use rezus_core::observed::facts::{MachineKind, Member, TalosMachine};

use super::endpoint::Endpoint;
use super::fault::Fault;
use super::machine::{CLOCK_EVERY, Told};

/// How often a worker is asked at most; control planes are asked in every turn.
const WORKER_EVERY: Duration = Duration::from_mins(5);
/// The same of one that did not answer.
const SILENT_WORKER_EVERY: Duration = Duration::from_mins(1);

/// A machine that is asked, and what it told last.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Where it answers by itself.
    pub(super) direct: Endpoint,
    /// Whether calls go to it through another machine.
    pub(super) forwarded: bool,
    pub(super) machine: TalosMachine,
    failures: Vec<(&'static str, Failure)>,
    /// The turn in which it was asked last, and in which its clock was.
    asked_at: Option<Timestamp>,
    clock_at: Option<Timestamp>,
}

impl Record {
    /// Tells whether it is asked in this turn.
    fn is_due(&self, now: Timestamp) -> bool {
        let Some(asked) = self.asked_at else { return true };
        let answered = self.machine.answered_at.is_some();
        let every = if answered { WORKER_EVERY } else { SILENT_WORKER_EVERY };
        self.machine.kind != MachineKind::Worker || now.since(asked) >= every
    }

    pub(super) fn asks_its_clock(&self, now: Timestamp) -> bool {
        self.clock_at.is_none_or(|asked| now.since(asked) >= CLOCK_EVERY)
    }

    /// What is known without asking: who it is, not how it is.
    pub(super) fn known(&self) -> TalosMachine {
        TalosMachine {
            asked: self.machine.asked.clone(),
            node_name: self.machine.node_name.clone(),
            node_id: self.machine.node_id.clone(),
            addresses: self.machine.addresses.clone(),
            kind: self.machine.kind,
            ..TalosMachine::default()
        }
    }

    /// Keeps what it told. One that ran out of time is asked first in the next turn.
    pub(super) fn told(&mut self, told: Told, now: Timestamp, is_whole: bool) {
        let asked_its_clock = self.asks_its_clock(now);
        let skew = self.machine.skew_ms;
        self.machine = told.machine;
        self.failures = told.failures;
        if !asked_its_clock {
            self.machine.skew_ms = skew;
        }
        if is_whole {
            self.asked_at = Some(now);
            if asked_its_clock {
                self.clock_at = Some(now);
            }
        }
    }

    /// Keeps that it did not answer.
    pub(super) fn silent(&mut self, fault: Fault, now: Timestamp) {
        self.machine = self.known();
        self.failures = vec![("", fault.failure)];
        self.asked_at = Some(now);
        // How far its clock is off is known no longer: it is asked for again.
        self.clock_at = None;
    }
}

/// The machines of one cluster, by what they are asked by.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<String, Record>);

impl Records {
    /// Keeps the machines that are members or endpoints, and no others.
    pub(super) fn refresh(&mut self, members: &[Member], endpoints: &[Endpoint]) {
        let mut old = std::mem::take(&mut self.0);
        let mut matched = BTreeSet::new();
        let mut keep = |records: &mut Self, asked: String, direct: Endpoint, member: Option<&Member>| {
            let mut record = old.remove(&asked).unwrap_or_else(|| Record {
                direct: direct.clone(),
                forwarded: false,
                machine: TalosMachine { asked: asked.clone(), ..TalosMachine::default() },
                failures: Vec::new(),
                asked_at: None,
                clock_at: None,
            });
            record.direct = direct;
            record.forwarded = member.is_some();
            if let Some(member) = member {
                record.machine.kind = member.kind;
                let machine = &mut record.machine;
                machine.node_name.get_or_insert_with(|| member.node_name.clone());
                machine.node_id.get_or_insert_with(|| member.node_id.clone());
                if machine.addresses.is_empty() {
                    machine.addresses.clone_from(&member.addresses);
                }
            }
            records.0.insert(asked, record);
        };
        for member in members {
            let of_member = |endpoint: &&Endpoint| {
                let address = endpoint.address();
                address.is_some_and(|address| member.addresses.contains(&address))
                    || endpoint.host == member.hostname
                    || endpoint.host == member.node_name
            };
            let mut of_it = endpoints.iter().filter(of_member);
            let first = of_it.next();
            matched.extend(first);
            matched.extend(of_it);
            let known = first.and_then(Endpoint::address);
            let Some(address) = known.or_else(|| member.addresses.first().copied()) else { continue };
            let direct = first.cloned().unwrap_or_else(|| Endpoint::of(address));
            keep(self, address.to_string(), direct, Some(member));
        }
        for endpoint in endpoints.iter().filter(|endpoint| !matched.contains(endpoint)) {
            keep(self, endpoint.host.clone(), endpoint.clone(), None);
        }
    }

    /// Who is asked in this turn: control planes before workers, and of each those first who waited longest.
    pub(super) fn queue(&self, now: Timestamp) -> Vec<String> {
        let mut due: Vec<_> = self.0.iter().filter(|(_, record)| record.is_due(now)).collect();
        due.sort_by_key(|(_, record)| (record.machine.kind == MachineKind::Worker, record.asked_at));
        due.into_iter().map(|(asked, _)| asked.clone()).collect()
    }

    pub(super) fn get(&self, asked: &str) -> Option<&Record> {
        self.0.get(asked)
    }

    pub(super) fn get_mut(&mut self, asked: &str) -> Option<&mut Record> {
        self.0.get_mut(asked)
    }

    /// All machines, and what they did not tell. A machine that is a member too, found by what it says of itself, is told
    /// once; what no machine of this cluster tells to this client is told once, too.
    pub(super) fn tell(&self) -> (Vec<TalosMachine>, Vec<(String, Failure)>) {
        let members = self.0.values().filter(|record| record.forwarded);
        let members: BTreeSet<&str> =
            members.filter_map(|record| record.machine.node_id.as_deref()).collect();
        let twice = |record: &Record| {
            let id = record.machine.node_id.as_deref();
            !record.forwarded && id.is_some_and(|id| members.contains(id))
        };
        let mut told: Vec<&Record> = self.0.values().filter(|record| !twice(record)).collect();
        told.sort_by_key(|record| record.machine.asked.parse::<IpAddr>().ok());
        let mut failures: Vec<(String, Failure)> = Vec::new();
        let mut refused = BTreeSet::new();
        for record in &told {
            for (part, failure) in &record.failures {
                let of_all = matches!(failure, Failure::Forbidden { .. } | Failure::Unsupported { .. });
                if of_all && !part.is_empty() {
                    if refused.insert((part, failure.reason())) {
                        failures.push(((*part).to_owned(), failure.clone()));
                    }
                } else {
                    let name = format!("{} {part}", record.machine.asked);
                    failures.push((name.trim_end().to_owned(), failure.clone()));
                }
            }
        }
        (told.into_iter().map(|record| record.machine.clone()).collect(), failures)
    }
}
