//! Machines, listed and followed: what reflectors hold is what lists say, over changes and restarts of the server.

use std::fmt::Debug;

use futures_util::{Stream, StreamExt as _, pin_mut};
use kube::api::{ApiResource, ListParams, PostParams};
use kube::core::{ObjectList, PartialObjectMeta};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::server::{Machine, PATIENCE, Server, kind, state};

/// Objects whole, sorted by namespace and name.
pub(crate) type Held = Vec<(String, Value)>;

/// A reflector, and what it was told, each with what it held then.
#[derive(Debug)]
struct Reflector {
    way: &'static str,
    told: mpsc::UnboundedReceiver<(String, Held)>,
    task: JoinHandle<()>,
}

impl Reflector {
    fn start<K>(
        way: &'static str,
        events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    ) -> Self
    where
        K: Resource<DynamicType = ApiResource> + Serialize + Clone + Debug + Send + Sync + 'static,
    {
        let writer = Writer::new(kind());
        let store = writer.as_reader();
        let (tell, told) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let events = reflector(writer, events.default_backoff());
            pin_mut!(events);
            while let Some(event) = events.next().await {
                let text = match event {
                    Ok(Event::Apply(object)) => format!("{} is there", object.name_any()),
                    Ok(Event::Delete(object)) => format!("{} is gone", object.name_any()),
                    Ok(Event::Init) => "anew".to_owned(),
                    Ok(Event::InitApply(object)) => format!("{} was there", object.name_any()),
                    Ok(Event::InitDone) => "that was all".to_owned(),
                    Err(error) => format!("error: {error:?}"),
                };
                let held = held(store.state().iter().map(|object| &**object));
                if tell.send((text, held)).is_err() {
                    return;
                }
            }
        });
        Self { way, told, task }
    }

    async fn next(&mut self) -> (String, Held) {
        let next = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        next.unwrap_or_else(|_| panic!("{}: nothing is told", self.way)).expect("it goes on for ever")
    }

    /// Waits until it holds what a list says, and returns what it was told until then.
    async fn converges(&mut self, list: &Held) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let (text, held) = self.next().await;
            told.push(text);
            if held == *list {
                return told;
            }
            assert!(told.len() < 100, "{}: told {told:#?}, holds {held:#?}, not {list:#?}", self.way);
        }
    }

    /// Asserts what it is told next, in any order, and that it then holds what a list says.
    async fn is_told(&mut self, expected: &[&str], list: &Held) {
        let (mut told, mut last) = (Vec::new(), Vec::new());
        for _ in expected {
            let (text, held) = self.next().await;
            told.push(text);
            last = held;
        }
        told.sort();
        assert_eq!(told, expected, "{}", self.way);
        assert_eq!(last, *list, "{}", self.way);
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn held<'a, K: Resource + Serialize + 'a>(objects: impl IntoIterator<Item = &'a K>) -> Held {
    let of = |object: &K| {
        let key = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        (key, serde_json::to_value(object).unwrap())
    };
    let mut objects: Held = objects.into_iter().map(of).collect();
    objects.sort_by(|(one, _), (other, _)| one.cmp(other));
    objects
}

/// What lists say: whole, of one tenant, metadata.
struct Lists([Held; 3]);

impl Lists {
    async fn of(server: &Server) -> Self {
        let all = server.machines();
        let web: Api<Machine> = Api::namespaced_with(server.client(), "web", &kind());
        let parameters = ListParams::default();
        Self([
            held(&all.list(&parameters).await.unwrap().items),
            held(&web.list(&parameters).await.unwrap().items),
            held(&all.list_metadata(&parameters).await.unwrap().items),
        ])
    }
}

/// Reflectors of all kinds, each with the place of its list.
fn reflectors(server: &Server) -> Vec<(usize, Reflector)> {
    let all = server.machines();
    let web: Api<Machine> = Api::namespaced_with(server.client(), "web", &kind());
    let metadata: Api<PartialObjectMeta<Machine>> = Api::all_with(server.client(), &kind());
    let listed = || Config::default().page_size(1);
    let streamed = || Config::default().streaming_lists();
    vec![
        (0, Reflector::start("list and watch", watcher(all.clone(), listed()))),
        (0, Reflector::start("streaming list", watcher(all, streamed()))),
        (1, Reflector::start("list and watch of one tenant", watcher(web.clone(), listed()))),
        (1, Reflector::start("streaming list of one tenant", watcher(web, streamed()))),
        (2, Reflector::start("list and watch of metadata", watcher(metadata.clone(), listed()))),
        (2, Reflector::start("streaming list of metadata", watcher(metadata, streamed()))),
    ]
}

#[tokio::test]
async fn reflectors_hold_what_lists_say_over_changes_and_restarts() {
    let mut server = Server::start().await;
    let (a, b, c) = (("a", "worker", "one"), ("b", "worker", "one"), ("c", "controlplane", "two"));
    server.post("web", state(1, &[a, b, c])).await;
    server.post("other", state(1, &[("x", "worker", "far")])).await;
    let Lists(lists) = Lists::of(&server).await;
    assert_eq!(lists.each_ref().map(Vec::len), [4, 3, 4]);
    let mut reflectors = reflectors(&server);
    for (list, reflector) in &mut reflectors {
        let told = reflector.converges(&lists[*list]).await;
        assert_eq!((told[0].as_str(), told.last().unwrap().as_str()), ("anew", "that was all"));
        assert_eq!(told.len(), lists[*list].len() + 2, "{}: {told:?}", reflector.way);
    }

    // One changes, one goes, one comes; one is as it was.
    let (changed, new) = (("a", "worker", "two"), ("d", "worker", "two"));
    server.post("web", state(2, &[changed, b, new])).await;
    let Lists(lists) = Lists::of(&server).await;
    for (list, reflector) in &mut reflectors {
        reflector.is_told(&["a is there", "c is gone", "d is there"], &lists[*list]).await;
    }

    for (round, serial) in [(1, 3), (2, 5)] {
        server.restart().await;
        // Before or after they are back: nobody knows.
        server.post("web", state(serial, &[b, c])).await;
        if round == 1 {
            server.delete("other").await;
        }
        let Lists(lists) = Lists::of(&server).await;
        for (list, reflector) in &mut reflectors {
            let told = reflector.converges(&lists[*list]).await;
            // The versions from before are none of this server's: what is there was told anew, and not over and over.
            assert!(told.iter().any(|text| text == "anew"), "{}: {told:?}", reflector.way);
            assert!(told.len() < 30, "{}: {told:?}", reflector.way);
        }
        server.post("web", state(serial + 1, &[changed, b, c])).await;
        let Lists(lists) = Lists::of(&server).await;
        for (list, reflector) in &mut reflectors {
            reflector.is_told(&["a is there"], &lists[*list]).await;
        }
    }
}

#[tokio::test]
async fn lists_and_single_machines_are_read_as_types() {
    let server = Server::start().await;
    server.post("web", state(1, &[("a", "worker", "one"), ("c", "controlplane", "two")])).await;
    server.post("other", state(1, &[("x", "worker", "far")])).await;
    let all = server.machines();
    let web: Api<Machine> = Api::namespaced_with(server.client(), "web", &kind());
    let names = |list: ObjectList<Machine>| {
        list.items
            .iter()
            .map(|machine| format!("{}/{}", machine.namespace().unwrap(), machine.name_any()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(all.list(&ListParams::default()).await.unwrap()), ["other/x", "web/a", "web/c"]);
    assert_eq!(names(web.list(&ListParams::default()).await.unwrap()), ["web/a", "web/c"]);
    let selected = ListParams::default().fields("spec.role=controlplane");
    assert_eq!(names(all.list(&selected).await.unwrap()), ["web/c"]);
    let first = all.list(&ListParams::default().limit(2)).await.unwrap();
    let rest = ListParams::default().limit(2).continue_token(first.metadata.continue_.as_ref().unwrap());
    assert_eq!(names(first), ["other/x", "web/a"]);
    assert_eq!(names(all.list(&rest).await.unwrap()), ["web/c"]);

    let machine = web.get("a").await.unwrap();
    assert_eq!((machine.spec.role.as_deref(), machine.spec.zone.as_deref()), (Some("worker"), Some("one")));
    assert_eq!((machine.spec.addresses[0].address.as_str(), machine.spec.cpus), ("10.0.0.1", Some(4.0)));
    assert!(machine.metadata.uid.is_some() && machine.metadata.resource_version.is_some());
    assert_eq!(web.get_opt("nope").await.unwrap().map(|machine| machine.name_any()), None);
    let Err(kube::Error::Api(refused)) = web.create(&PostParams::default(), &machine).await else {
        panic!("it is read-only");
    };
    assert_eq!((refused.code, refused.reason.as_str()), (405, "MethodNotAllowed"));
}
