//! What is wrong with one pod, from when to when.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::super::facts::Holds;
use super::{ContainerKind, ContainerSeen, PodPhase, PodSeen, Texts};
use crate::base::Timestamp;

/// In what time so many restarts are a loop, and for how long what looped must run to be well again.
pub(super) const WINDOW: Duration = Duration::from_mins(10);
const LOOP: u32 = 3;
/// How long a pod may wait, be unready, or take to end.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long it is news that a container was ended for want of memory.
const MEMORY_NEWS: Duration = Duration::from_hours(1);

/// Why a container waits although nothing it waits for is on its way.
const BAD_WAITS: [&str; 7] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// Kinds of trouble, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Looping,
    OutOfMemory,
    Waiting,
    NotReady,
    Pending,
    Ending,
    Failed,
}

#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) kind: Kind,
    pub(super) reason: Arc<str>,
    pub(super) container: Option<Arc<str>>,
    pub(super) restarts: u32,
    pub(super) since: Option<Timestamp>,
    /// From when on it is one, this included.
    from: Timestamp,
    /// Until when, this not included; `None` where only news ends it.
    until: Option<Timestamp>,
}

impl Trouble {
    pub(super) fn at(&self, now: Timestamp) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }

    /// The worst has the least.
    pub(super) fn rank(&self) -> (Kind, Reverse<u32>) {
        (self.kind, Reverse(self.restarts))
    }
}

/// How it went with a container so far.
#[derive(Debug)]
pub(super) struct Past {
    container: Arc<str>,
    restarts: u32,
    /// When it was restarted, and how often then: the newest, last, until they are a loop.
    restarted: Vec<(Timestamp, u32)>,
    back_off: BackOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackOff {
    None,
    /// It waits to be tried again.
    Waits,
    /// It is being tried until then.
    Tried(Timestamp),
}

/// How it went with the containers of a pod, given how it went `before`. Containers that were never restarted are left out.
///
/// `watched` tells whether `before` was true until now, so that each restart since is of now.
pub(super) fn pasts(
    pod: &PodSeen,
    before: &[Past],
    watched: bool,
    at: Timestamp,
    texts: &mut Texts,
) -> Box<[Past]> {
    // All restarts of a young pod are within the window, though nobody saw them.
    let young = pod.created_at.is_some_and(|created| created.after(WINDOW) > at);
    let of = |container: &ContainerSeen, texts: &mut Texts| {
        let earlier = before.iter().find(|past| *past.container == *container.name);
        let waits = container.waiting.as_deref() == Some("CrashLoopBackOff");
        if container.restarts == 0 && !waits {
            return None;
        }
        let known = earlier.map_or(0, |past| past.restarts);
        // The count may fall as well, as old containers are cleared away; that is no restart.
        let added = if watched || young { container.restarts.saturating_sub(known) } else { 0 };
        let mut restarted = earlier.map_or_else(Vec::new, |past| past.restarted.clone());
        if added > 0 {
            restarted.push((at, added));
        }
        let back_off = match earlier.map_or(BackOff::None, |past| past.back_off) {
            _ if waits => BackOff::Waits,
            BackOff::Waits => BackOff::Tried(at.after(WINDOW)),
            earlier => earlier,
        };
        restarted.drain(..loop_begins(&restarted).unwrap_or(0));
        Some(Past {
            container: texts.get(&container.name),
            restarts: container.restarts,
            restarted,
            back_off,
        })
    };
    pod.containers.iter().filter_map(|container| of(container, texts)).collect()
}

/// Which is the last of the restarts that is a loop together with those after it.
fn loop_begins(restarted: &[(Timestamp, u32)]) -> Option<usize> {
    let mut sum = 0_u32;
    restarted.iter().rposition(|(_, times)| {
        sum = sum.saturating_add(*times);
        sum >= LOOP
    })
}

impl Past {
    /// What makes it a loop, and until when it is one; `None` where it is none at `at`.
    fn looping(&self, at: Timestamp) -> Option<(&'static str, Option<Timestamp>)> {
        match self.back_off {
            BackOff::Waits => return Some(("CrashLoopBackOff", None)),
            BackOff::Tried(until) if at < until => return Some(("CrashLoopBackOff", Some(until))),
            BackOff::None | BackOff::Tried(_) => {}
        }
        let (begun, _) = self.restarted.get(loop_begins(&self.restarted)?)?;
        let until = begun.after(WINDOW);
        (at < until).then_some(("Restarting", Some(until)))
    }
}

/// What is wrong with a pod at `at`, or will be unless there is news of it.
pub(super) fn of(pod: &PodSeen, pasts: &[Past], at: Timestamp, texts: &mut Texts) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    if pod.phase == PodPhase::Succeeded {
        return troubles;
    }
    for container in &pod.containers {
        let past = pasts.iter().find(|past| *past.container == *container.name);
        of_container(container, past, at, texts, &mut troubles);
    }
    let mut whole = |kind, reason: &str, since: Option<Timestamp>, from| {
        let reason = texts.get(reason);
        troubles.push(Trouble { kind, reason, container: None, restarts: 0, since, from, until: None });
    };
    if let Some(gone_by) = pod.gone_by {
        whole(Kind::Ending, "Terminating", Some(gone_by), gone_by.after(PATIENCE));
    }
    match pod.phase {
        PodPhase::Failed => whole(Kind::Failed, pod.reason.as_deref().unwrap_or("Failed"), None, at),
        PodPhase::Pending if pod.gone_by.is_none() => {
            let unscheduled = pod.scheduled.as_ref().filter(|condition| condition.status == Holds::False);
            let since = unscheduled.and_then(|condition| condition.since).or(pod.created_at).unwrap_or(at);
            let reason = unscheduled.and_then(|condition| condition.reason.as_deref()).unwrap_or("Pending");
            whole(Kind::Pending, reason, Some(since), since.after(PATIENCE));
        }
        PodPhase::Running if pod.gone_by.is_none() => {
            if let Some(ready) = pod.ready.as_ref().filter(|ready| ready.status == Holds::False) {
                let since = ready.since.unwrap_or(at);
                whole(Kind::NotReady, "NotReady", Some(since), since.after(PATIENCE));
            }
        }
        PodPhase::Pending | PodPhase::Running | PodPhase::Succeeded | PodPhase::Unknown => {}
    }
    troubles
}

