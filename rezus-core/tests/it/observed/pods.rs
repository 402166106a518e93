//! What is said of pods, as news of them comes in.

use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{Holds, Pods};
use rezus_core::observed::{ContainerKind, ContainerSeen, Ended, PodBook, PodCondition, PodPhase, PodSeen};

const WEEK: i64 = 7 * 24 * 3600;

/// Seconds after a beginning that is a week after the pods'.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((WEEK + seconds) * 1000)
}

fn condition(status: Holds, reason: Option<&str>, since: i64) -> PodCondition {
    PodCondition { status, reason: reason.map(str::to_owned), since: Some(at(since)) }
}

fn container(kind: ContainerKind, restarts: u32) -> ContainerSeen {
    ContainerSeen { name: "main".to_owned(), kind, restarts, waiting: None, ended: None, ended_before: None }
}

fn app(restarts: u32) -> ContainerSeen {
    container(ContainerKind::App, restarts)
}

fn waiting(kind: ContainerKind, reason: &str) -> ContainerSeen {
    ContainerSeen { waiting: Some(reason.to_owned()), ..container(kind, 5) }
}

fn ended(reason: &str, exit_code: i32, seconds: i64) -> Ended {
    Ended { reason: Some(reason.to_owned()), exit_code, at: Some(at(seconds)) }
}

fn pod(containers: Vec<ContainerSeen>) -> PodSeen {
    PodSeen {
        uid: "6f2a3c7e-0000-4000-8000-000000000001".to_owned(),
        namespace: "shop".to_owned(),
        name: "cart-0".to_owned(),
        node: Some("w1".to_owned()),
        created_at: Some(at(-WEEK)),
        gone_by: None,
        phase: PodPhase::Running,
        reason: None,
        ready: Some(condition(Holds::True, None, -WEEK)),
        scheduled: Some(condition(Holds::True, None, -WEEK)),
        containers,
    }
}

/// What is said at a time of pods that came in one after the other.
fn said(news: &[(i64, PodSeen)], now: i64) -> Pods {
    let mut book = PodBook::default();
    for (seconds, pod) in news {
        book.apply(pod, at(*seconds));
    }
    book.summary(at(now))
}

/// The reasons told, and the counts of loops, of ends for want of memory, and of unready pods.
fn gist(pods: &Pods) -> (Vec<&str>, [u64; 3]) {
    let reasons = pods.offenders.iter().map(|offender| &*offender.reason).collect();
    (reasons, [pods.crash_looping, pods.oom_killed, pods.unready])
}

#[test]
fn each_trouble_is_told_by_its_name() {
    use ContainerKind::{App, Ephemeral, Init, Sidecar};
    let unready =
        |seconds: i64| PodSeen { ready: Some(condition(Holds::False, None, -seconds)), ..pod(vec![app(0)]) };
    let pending = |seconds: i64, reason| PodSeen {
        phase: PodPhase::Pending,
        scheduled: Some(condition(Holds::False, Some(reason), -seconds)),
        ready: None,
        ..pod(vec![])
    };
    let init = |exit_code| ContainerSeen { ended: Some(ended("x", exit_code, -9)), ..container(Init, 2) };
    let ending = |seconds: i64| PodSeen { gone_by: Some(at(-seconds)), ..unready(9000) };
    let oom = |seconds: i64| ContainerSeen { ended_before: Some(ended("OOMKilled", 1, -seconds)), ..app(1) };
    let failed = |reason: Option<&str>| PodSeen {
        phase: PodPhase::Failed,
        reason: reason.map(str::to_owned),
        ..pod(vec![])
    };
    for (what, pod, expected) in [
        ("well", pod(vec![app(0)]), (vec![], [0, 0, 0])),
        ("waits", pod(vec![waiting(App, "CrashLoopBackOff")]), (vec!["CrashLoopBackOff"], [1, 0, 0])),
        ("init waits", pod(vec![waiting(Init, "CrashLoopBackOff")]), (vec!["CrashLoopBackOff"], [1, 0, 0])),
        (
            "sidecar waits",
            pod(vec![waiting(Sidecar, "CrashLoopBackOff")]),
            (vec!["CrashLoopBackOff"], [1, 0, 0]),
        ),
        (
            "ephemeral waits",
            pod(vec![waiting(Ephemeral, "CrashLoopBackOff")]),
            (vec!["CrashLoopBackOff"], [1, 0, 0]),
        ),
        ("init ended well", pod(vec![init(0), app(0)]), (vec![], [0, 0, 0])),
        ("many restarts, unseen", pod(vec![app(400)]), (vec![], [0, 0, 0])),
        (
            "restarted once a week ago",
            pod(vec![ContainerSeen { ended_before: Some(ended("Error", 1, -WEEK)), ..app(1) }]),
            (vec![], [0, 0, 0]),
        ),
        ("no memory", pod(vec![oom(60)]), (vec!["OOMKilled"], [0, 1, 0])),
        ("no memory, long ago", pod(vec![oom(3600)]), (vec![], [0, 0, 0])),
        (
            "137 alone",
            pod(vec![ContainerSeen { ended_before: Some(ended("Error", 137, -60)), ..app(1) }]),
            (vec![], [0, 0, 0]),
        ),
        ("image", pod(vec![waiting(App, "ImagePullBackOff")]), (vec!["ImagePullBackOff"], [0, 0, 0])),
        (
            "configuration",
            pod(vec![waiting(App, "CreateContainerConfigError")]),
            (vec!["CreateContainerConfigError"], [0, 0, 0]),
        ),
        ("being made", pod(vec![waiting(App, "ContainerCreating")]), (vec![], [0, 0, 0])),
        ("unready for long", unready(300), (vec!["NotReady"], [0, 0, 1])),
        ("unready", unready(299), (vec![], [0, 0, 0])),
        ("unschedulable", pending(300, "Unschedulable"), (vec!["Unschedulable"], [0, 0, 0])),
        ("just pending", pending(299, "Unschedulable"), (vec![], [0, 0, 0])),
        ("evicted", failed(Some("Evicted")), (vec!["Evicted"], [0, 0, 0])),
        ("failed", failed(None), (vec!["Failed"], [0, 0, 0])),
        ("ending", ending(299), (vec![], [0, 0, 0])),
        ("does not end", ending(300), (vec!["Terminating"], [0, 0, 0])),
        (
            "succeeded",
            PodSeen {
                phase: PodPhase::Succeeded,
                ready: Some(condition(Holds::False, None, -900)),
                ..pod(vec![app(9)])
            },
            (vec![], [0, 0, 0]),
        ),
    ] {
        assert_eq!(gist(&said(&[(0, pod)], 0)), expected, "{what}");
    }
}

