//! A certificate for reading alone, made by the cluster for who may have one made: what is shown to machines all day can
//! then change nothing, and ends within a day.

use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::observed::{Credential, Failure};
use zeroize::Zeroizing;

use super::fault::{Blame, Fault};
use super::identity::Identity;
use super::peer::{Peer, UNARY};
use super::proto::machine::GenerateClientConfigurationRequest;

/// Who may read all that is read here.
const READER: &str = "os:reader";
/// How long a certificate is asked for.
const LIFETIME: Duration = Duration::from_hours(24);
/// How long before its end the next one is.
const AHEAD: Duration = Duration::from_hours(6);
/// When to ask again whoever refused.
const AGAIN: Duration = Duration::from_hours(1);

/// The certificate, or why there is none.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) identity: Option<Identity>,
    refused: Option<(Timestamp, Failure)>,
}

impl Reader {
    /// Tells whether one has to be made.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let has_one = self.identity.as_ref().is_some_and(|identity| now < identity.until.minus(AHEAD));
        let waits = self.refused.as_ref().is_some_and(|(at, _)| now.since(*at) < AGAIN);
        !has_one && !waits
    }

    /// Why there is none, where one was asked for.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.refused.as_ref().map(|(_, failure)| failure)
    }

    pub(super) fn made(&mut self, identity: Identity) {
        *self = Self { identity: Some(identity), refused: None };
    }

    /// Who refuses it is not asked again soon, who does not answer is in the next turn.
    pub(super) fn refused(&mut self, now: Timestamp, fault: Fault) {
        let at = if fault.blame == Blame::Answer { now } else { now.minus(AGAIN) };
        self.refused = Some((at, fault.failure));
    }
}

/// Has a certificate made. Only what it shows is taken from the answer: whom it trusts stays what the tenant's credential
/// says.
pub(super) async fn make(peer: &Peer, given: &Credential) -> Result<Identity, Fault> {
    let lifetime =
        prost_types::Duration { seconds: i64::try_from(LIFETIME.as_secs()).unwrap_or(0), nanos: 0 };
    let request =
        GenerateClientConfigurationRequest { roles: vec![READER.to_owned()], crt_ttl: Some(lifetime) };
    let mut client = peer.machines();
    let send = |request| async move { client.generate_client_configuration(request).await };
    let answer = peer.call("client configuration", UNARY, request, send).await?;
    let made = answer.messages.into_iter().next().unwrap_or_default();
    let credential = Credential {
        ca: given.ca.clone(),
        certificate: Zeroizing::new(made.crt),
        key: Zeroizing::new(made.key),
    };
    Identity::new(&credential).map_err(Fault::answer)
}
