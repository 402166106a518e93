//! The mappings in force: others can come into force while a server runs.

use std::sync::{Arc, PoisonError, RwLock};

use super::Mappings;

/// The mappings that states are read by from now on, shared by all that read them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct MappingsInForce(Arc<RwLock<Mappings>>);

impl MappingsInForce {
    /// Puts mappings in force.
    pub fn new(mappings: Mappings) -> Self {
        Self(Arc::new(RwLock::new(mappings)))
    }

    /// Returns the mappings. One piece of work goes by one answer from its beginning to its end.
    pub fn get(&self) -> Mappings {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts others in force, for whoever asks from now on.
    pub fn replace(&self, mappings: Mappings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = mappings;
    }
}