#[test]
fn a_loop_is_seen_in_rising_restarts_though_the_container_runs() {
    let news = |counts: &[(i64, u32)]| {
        counts.iter().map(|(seconds, restarts)| (*seconds, pod(vec![app(*restarts)]))).collect::<Vec<_>>()
    };
    for (what, counts, now, looping) in [
        ("three in ten minutes", vec![(0, 7), (100, 8), (300, 9), (650, 10)], 650, 1),
        ("that is over ten minutes after the first", vec![(0, 7), (100, 8), (300, 9), (650, 10)], 700, 0),
        ("a fourth keeps it", vec![(0, 7), (100, 8), (300, 9), (650, 10), (660, 11)], 700, 1),
        ("two", vec![(0, 7), (100, 8), (300, 9)], 300, 0),
        ("three, slowly", vec![(0, 7), (100, 8), (400, 9), (701, 10)], 701, 0),
        ("three at once", vec![(0, 0), (100, 3)], 100, 1),
        ("the count fell", vec![(0, 7), (100, 2), (200, 3), (300, 4)], 300, 0),
        ("the count fell, and rose", vec![(0, 7), (100, 2), (200, 3), (300, 5)], 300, 1),
    ] {
        let pods = said(&news(&counts), now);
        assert_eq!(pods.crash_looping, looping, "{what}");
        assert_eq!(
            pods.offenders.first().map(|offender| &*offender.reason),
            (looping == 1).then_some("Restarting")
        );
        assert_eq!(pods.restarts, u64::from(counts.last().unwrap().1));
    }
}

#[test]
fn a_pod_made_anew_counts_from_nothing() {
    let other = |restarts, created| PodSeen {
        uid: "another".to_owned(),
        created_at: Some(at(created)),
        ..pod(vec![app(restarts)])
    };
    let mut book = PodBook::default();
    book.apply(&pod(vec![app(5)]), at(0));
    book.remove(&pod(vec![]).uid);
    book.apply(&other(0, 10), at(10));
    book.apply(&other(2, 10), at(60));
    assert_eq!(gist(&book.summary(at(60))), (vec![], [0, 0, 0]));
    book.apply(&other(3, 10), at(90));
    assert_eq!(gist(&book.summary(at(90))), (vec!["Restarting"], [1, 0, 0]));
    // Seen for the first time, yet all its restarts are within ten minutes.
    assert_eq!(said(&[(0, other(3, -599))], 0).crash_looping, 1);
    assert_eq!(said(&[(0, other(3, -600))], 0).crash_looping, 0);
}

