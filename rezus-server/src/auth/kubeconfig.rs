//! The administrator's kubeconfig: how the first one gets in.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_core::access::{
    AccountStoreError, PrincipalName, Role, Scope, Subject, TokenKind, TokenRecord, TokenSecret, User,
};
use serde::Deserialize;
use serde_json::json;

use super::{Auth, new_token};
use crate::error::ApiError;

/// The user whose token it holds.
const ADMIN: &str = "admin";

/// Why there is no kubeconfig, or not an up-to-date one.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The accounts cannot be read or written.
    #[error("the accounts cannot be used")]
    Store(#[from] AccountStoreError),
    /// No token could be made.
    #[error("no admin token can be made: {0}")]
    Token(String),
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// What became of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was made, with a new token: there was no admin.
    Made,
    /// Its token works; URL and CA are those of now.
    Updated,
    /// There is an admin, and either no such file or one whose token works no more: it was left alone.
    LeftAlone,
}

/// Returns a kubeconfig, in YAML, with one context, `rezus`.
pub fn render(url: &str, ca_pem: Option<&str>, token: &str) -> String {
    let mut cluster = json!({ "server": url });
    if let Some(ca) = ca_pem {
        cluster["certificate-authority-data"] = STANDARD.encode(ca).into();
    }
    // JSON strings and objects are YAML as well: nothing has to be quoted in another way.
    let user = json!({ "token": token });
    format!(
        "apiVersion: v1
kind: Config
current-context: rezus
clusters:
- name: rezus
  cluster: {cluster}
contexts:
- name: rezus
  context: {{\"cluster\": \"rezus\", \"user\": \"rezus\"}}
users:
- name: rezus
  user: {user}
"
    )
}

/// Makes the file where nobody could get in as admin, and brings one whose token works up to date.
///
/// # Errors
///
/// [`KubeconfigError`].
pub async fn ensure_admin(
    auth: &Auth,
    path: &Path,
    url: &str,
    ca_pem: Option<&str>,
) -> Result<Kept, KubeconfigError> {
    let now = auth.clock().now();
    let directory = auth.book().directory().await?;
    if let Some(token) = token_in(path)
        && let Ok((identity, _)) = directory.by_token(&token.digest(), now)
        && identity.access.role_everywhere() == Some(Role::Admin)
    {
        write(path, &render(url, ca_pem, &token.reveal()))?;
        return Ok(Kept::Updated);
    }
    if directory.has_admin(now) {
        return Ok(Kept::LeftAlone);
    }
    let failed = |error: ApiError| KubeconfigError::Token(format!("{error:?}"));
    let (secret, digest, id) = new_token().map_err(failed)?;
    let name = PrincipalName::parse(ADMIN).map_err(|error| KubeconfigError::Token(error.to_string()))?;
    // Written first: a token that works and that nobody was given would keep the next start from making one.
    write(path, &render(url, ca_pem, &secret.reveal()))?;
    let store = auth.book().store();
    let made_by = "rezus-server".to_owned();
    let user = User { name: name.clone(), groups: [].into(), created_at: now, created_by: made_by.clone() };
    store.add_user(user).await?;
    store.set_grants(&Subject::User(name.clone()), vec![(Role::Admin, Scope::All)]).await?;
    let token = TokenRecord {
        id,
        digest,
        kind: TokenKind::Api(name),
        created_at: now,
        created_by: made_by,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        note: "admin.kubeconfig".to_owned(),
    };
    store.add_token(token).await?;
    auth.book().forget();
    Ok(Kept::Made)
}

/// Returns the token of a kubeconfig, if there is one that can be read.
fn token_in(path: &Path) -> Option<TokenSecret> {
    #[derive(Deserialize)]
    struct Config {
        users: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        user: Credentials,
    }
    #[derive(Deserialize)]
    struct Credentials {
        token: Option<String>,
    }
    let text = std::fs::read_to_string(path).ok()?;
    let config: Config = serde_saphyr::from_str(&text).ok()?;
    let token = config.users.into_iter().find_map(|entry| entry.user.token)?;
    TokenSecret::parse(token.trim()).ok()
}

/// Puts a file in the place of another, its owner's alone: there is never half of it.
fn write(path: &Path, text: &str) -> Result<(), KubeconfigError> {
    let failed = |source| KubeconfigError::File { path: path.to_owned(), source };
    let unfinished = path.with_added_extension("new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file: File =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&unfinished, path).map_err(failed)
}
