//! One machine, as it is asked: through which connection, by which name, and until when.

use std::time::Duration;

use futures_util::StreamExt as _;
use prost::Message;
use rezus_core::observed::Failure;
use tokio::time::{Instant, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use super::fault::{Fault, LARGEST};
use super::proto::cosi::state_client::StateClient;
use super::proto::cosi::{GetRequest, ListRequest, Resource};
use super::proto::machine::machine_service_client::MachineServiceClient;
use super::proto::time::time_service_client::TimeServiceClient;

/// How long a call may take.
pub(super) const UNARY: Duration = Duration::from_secs(10);
/// The same of etcd, which blocks as long as it may where there is no quorum.
pub(super) const ETCD: Duration = Duration::from_secs(5);
/// How many resources one list may have.
const MOST_RESOURCES: usize = 20_000;

/// A type of resources, and the namespace where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind(pub(super) &'static str, pub(super) &'static str);

/// Whom calls go to.
#[derive(Debug)]
pub(super) struct Peer {
    channel: Channel,
    node: Option<MetadataValue<Ascii>>,
    deadline: Instant,
}

impl Peer {
    /// The machine at the other end of a channel or, with `node`, the one of that address that it forwards calls to. No call
    /// outlasts `deadline`.
    pub(super) fn new(channel: Channel, node: Option<&str>, deadline: Instant) -> Result<Self, Failure> {
        let node = node.map(MetadataValue::try_from).transpose();
        let node =
            node.map_err(|_| Failure::Internal { detail: "a machine's address is none".to_owned() })?;
        Ok(Self { channel, node, deadline })
    }

    /// Tells whether there is no time left.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    pub(super) fn machines(&self) -> MachineServiceClient<Channel> {
        MachineServiceClient::new(self.channel.clone()).max_decoding_message_size(LARGEST)
    }

    pub(super) fn clocks(&self) -> TimeServiceClient<Channel> {
        TimeServiceClient::new(self.channel.clone()).max_decoding_message_size(LARGEST)
    }

    fn resources(&self) -> StateClient<Channel> {
        StateClient::new(self.channel.clone()).max_decoding_message_size(LARGEST)
    }

    /// Makes one call, for `what`, within `limit`.
    pub(super) async fn call<Q, A, F>(
        &self,
        what: &str,
        limit: Duration,
        message: Q,
        send: impl FnOnce(Request<Q>) -> F,
    ) -> Result<A, Fault>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        match self.answer(limit, message, send).await? {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(Fault::of(&status, what, limit)),
        }
    }

    /// The outer error is of a call that was not answered in time.
    async fn answer<Q, A, F>(
        &self,
        limit: Duration,
        message: Q,
        send: impl FnOnce(Request<Q>) -> F,
    ) -> Result<Result<Response<A>, Status>, Fault>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let limit = limit.min(left);
        let mut request = Request::new(message);
        // It travels along, so that a machine does not go on for somebody who has left.
        request.set_timeout(limit);
        if let Some(node) = &self.node {
            request.metadata_mut().insert("node", node.clone());
        }
        timeout(limit, send(request)).await.map_err(|_| Fault::timeout(limit))
    }

    /// Returns the spec of one resource; `None` where there is no such resource.
    pub(super) async fn get<S: Message + Default>(&self, kind: Kind, id: &str) -> Result<Option<S>, Fault> {
        let Kind(namespace, name) = kind;
        let message =
            GetRequest { namespace: namespace.to_owned(), r#type: name.to_owned(), id: id.to_owned() };
        let mut client = self.resources();
        let send = |request| async move { client.get(request).await };
        match self.answer(UNARY, message, send).await? {
            Ok(response) => response.into_inner().resource.map(|resource| spec(&resource, name)).transpose(),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(Fault::of(&status, name, UNARY)),
        }
    }

    /// Returns the ids and the specs of all resources of a type. One whose spec is not understood is left out.
    pub(super) async fn list<S: Message + Default>(&self, kind: Kind) -> Result<Vec<(String, S)>, Fault> {
        let Kind(namespace, name) = kind;
        let message = ListRequest { namespace: namespace.to_owned(), r#type: name.to_owned() };
        let mut client = self.resources();
        let end = self.deadline.min(Instant::now() + UNARY);
        let mut stream =
            self.call(name, UNARY, message, |request| async move { client.list(request).await }).await?;
        let mut found = Vec::new();
        let mut size = 0_usize;
        loop {
            let next =
                tokio::time::timeout_at(end, stream.next()).await.map_err(|_| Fault::timeout(UNARY))?;
            let Some(next) = next else { return Ok(found) };
            let next = next.map_err(|status| Fault::of(&status, name, UNARY))?;
            size = size.saturating_add(next.encoded_len());
            if size > LARGEST || found.len() >= MOST_RESOURCES {
                let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
                return Err(Fault::answer(Failure::TooLarge { limit }));
            }
            let Some(resource) = next.resource else { continue };
            if let Ok(spec) = spec(&resource, name) {
                found.push((resource.metadata.unwrap_or_default().id, spec));
            }
        }
    }
}

fn spec<S: Message + Default>(resource: &Resource, name: &str) -> Result<S, Fault> {
    let bytes = resource.spec.as_ref().map(|spec| spec.proto_spec.as_slice()).unwrap_or_default();
    S::decode(bytes).map_err(|_| Fault::answer(Failure::Malformed { start: format!("the spec of {name}") }))
}