#[test]
fn what_looped_is_looping_until_it_ran_for_ten_minutes() {
    let news = [(0, pod(vec![waiting(ContainerKind::App, "CrashLoopBackOff")])), (100, pod(vec![app(5)]))];
    assert_eq!(gist(&said(&news, 699)), (vec!["CrashLoopBackOff"], [1, 0, 0]));
    assert_eq!(gist(&said(&news, 700)), (vec![], [0, 0, 0]));
    let waits = ContainerSeen { name: "main".to_owned(), ..waiting(ContainerKind::Init, "CrashLoopBackOff") };
    let done = ContainerSeen { ended: Some(ended("Completed", 0, 90)), ..container(ContainerKind::Init, 5) };
    assert_eq!(gist(&said(&[(0, pod(vec![waits])), (100, pod(vec![done]))], 100)), (vec![], [0, 0, 0]));
}

#[test]
fn restarts_that_came_while_nobody_looked_are_no_loop() {
    for (silence, looping) in [(600, 1), (601, 0)] {
        let mut book = PodBook::default();
        book.apply(&pod(vec![app(1)]), at(0));
        book.restart();
        book.apply(&pod(vec![app(9)]), at(silence));
        book.settled();
        assert_eq!(book.summary(at(silence)).crash_looping, looping, "{silence}");
        // From here on somebody looks again.
        book.apply(&pod(vec![app(12)]), at(silence + 1));
        assert_eq!(book.summary(at(silence + 1)).crash_looping, 1);
    }
}

#[test]
fn a_new_list_takes_the_place_of_the_old_one_at_its_end() {
    let named = |uid: &str| PodSeen { uid: uid.to_owned(), ..pod(vec![]) };
    let mut book = PodBook::default();
    for uid in ["a", "b"] {
        book.apply(&named(uid), at(0));
    }
    book.restart();
    book.apply(&named("b"), at(1));
    book.apply(&named("c"), at(1));
    assert_eq!(book.summary(at(1)).total, 3);
    // It broke off, and begins again.
    book.restart();
    book.apply(&named("c"), at(2));
    book.settled();
    assert_eq!(book.summary(at(2)).total, 1);
}

#[test]
fn no_more_than_fifty_are_told_and_the_worst_of_them() {
    let mut book = PodBook::default();
    for number in 0..60_u32 {
        let looping = ContainerSeen { restarts: number, ..waiting(ContainerKind::App, "CrashLoopBackOff") };
        let bad = if number % 2 == 0 { looping } else { waiting(ContainerKind::App, "ErrImagePull") };
        book.apply(
            &PodSeen { uid: number.to_string(), name: format!("p{number:02}"), ..pod(vec![bad]) },
            at(0),
        );
    }
    let pods = book.summary(at(0));
    assert_eq!((pods.total, pods.running, pods.crash_looping, pods.offenders.len()), (60, 60, 30, 50));
    assert_eq!(pods.offenders.iter().filter(|offender| offender.reason == "CrashLoopBackOff").count(), 30);
    let worst = &pods.offenders[0];
    assert_eq!((&*worst.namespace, &*worst.pod, worst.restarts), ("shop", "p58", 58));
    assert_eq!((worst.container.as_deref(), worst.node.as_deref()), (Some("main"), Some("w1")));
    assert_eq!(pods.offenders[30].pod, "p01");
}

proptest! {
    /// Told by what is there, not by what was: any order of pods, and any that came and went, give the same.
    #[test]
    fn what_is_said_does_not_hang_on_the_order_of_pods(
        pods in prop::collection::btree_map(0_u8..30, (0_u32..9, prop::sample::select(vec!["", "CrashLoopBackOff", "ErrImagePull"])), 0..20),
        order in any::<prop::sample::Index>(),
    ) {
        let pods = pods.into_iter().map(|(number, (restarts, reason))| {
            let waiting = (!reason.is_empty()).then(|| reason.to_owned());
            let containers = vec![ContainerSeen { waiting, ..app(restarts) }];
            PodSeen { uid: number.to_string(), name: format!("p{number}"), ..pod(containers) }
        }).collect::<Vec<_>>();
        let mut turned = pods.clone();
        if !turned.is_empty() {
            let by = order.index(turned.len());
            turned.rotate_left(by);
        }
        let mut book = PodBook::default();
        let mut other = PodBook::default();
        for pod in &pods {
            book.apply(pod, at(0));
        }
        for pod in &turned {
            let passing = PodSeen { uid: format!("{}x", pod.uid), ..pod.clone() };
            other.apply(&passing, at(0));
            other.apply(pod, at(0));
            other.remove(&passing.uid);
        }
        prop_assert_eq!(book.summary(at(0)), other.summary(at(0)));
    }
}
