//! The socket in the data directory, however long that directory's path is.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// An address of a socket has room for 108 bytes, on some systems 104, and a zero (`sys/un.h`).
const LONGEST: usize = 103;

/// A path of a socket that is short enough to bind and to connect to. It is good as long as this lives.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    #[expect(dead_code, reason = "the path leads through it")]
    directory: Option<File>,
}

impl SocketPath {
    /// Finds a short way to a socket: its own path, or one through its opened directory.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the directory cannot be opened, or the path is too long where there is no `/proc`.
    pub fn to(socket: &Path) -> io::Result<Self> {
        let length = socket.as_os_str().len();
        if length <= LONGEST {
            return Ok(Self { path: socket.to_owned(), directory: None });
        }
        let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let directory = File::open(parent)?;
        let through = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        if !through.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "its path has {length} bytes and may have {LONGEST}: choose a shorter data directory, or a symbolic link to it"
                ),
            ));
        }
        Ok(Self { path: through.join(name), directory: Some(directory) })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Binds the socket, closed to all others. The caller holds the data directory: whatever is there is a left-over.
pub(super) fn bind(socket: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let short = SocketPath::to(socket)?;
    let listener = UnixListener::bind(short.path())?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
