//! The nodes of a cluster, as a watch keeps them.

use std::collections::BTreeMap;

use rezus_core::observed::facts::Node;

use super::objects::NodeObject;
use super::watch::Keep;

/// As many nodes as are kept: Kubernetes itself is made for 5,000.
const MOST: usize = 20_000;

/// The nodes, by name.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    present: BTreeMap<String, Node>,
    /// Those of a list that has not ended.
    listed: BTreeMap<String, Node>,
}

impl Nodes {
    pub(super) fn all(&self) -> Vec<Node> {
        self.present.values().cloned().collect()
    }
}

impl Keep for Nodes {
    type Object = NodeObject;

    fn begin(&mut self) {
        self.listed.clear();
    }

    fn listed(&mut self, object: NodeObject) {
        if self.listed.len() < MOST {
            self.listed.insert(object.node.name.clone(), object.node);
        }
    }

    fn end(&mut self) -> bool {
        let listed = std::mem::take(&mut self.listed);
        let before = std::mem::replace(&mut self.present, listed);
        before != self.present
    }

    fn put(&mut self, object: NodeObject) -> bool {
        let node = object.node;
        if self.present.get(&node.name) == Some(&node) {
            // Its heart beats, or something that is not read changed.
            return false;
        }
        if self.present.len() < MOST || self.present.contains_key(&node.name) {
            self.present.insert(node.name.clone(), node);
        }
        true
    }

    fn remove(&mut self, object: &NodeObject) -> bool {
        self.present.remove(&object.node.name).is_some()
    }
}
