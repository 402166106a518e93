//! What is read of a body, and what is said of one that is wrong.

use proptest::prelude::*;

use super::*;

fn read(body: &Value, validation: Validation) -> Result<Manifest, ApiError> {
    Manifest::read(body.to_string().as_bytes(), &"prod".parse().unwrap(), "ann", validation)
}

#[expect(clippy::needless_pass_by_value, reason = "made in place by whoever calls it")]
fn run(metadata: Value, spec: Value) -> Value {
    json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Run", "metadata": metadata, "spec": spec })
}

#[test]
fn a_run_is_read_as_it_is_asked_for() {
    let body = run(
        json!({ "name": "a", "namespace": "prod", "creationTimestamp": null, "labels": { "team": "ops", "rezuscloud.io/tenant": "x" } }),
        json!({
            "operation": "apply", "approval": "auto", "variables": { "n": "3" }, "targets": ["a.b"],
            "replace": ["a.c"], "reason": "why", "requestedBy": "somebody else",
        }),
    );
    let Manifest { new, warnings } = read(&body, Validation::Strict).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(new.name, Name::Given(RunName::parse("a").unwrap()));
    assert_eq!(new.labels, BTreeMap::from([("team".to_owned(), "ops".to_owned())]));
    assert_eq!(new.request.requested_by, "ann");
    assert_eq!(new.request.targets[0].as_str(), "a.b");
    assert_eq!(new.request.variables[&VariableName::parse("n").unwrap()], "3");
    for (metadata, expected) in [
        (json!({}), "plan-"),
        (json!({ "generateName": "nightly-" }), "nightly-"),
        (json!({ "generateName": "" , "name": null }), "plan-"),
    ] {
        let new = read(&run(metadata, json!({ "operation": "plan" })), Validation::Strict).unwrap().new;
        assert_eq!(new.name, Name::Prefix(expected.to_owned()));
    }
}

#[test]
fn each_field_that_is_wrong_is_named() {
    for (metadata, spec, expected) in [
        (json!({}), json!({}), &["spec.operation: Required value"][..]),
        (json!({}), json!({ "operation": "fly" }), &["spec.operation: Unsupported value"]),
        (json!({}), json!({ "operation": 1 }), &["spec.operation: Invalid value: must be of type string"]),
        (
            json!({ "name": "A" }),
            json!({ "operation": "plan", "targets": ["-x", 1], "variables": { "n": 3, "2": "x" } }),
            &["metadata.name", "spec.targets[0]", "spec.targets[1]", "spec.variables.n", "spec.variables"],
        ),
        (json!({ "generateName": "A-" }), json!({ "operation": "plan" }), &["metadata.generateName"]),
        (json!({ "labels": { "a": "b c" } }), json!({ "operation": "plan" }), &["metadata.labels"]),
        (
            json!({ "labels": { "rezuscloud.io/role": "b" } }),
            json!({ "operation": "plan" }),
            &["metadata.labels"],
        ),
        (json!({}), json!({ "operation": "plan", "approval": "auto" }), &["spec.approval: Invalid value"]),
        (json!({}), json!({ "operation": "drift", "replace": ["a.b"] }), &["spec.replace: Invalid value"]),
        (json!({}), json!({ "operation": "plan", "reason": "x".repeat(1_025) }), &["spec.reason"]),
    ] {
        let body = run(metadata, spec);
        let error = read(&body, Validation::Warn).unwrap_err();
        assert_eq!(error.code(), 422, "{body}");
        let status: Value = serde_json::from_str(&error.to_status()).unwrap();
        assert_eq!(status["reason"], "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        for piece in expected {
            assert!(error.message().contains(piece), "{}", error.message());
            let field = piece.split(": ").next().unwrap();
            assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {status}");
        }
    }
}

#[test]
fn unknown_fields_are_refused_or_warned_of_or_passed_over() {
    let body = run(
        json!({ "nme": "a", "annotations": { "note": "x" } }),
        json!({ "operation": "plan", "aproval": "auto" }),
    );
    let error = read(&body, Validation::Strict).unwrap_err();
    assert_eq!(error.code(), 400);
    for field in ["unknown field \"metadata.nme\"", "unknown field \"spec.aproval\""] {
        assert!(error.message().contains(field), "{}", error.message());
        assert!(read(&body, Validation::Warn).unwrap().warnings.iter().any(|warning| warning == field));
    }
    assert_eq!(read(&body, Validation::Ignore).unwrap().warnings, ["metadata.annotations are not kept"]);
}

#[test]
fn what_is_no_run_of_this_tenant_is_refused() {
    let plan = json!({ "operation": "plan" });
    for (body, piece) in [
        (json!([]), "no object"),
        (json!({ "kind": "Run", "spec": plan }), "apiVersion"),
        (json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Machine" }), "takes a Run"),
        (run(json!({ "namespace": "other" }), plan.clone()), "does not match the namespace"),
        (run(json!({ "resourceVersion": "1" }), plan), "resourceVersion should not be set"),
    ] {
        let error = read(&body, Validation::Strict).unwrap_err();
        assert_eq!(error.code(), 400, "{body}");
        assert!(error.message().contains(piece), "{}", error.message());
    }
    let torn = Manifest::read(b"{\"kind\":\"secret", &"prod".parse().unwrap(), "ann", Validation::Warn);
    assert!(!torn.unwrap_err().message().contains("secret"));
}

#[test]
fn a_query_says_how() {
    let terms = Terms::parse("fieldManager=kubectl-create&fieldValidation=Strict&dryRun=All").unwrap();
    assert_eq!(terms, Terms { is_rehearsal: true, validation: Validation::Strict });
    assert_eq!(Terms::parse("").unwrap(), Terms::default());
    for bad in ["dryRun=Some", "fieldValidation=strict"] {
        assert_eq!(Terms::parse(bad).unwrap_err().code(), 400, "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_is_sent_is_answered(body in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,40}") {
        drop(Manifest::read(&body, &"prod".parse().unwrap(), "ann", Validation::Strict));
        let body = run(json!({ text.clone(): text, "labels": { text.clone(): text } }), json!({ text.clone(): text, "operation": text }));
        prop_assert!(read(&body, Validation::Strict).is_err());
    }
}
