//! A tenant's lock, as the HTTP backend's clients describe it.

use std::fmt;

use crate::base::Timestamp;

/// The ID of a lock: opaque text of the client's choice.
///
/// - 1 to 256 characters, none of them a control character
/// - compared byte for byte; OpenTofu and Terraform send the form of a UUID, with random version bits
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(String);

/// Why a text is no lock ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockIdError {
    /// No character at all.
    #[error("the lock's ID is empty")]
    Empty,
    /// More than 256 characters.
    #[error("the lock's ID has more than 256 characters")]
    TooLong,
    /// A control character.
    #[error("the lock's ID holds a control character")]
    Control,
}

impl LockId {
    /// Takes a text as a lock's ID.
    ///
    /// # Errors
    ///
    /// [`LockIdError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, LockIdError> {
        if text.is_empty() {
            return Err(LockIdError::Empty);
        }
        if text.chars().count() > 256 {
            return Err(LockIdError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(LockIdError::Control);
        }
        Ok(Self(text.to_owned()))
    }

    /// An ID that tells people something: the text as far as an ID may hold it.
    pub(super) fn saying(text: &str) -> Self {
        Self(text.chars().filter(|c| !c.is_control()).take(256).collect())
    }

    /// Returns the ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a client says of its lock: the body of LOCK and UNLOCK, and of our answer to whoever comes second.
///
/// All but the ID is text for people; `tofu force-unlock` sends the ID alone.
#[derive(Clone, PartialEq, Eq)]
pub struct LockInfo {
    /// Which lock it is.
    pub id: LockId,
    /// What the client was doing, such as `OperationTypeApply` or `state-push`.
    pub operation: String,
    /// The client's remark; usually empty.
    pub info: String,
    /// `user@host` of the client.
    pub who: String,
    /// The client's version.
    pub version: String,
    /// When the client made the lock, in RFC 3339 as the client spelt it.
    pub created: String,
    /// The client's path of the state; empty for remote states.
    pub path: String,
}

/// Why a body is no lock info.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Not JSON, or not an object with text members.
    #[error(
        "the body is no lock info: expected a JSON object with ID, Operation, Info, Who, Version, Created and Path"
    )]
    NotLockInfo,
    /// The ID cannot be one.
    #[error("the lock info's ID cannot be used")]
    Id(#[source] LockIdError),
}

/// The members' spelling on the wire (OpenTofu, `statemgr.LockInfo`).
#[derive(serde::Serialize, serde::Deserialize)]
struct Wire {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Operation", default)]
    operation: String,
    #[serde(rename = "Info", default)]
    info: String,
    #[serde(rename = "Who", default)]
    who: String,
    #[serde(rename = "Version", default)]
    version: String,
    #[serde(rename = "Created", default)]
    created: String,
    #[serde(rename = "Path", default)]
    path: String,
}

impl LockInfo {
    /// Reads the body of a LOCK or UNLOCK. A `Created` that is absent or no time becomes `now`: a client that is shown
    /// this lock could not read it otherwise.
    ///
    /// # Errors
    ///
    /// [`LockError`]; no message repeats the body.
    pub fn from_json(body: &[u8], now: Timestamp) -> Result<Self, LockError> {
        // Through a map: a struct would also be read from an array.
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(body).map_err(|_| LockError::NotLockInfo)?;
        let wire: Wire = serde_json::from_value(object.into()).map_err(|_| LockError::NotLockInfo)?;
        let created = if Timestamp::parse(&wire.created).is_ok() { wire.created } else { now.to_string() };
        Ok(Self {
            id: LockId::parse(&wire.id).map_err(LockError::Id)?,
            operation: wire.operation,
            info: wire.info,
            who: wire.who,
            version: wire.version,
            created,
            path: wire.path,
        })
    }

    /// Returns the lock as a client reads it.
    pub fn to_json(&self) -> String {
        let wire = Wire {
            id: self.id.as_str().to_owned(),
            operation: self.operation.clone(),
            info: self.info.clone(),
            who: self.who.clone(),
            version: self.version.clone(),
            created: self.created.clone(),
            path: self.path.clone(),
        };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// Tells whether the client is pushing a state by hand: the only sign of `state push -force` that a server gets.
    pub fn is_state_push(&self) -> bool {
        self.operation == "state-push"
    }
}

/// ID and owner only: the remark is free text of the client's.
impl fmt::Debug for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockInfo")
            .field("id", &self.id)
            .field("operation", &self.operation)
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(0);

    #[test]
    fn what_clients_send_is_read_and_given_back() {
        let body = r#"{"ID":"264fb901","Operation":"OperationTypeApply","Info":"","Who":"root@vm","Version":"1.12.6","Created":"2026-11-30T16:54:37.540115051+02:00","Path":""}"#;
        let info = LockInfo::from_json(body.as_bytes(), NOW).unwrap();
        assert_eq!(info.to_json(), body);
    }

    #[test]
    fn an_id_alone_is_enough_and_gets_a_date_that_clients_can_read() {
        let info = LockInfo::from_json(br#"{"ID":"x","Created":"0001-01-01T00:00:00Z"}"#, NOW).unwrap();
        assert_eq!(info.created, "0001-01-01T00:00:00Z");
        let info = LockInfo::from_json(br#"{"ID":"x","Created":"noon"}"#, NOW).unwrap();
        assert_eq!(info.created, "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn what_is_no_lock_info_is_refused_without_being_repeated() {
        for bad in
            ["", "{}", "[]", r#"["x","apply"]"#, r#"{"ID":7}"#, r#"{"ID":""}"#, "{\"ID\":\"a\\u0000\"}"]
        {
            let error = LockInfo::from_json(bad.as_bytes(), NOW).unwrap_err().to_string();
            assert!(!error.contains("\\u0000"), "{error}");
        }
    }
}
