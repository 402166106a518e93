//! A run as it is asked for: the object in the body, and the query beside it.

use std::collections::BTreeMap;
use std::str::FromStr;

use rezus_core::base::TenantName;
use rezus_core::runs::{Operation, RequestError, RunName, RunRequest, Target, VariableName};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::kube::kinds::{GROUP, RUN};
use crate::kube::{is_label_key, is_label_value};
use crate::runs::{Name, NewRun};

/// How long a reason may be, in characters.
const REASON: usize = 1_024;

/// What becomes of fields that are unknown (`fieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// What the query says (Kubernetes, `CreateOptions`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    /// Nothing is to be made.
    pub(super) is_rehearsal: bool,
    pub(super) validation: Validation,
}

impl Terms {
    pub(super) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut terms = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match (&*name, &*value) {
                ("dryRun", "All") => terms.is_rehearsal = true,
                ("dryRun" | "fieldValidation", "") => {}
                ("dryRun", _) => return Err(ApiError::bad_request("dryRun: expected All")),
                ("fieldValidation", "Ignore") => terms.validation = Validation::Ignore,
                ("fieldValidation", "Warn") => terms.validation = Validation::Warn,
                ("fieldValidation", "Strict") => terms.validation = Validation::Strict,
                ("fieldValidation", _) => {
                    return Err(ApiError::bad_request("fieldValidation: expected Ignore, Warn or Strict"));
                }
                _ => {}
            }
        }
        Ok(terms)
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub(super) new: NewRun,
    /// What of it counts for nothing.
    pub(super) warnings: Vec<String>,
}

/// Members of `metadata` that clients send along and that are the server's to say (Kubernetes, `ObjectMeta`).
const SERVERS: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Labels that the server gives to runs, whatever is sent.
const OWN_LABELS: [&str; 2] = ["rezuscloud.io/tenant", "rezuscloud.io/operation"];

/// What is wrong with one field.
struct Fault {
    field: String,
    reason: &'static str,
    message: String,
}

impl Fault {
    fn required(field: &str) -> Self {
        Self { field: field.to_owned(), reason: "FieldValueRequired", message: "Required value".to_owned() }
    }

    fn invalid(field: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self { field: field.into(), reason: "FieldValueInvalid", message: format!("Invalid value: {why}") }
    }

    fn of_type(field: impl Into<String>, expected: &str) -> Self {
        let message = format!("Invalid value: must be of type {expected}");
        Self { field: field.into(), reason: "FieldValueTypeInvalid", message }
    }
}

/// Reads an object, and keeps what is wrong with it.
#[derive(Default)]
struct Reader {
    faults: Vec<Fault>,
    unknown: Vec<String>,
}

impl Manifest {
    /// Reads a body: JSON of a Run for this tenant, asked for by `caller` whatever it says.
    pub(super) fn read(
        body: &[u8],
        tenant: &TenantName,
        caller: &str,
        validation: Validation,
    ) -> Result<Self, ApiError> {
        // The error's own words may quote the body.
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            ApiError::bad_request(format!("the body is no JSON (line {line}, column {column})"))
        })?;
        let Value::Object(object) = body else {
            return Err(ApiError::bad_request("the body is JSON, but no object"));
        };
        let is = |member: &str, expected: &str| object.get(member).and_then(Value::as_str) == Some(expected);
        if !is("kind", RUN.kind) || !is("apiVersion", RUN.api_version()) {
            return Err(ApiError::bad_request(format!(
                "this path takes a {} of {}: say so in kind and apiVersion",
                RUN.kind,
                RUN.api_version()
            )));
        }
        let mut reader = Reader::default();
        reader.known(&object, "", &["apiVersion", "kind", "metadata", "spec", "status"]);
        let none = Map::new();
        let metadata = reader.object(&object, "metadata", "").unwrap_or(&none);
        let spec = reader.object(&object, "spec", "");
        if spec.is_none() {
            reader.faults.push(Fault::required("spec"));
        }
        reader.metadata(metadata, tenant)?;
        let request = reader.spec(spec.unwrap_or(&none), caller);
        let labels = reader.labels(metadata);
        let name = reader.name(metadata, request.as_ref());
        let told = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut warnings = Vec::new();
        if !reader.unknown.is_empty() {
            let unknown: Vec<String> =
                reader.unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
            match validation {
                Validation::Strict => {
                    let message = format!(
                        "{} in version \"v1alpha1\" cannot be handled as a {}: strict decoding error: {}",
                        RUN.kind,
                        RUN.kind,
                        unknown.join(", ")
                    );
                    return Err(ApiError::bad_request(message));
                }
                Validation::Warn => warnings.extend(unknown),
                Validation::Ignore => {}
            }
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(|map| !map.is_empty()) {
            warnings.push("metadata.annotations are not kept".to_owned());
        }
        match (request, name) {
            (Some(request), Some(name)) if reader.faults.is_empty() => {
                let new = NewRun { name, labels, request };
                new.request.check().map_err(|error| mismatch(&error, &new))?;
                Ok(Self { new, warnings })
            }
            _ => Err(invalid(told, &reader.faults)),
        }
    }
}