fn of_container(
    container: &ContainerSeen,
    past: Option<&Past>,
    at: Timestamp,
    texts: &mut Texts,
    troubles: &mut Vec<Trouble>,
) {
    let ended_well = container.ended.as_ref().is_some_and(|ended| ended.exit_code == 0);
    if container.kind == ContainerKind::Init && ended_well {
        return;
    }
    let mut trouble = |kind, reason: &str, since, until| {
        let (reason, container_name) = (texts.get(reason), texts.get(&container.name));
        troubles.push(Trouble {
            kind,
            reason,
            container: Some(container_name),
            restarts: container.restarts,
            since,
            from: at,
            until,
        });
    };
    let ended_at = container.ended.as_ref().or(container.ended_before.as_ref()).and_then(|ended| ended.at);
    if let Some((reason, until)) = past.and_then(|past| past.looping(at)) {
        trouble(Kind::Looping, reason, ended_at, until);
    }
    if let Some(reason) = container.waiting.as_deref().filter(|reason| BAD_WAITS.contains(reason)) {
        trouble(Kind::Waiting, reason, None, None);
    }
    // By its reason alone: the exit code 137 has other causes too.
    let out_of_memory = [&container.ended, &container.ended_before]
        .into_iter()
        .flatten()
        .find(|ended| ended.reason.as_deref() == Some("OOMKilled"));
    if let Some(ended) = out_of_memory {
        let until = ended.at.unwrap_or(at).after(MEMORY_NEWS);
        if at < until {
            trouble(Kind::OutOfMemory, "OOMKilled", ended.at, Some(until));
        }
    }
}
