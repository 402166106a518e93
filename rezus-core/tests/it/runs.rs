//! A run that is kept comes back as it was, whatever its phase and whatever is known of it.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::declared::VersionNumber;
use rezus_core::runs::executor::{Tool, ToolKind};
use rezus_core::runs::{
    ApplyEnd, Approval, Cause, Counts, Created, GroupCounts, Operation, Pending, PendingEnd, Phase, PlanEnd,
    Run, RunFacts, RunName, RunRecord, RunRequest, Target, VariableName, WaitEnd,
};
use rezus_testkit::sample::{run_facts, tenant};

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn name() -> impl Strategy<Value = RunName> {
    "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?".prop_map(|name| RunName::parse(&name).unwrap())
}

fn target() -> impl Strategy<Value = Target> {
    "[a-z]{1,5}\\.[a-z\"é]{1,9}(\\[\"[a-z/ ]{0,4}\"\\])?".prop_map(|text| Target::parse(&text).unwrap())
}

fn approval() -> impl Strategy<Value = Approval> {
    prop_oneof![Just(Approval::Manual), Just(Approval::Auto)]
}

fn request() -> impl Strategy<Value = RunRequest> {
    let operation = [Operation::Plan, Operation::Apply, Operation::Destroy, Operation::Drift];
    let variables = btree_map("[a-z_][a-z0-9_-]{0,9}", text(), 0..3);
    (
        proptest::sample::select(operation.to_vec()),
        option::of(approval()),
        variables,
        vec(target(), 0..3),
        vec(target(), 0..3),
        option::of(text()),
        text(),
    )
        .prop_map(|(operation, approval, variables, targets, replace, reason, requested_by)| {
            RunRequest {
                operation,
                approval,
                variables: variables
                    .into_iter()
                    .map(|(name, value)| (VariableName::parse(&name).unwrap(), value))
                    .collect(),
                targets,
                replace,
                reason,
                requested_by,
            }
        })
}

fn tool() -> impl Strategy<Value = Tool> {
    ("/[a-z/é ]{1,9}", text(), any::<bool>()).prop_map(|(path, version, is_tofu)| Tool {
        path: path.into(),
        kind: if is_tofu { ToolKind::Tofu } else { ToolKind::Terraform },
        version,
    })
}

fn counts() -> impl Strategy<Value = Counts> {
    any::<[u64; 6]>().prop_map(|[add, change, remove, replace, import, forget]| Counts {
        add,
        change,
        remove,
        replace,
        import,
        forget,
    })
}

fn group() -> impl Strategy<Value = GroupCounts> {
    (text(), any::<[u64; 3]>()).prop_map(|(name, [add, remove, replace])| GroupCounts {
        name,
        add,
        remove,
        replace,
    })
}

fn created() -> impl Strategy<Value = Created> {
    (text(), text(), option::of(text())).prop_map(|(address, resource_type, id)| Created {
        address,
        resource_type,
        id,
    })
}

/// What may be known of a run that nobody approved or ended yet.
fn facts() -> impl Strategy<Value = RunFacts> {
    let made = (name(), request(), btree_map(text(), text(), 0..3), approval(), any::<i64>());
    let learnt = (
        option::of(tool()),
        option::of("/[a-z/é ]{1,9}"),
        option::of(text()),
        option::of(text()),
        any::<[Option<u64>; 2]>(),
        option::of(counts()),
        vec(group(), 0..3),
        any::<Option<i32>>(),
        vec(created(), 0..3),
        vec(text(), 0..3),
    );
    (made, learnt).prop_map(|((name, request, labels, approval, queued_at), learnt)| {
        let (tool, work_dir, digest, revision, versions, counts, groups, exit_code, unrecorded, principals) =
            learnt;
        RunFacts {
            labels,
            request,
            approval,
            queued_at,
            tool,
            work_dir: work_dir.map(Into::into),
            config_digest: digest,
            config_revision: revision,
            version_before: versions[0],
            version_after: versions[1],
            counts,
            groups,
            unread: exit_code.is_some(),
            exit_code,
            unrecorded,
            principals,
            ..run_facts(&tenant("prod"), name.as_str())
        }
    })
}

/// The run in each phase that there is, and each end.
fn every_phase(facts: &RunFacts, said: &str, at: Timestamp) -> Vec<Run> {
    let cause = || Cause::new("Because", said);
    let pending = || Pending::new(facts.clone());
    let planning = || pending().plan(at, Some(VersionNumber::FIRST));
    let waiting = || planning().await_approval();
    let approved = || waiting().approve(said);
    let applying = || approved().apply();
    let other = RunName::parse("other").unwrap();
    let mut runs = vec![
        Run::Pending(pending().because(cause())),
        Run::Planning(planning()),
        Run::AwaitingApproval(waiting()),
        Run::Approved(approved()),
        Run::Applying(applying()),
        Run::Applying(planning().apply()),
    ];
    let pending_ends = [
        PendingEnd::Coalesced(other),
        PendingEnd::Cancelled(said.to_owned()),
        PendingEnd::Failed,
        PendingEnd::Interrupted,
    ];
    let ended = pending_ends.into_iter().map(|end| pending().end(end, cause(), at));
    let plan_ends =
        [PlanEnd::Planned, PlanEnd::NothingToDo, PlanEnd::Failed, PlanEnd::Cancelled, PlanEnd::Interrupted];
    let ended = ended.chain(plan_ends.into_iter().map(|end| planning().end(end, cause(), at)));
    let wait_ends = [WaitEnd::Stale, WaitEnd::Cancelled, WaitEnd::Failed];
    let ended =
        ended.chain(wait_ends.into_iter().flat_map(|end| {
            [waiting().end(end, cause(), at), approved().end(end, cause(), at).dismiss(said)]
        }));
    let apply_ends =
        [ApplyEnd::Applied, ApplyEnd::Failed, ApplyEnd::Cancelled, ApplyEnd::Interrupted, ApplyEnd::Stale];
    let ended = ended.chain(apply_ends.into_iter().map(|end| applying().end(end, cause(), at)));
    runs.extend(ended.map(Run::Ended));
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_that_is_kept_comes_back_as_it_was(facts in facts(), said in text(), at in any::<i64>()) {
        for run in every_phase(&facts, &said, Timestamp::from_millis(at)) {
            let json = serde_json::to_string(&run.record()).unwrap();
            let record: RunRecord = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&record, &run.record());
            prop_assert_eq!(Run::from(record), run);
        }
    }
}

#[test]
fn every_phase_is_among_those_that_are_tried() {
    let runs = every_phase(&run_facts(&tenant("prod"), "a"), "said", Timestamp::from_millis(7));
    let phases = [
        Phase::Pending,
        Phase::Planning,
        Phase::AwaitingApproval,
        Phase::Applying,
        Phase::Planned,
        Phase::Applied,
        Phase::Failed,
        Phase::Cancelled,
        Phase::Interrupted,
        Phase::Stale,
        Phase::Coalesced,
    ];
    for phase in phases {
        assert!(runs.iter().any(|run| run.phase() == phase), "{phase:?}");
        let json = serde_json::to_string(&phase).unwrap();
        assert_eq!(json, format!("\"{}\"", phase.as_str()));
    }
}