impl Reader {
    /// Notes members that are none of an object's.
    fn known(&mut self, object: &Map<String, Value>, place: &str, members: &[&str]) {
        let strange = object.keys().filter(|member| !members.contains(&member.as_str()));
        // What reads like a field is repeated, and nothing else: it may be anything.
        let shown = |member: &String| {
            let is_field = member.len() <= 40 && member.bytes().all(|byte| byte.is_ascii_alphanumeric());
            format!("{place}{}", if is_field { member } else { "(not shown)" })
        };
        self.unknown.extend(strange.map(shown));
    }

    fn object<'v>(
        &mut self,
        from: &'v Map<String, Value>,
        member: &str,
        place: &str,
    ) -> Option<&'v Map<String, Value>> {
        match from.get(member) {
            None | Some(Value::Null) => None,
            Some(Value::Object(object)) => Some(object),
            Some(_) => {
                self.faults.push(Fault::of_type(format!("{place}{member}"), "object"));
                None
            }
        }
    }

    fn text<'v>(&mut self, from: &'v Map<String, Value>, member: &str, place: &str) -> Option<&'v str> {
        match from.get(member) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => {
                self.faults.push(Fault::of_type(format!("{place}{member}"), "string"));
                None
            }
        }
    }

    /// A text that can be read as something, if there is one.
    fn parsed<T: FromStr<Err = RequestError>>(
        &mut self,
        from: &Map<String, Value>,
        member: &str,
    ) -> Option<T> {
        let text = self.text(from, member, "spec.")?;
        match text.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                let message = format!("Unsupported value: {error}");
                let field = format!("spec.{member}");
                self.faults.push(Fault { field, reason: "FieldValueNotSupported", message });
                None
            }
        }
    }

    fn metadata(&mut self, metadata: &Map<String, Value>, tenant: &TenantName) -> Result<(), ApiError> {
        let own = ["name", "generateName", "namespace", "labels", "annotations"];
        let members: Vec<&str> = own.into_iter().chain(SERVERS).collect();
        self.known(metadata, "metadata.", &members);
        match self.text(metadata, "namespace", "metadata.") {
            Some(namespace) if !namespace.is_empty() && namespace != tenant.as_str() => {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            _ => {}
        }
        if self.text(metadata, "resourceVersion", "metadata.").is_some_and(|version| !version.is_empty()) {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        Ok(())
    }

    fn name(&mut self, metadata: &Map<String, Value>, request: Option<&RunRequest>) -> Option<Name> {
        let name = self.text(metadata, "name", "metadata.").filter(|name| !name.is_empty());
        let prefix = self.text(metadata, "generateName", "metadata.").filter(|prefix| !prefix.is_empty());
        let (field, read) = match (name, prefix) {
            (Some(name), _) => ("metadata.name", RunName::parse(name).map(Name::Given)),
            (None, Some(prefix)) => {
                // Whether a name can begin so is the same whatever it ends with.
                let tried = RunName::generate(prefix, [0; 5]);
                ("metadata.generateName", tried.map(|_| Name::Prefix(prefix.to_owned())))
            }
            (None, None) => return Some(Name::Prefix(format!("{}-", request?.operation))),
        };
        read.map_err(|error| self.faults.push(Fault::invalid(field, error))).ok()
    }

    fn labels(&mut self, metadata: &Map<String, Value>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        let Some(given) = self.object(metadata, "labels", "metadata.") else {
            return labels;
        };
        for (key, value) in given.iter().filter(|(key, _)| !OWN_LABELS.contains(&key.as_str())) {
            let fault = match value {
                Value::String(value) if is_makers(key) && (value.is_empty() || is_label_value(value)) => {
                    labels.insert(key.clone(), value.clone());
                    continue;
                }
                Value::String(_) => Fault::invalid(
                    "metadata.labels",
                    "a label's value is up to 63 letters, digits, '-', '_' and '.', its key the same with a DNS name and '/' \
                     before it at most",
                ),
                _ => Fault::of_type("metadata.labels", "string"),
            };
            self.faults.push(fault);
        }
        labels
    }

    fn spec(&mut self, spec: &Map<String, Value>, caller: &str) -> Option<RunRequest> {
        let members = ["operation", "approval", "variables", "targets", "replace", "reason", "requestedBy"];
        self.known(spec, "spec.", &members);
        let before = self.faults.len();
        let operation: Option<Operation> = self.parsed(spec, "operation");
        if operation.is_none() && self.faults.len() == before {
            self.faults.push(Fault::required("spec.operation"));
        }
        let approval = self.parsed(spec, "approval");
        let variables = self.variables(spec);
        let targets = self.targets(spec, "targets");
        let replace = self.targets(spec, "replace");
        let reason = self.text(spec, "reason", "spec.").filter(|reason| !reason.is_empty());
        if reason.is_some_and(|reason| reason.chars().count() > REASON) {
            let why = format!("it has more than {REASON} characters");
            self.faults.push(Fault::invalid("spec.reason", why));
        }
        let reason = reason.map(ToOwned::to_owned);
        Some(RunRequest {
            approval,
            variables,
            targets,
            replace,
            reason,
            ..RunRequest::new(operation?, caller)
        })
    }

    fn variables(&mut self, spec: &Map<String, Value>) -> BTreeMap<VariableName, String> {
        let mut variables = BTreeMap::new();
        for (name, value) in self.object(spec, "variables", "spec.").into_iter().flatten() {
            match (VariableName::parse(name), value) {
                (Ok(name), Value::String(value)) => {
                    variables.insert(name, value.clone());
                }
                (Ok(name), _) => {
                    self.faults.push(Fault::of_type(format!("spec.variables.{name}"), "string"));
                }
                (Err(error), _) => self.faults.push(Fault::invalid("spec.variables", error)),
            }
        }
        variables
    }

    fn targets(&mut self, spec: &Map<String, Value>, member: &str) -> Vec<Target> {
        let mut targets = Vec::new();
        let list = match spec.get(member) {
            None | Some(Value::Null) => return targets,
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.faults.push(Fault::of_type(format!("spec.{member}"), "array"));
                return targets;
            }
        };
        for (place, target) in list.iter().enumerate() {
            let field = format!("spec.{member}[{place}]");
            match target.as_str().map(Target::parse) {
                Some(Ok(target)) => targets.push(target),
                Some(Err(error)) => self.faults.push(Fault::invalid(field, error)),
                None => self.faults.push(Fault::of_type(field, "string")),
            }
        }
        targets
    }
}

