//! What all kinds share: conditions, and fields that could not be read.

use serde::{Deserialize, Serialize};

/// Something that is true, false or unknown of an object, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is said, in one word, such as `SpecAvailable`, Tainted or Ready. Each is said at most once of an object.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["True", "False", "Unknown"])))]
    pub status: String,
    /// Why, in one word for programs.
    #[serde(default)]
    pub reason: String,
    /// Why, in words for people; may be empty.
    #[serde(default)]
    pub message: String,
    /// When the status changed last, in RFC 3339. Of a condition made from the state: when that state was written.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// The `metadata.generation` that it was made from; absent where it depends on no spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<u64>,
    /// Who says so. state: the state alone, what is declared. run: what tofu or terraform reported. collector: what was
    /// observed of the running cluster. Conditions of one source never depend on another.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["state", "run", "collector"])))]
    pub source: String,
}

/// A field that could not be read as its mapping says: it is absent from the spec, and the rest of the object is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The field of spec, as it is spelt here.
    pub field: String,
    /// Why it is absent or in doubt. Never a secret of the state.
    pub reason: String,
}
