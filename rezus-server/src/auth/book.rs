//! All accounts, kept in memory as long as they stay as they are.

use std::sync::{Arc, PoisonError, RwLock};

use rezus_core::access::{AccountStore, AccountStoreError, Directory};
use tokio::sync::watch;

use crate::error::ApiError;

/// The accounts of a store that this process alone changes.
#[derive(Debug)]
pub struct Book {
    store: Arc<dyn AccountStore>,
    held: RwLock<Held>,
    /// One change at a time: what it decides on is what it changes.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// How often they were forgotten, for those who wait for it.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Held {
    /// How often they were forgotten: what was read before is not kept after.
    generation: u64,
    directory: Option<Arc<Directory>>,
}

/// Forgets however a change ends.
struct Forgetting {
    book: Arc<Book>,
    /// Whether nobody who waits for changes is told.
    is_quiet: bool,
}

impl Drop for Forgetting {
    fn drop(&mut self) {
        self.book.let_go();
        if !self.is_quiet {
            self.book.tell();
        }
    }
}

impl Book {
    /// Opens the book of a store.
    pub fn new(store: Arc<dyn AccountStore>) -> Self {
        Self { store, held: RwLock::default(), changing: Arc::default(), changed: watch::Sender::new(0) }
    }

    /// Returns the store, for what is no account.
    pub fn store(&self) -> &Arc<dyn AccountStore> {
        &self.store
    }

    /// Returns the accounts: never older than the last change that was answered.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    pub async fn directory(&self) -> Result<Arc<Directory>, AccountStoreError> {
        let generation = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(directory) = &held.directory {
                return Ok(Arc::clone(directory));
            }
            held.generation
        };
        let directory = Arc::new(Directory::new(self.store.accounts().await?));
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.generation == generation {
            held.directory = Some(Arc::clone(&directory));
        }
        Ok(directory)
    }

    /// Makes a change, one after the other, to its end even where nobody waits for it any more.
    ///
    /// # Errors
    ///
    /// What the change says.
    pub async fn change<T, F>(
        self: &Arc<Self>,
        change: impl FnOnce(Arc<dyn AccountStore>) -> F + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ApiError>> + Send,
    {
        self.change_with(false, change).await
    }

    /// Makes a change of tokens for tenants' states. Nobody watches anything by one, so nobody has to be told: each run has
    /// several.
    ///
    /// # Errors
    ///
    /// What the change says.
    pub async fn change_of_programs<T, F>(
        self: &Arc<Self>,
        change: impl FnOnce(Arc<dyn AccountStore>) -> F + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ApiError>> + Send,
    {
        self.change_with(true, change).await
    }

    async fn change_with<T, F>(
        self: &Arc<Self>,
        is_quiet: bool,
        change: impl FnOnce(Arc<dyn AccountStore>) -> F + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ApiError>> + Send,
    {
        let book = Arc::clone(self);
        let work = async move {
            let turn = Arc::clone(&book.changing).lock_owned().await;
            let forgetting = Forgetting { book: Arc::clone(&book), is_quiet };
            let outcome = change(Arc::clone(&book.store)).await;
            drop(forgetting);
            drop(turn);
            outcome
        };
        tokio::spawn(work).await.map_err(ApiError::internal)?
    }

    /// Has the accounts read anew.
    pub fn forget(&self) {
        self.let_go();
        self.tell();
    }

    fn tell(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }

    fn let_go(&self) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.generation += 1;
        held.directory = None;
    }

    /// Tells when an account may have changed.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