/// Tells whether a label is the maker's to give: those of rezus are the server's own.
fn is_makers(key: &str) -> bool {
    is_label_key(key) && !key.starts_with("rezuscloud.io/")
}

/// What is asked for does not go together.
pub(super) fn mismatch(error: &RequestError, new: &NewRun) -> ApiError {
    let field = match error {
        RequestError::NotWith { what, .. } => format!("spec.{what}"),
        _ => "spec".to_owned(),
    };
    let name = match &new.name {
        Name::Given(name) => name.as_str(),
        Name::Prefix(_) => "",
    };
    invalid(name, &[Fault::invalid(field, error)])
}

/// 422 in the form of a kube-apiserver.
fn invalid(name: &str, faults: &[Fault]) -> ApiError {
    // What is no name is not repeated.
    let name = RunName::parse(name).map(String::from).unwrap_or_default();
    let said: Vec<String> =
        faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
    let said = match said.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let cause =
        |fault: &Fault| json!({ "reason": fault.reason, "message": fault.message, "field": fault.field });
    let details = json!({
        "name": name,
        "group": GROUP,
        "kind": RUN.kind,
        "causes": faults.iter().map(cause).collect::<Vec<_>>(),
    });
    ApiError::invalid(format!("{}.{GROUP} \"{name}\" is invalid: {said}", RUN.kind)).with_details(details)
}

#[cfg(test)]
mod tests;
