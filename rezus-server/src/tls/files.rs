//! Certificates and keys in files.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// Reads a PEM file.
pub(super) fn read(path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|source| TlsError::File {
        path: path.to_owned(),
        what: "read",
        source,
    })
}

/// Writes a file at once and for good, closed to all others.
pub(super) fn write(path: &Path, text: &str) -> Result<(), TlsError> {
    let failed = |source| TlsError::File { path: path.to_owned(), what: "written", source };
    let partial = path.with_extension("partial");
    let write = || -> io::Result<()> {
        match std::fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&partial, path)?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    };
    write().map_err(failed)
}

/// Makes a directory closed to all others, where there is none.
pub(super) fn make_directory(path: &Path) -> Result<(), TlsError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| TlsError::File { path: path.to_owned(), what: "made", source })
}

/// Reads the certificates of a PEM text, at least one.
pub(super) fn certificates(pem: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(TlsError::unsound(path, "it holds no certificate"))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(TlsError::unsound(path, error)),
    }
}

/// Reads the private key of a PEM text.
pub(super) fn key(pem: &str, path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| TlsError::unsound(path, error))
}
