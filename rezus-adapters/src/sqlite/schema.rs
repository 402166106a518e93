//! The file's format, and how a connection to it is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::OpenError;

/// Marks the file as one of rezus: "rezu" in ASCII.
const APPLICATION_ID: i32 = 0x7265_7a75;

/// One script for each format: script N makes format N + 1 out of format N. Never edited once released.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
];

/// Opens the file for the one thread that writes; makes it where there is none.
pub(super) fn open_for_writing(path: &Path) -> Result<Connection, OpenError> {
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => return Err(OpenError::Empty { path: path.to_owned() }),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make(path)?,
        Err(source) => return Err(OpenError::File { path: path.to_owned(), source }),
    }
    let mut connection = connect(path).map_err(fail)?;
    check_marks(&connection, path)?;
    set_up(&mut connection).map_err(fail)?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open(path)?;
    tune(&connection)?;
    Ok(connection)
}

/// Makes a file under another name and gives it its own once it is whole: what lies under that name is never half a
/// database, so one that is empty or without its marks has lost something.
fn make(path: &Path) -> Result<(), OpenError> {
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let fail_file = |source| OpenError::File { path: path.to_owned(), source };
    let unfinished = path.with_added_extension("new");
    std::fs::File::create(&unfinished).map_err(fail_file)?;
    restrict(&unfinished);
    let mut connection = connect(&unfinished).map_err(fail)?;
    // Only an empty database takes this; it lets pages of removed versions be given back a few at a time.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(fail)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
    set_up(&mut connection).map_err(fail)?;
    // The last connection to close moves the log into the file.
    connection.close().map_err(|(_, source)| fail(source))?;
    std::fs::rename(&unfinished, path).map_err(fail_file)?;
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(fail_file)
}

/// Opens the file for a reader.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    tune(&connection)?;
    // In KiB, for each of several readers. What is not in here is in the kernel's cache, once for all of them.
    connection.pragma_update(None, "cache_size", -256)?;
    Ok(connection)
}

fn tune(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Plans do not depend on the values that are bound: without this, every new value compiles the statement anew.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Tells whether a file is one of rezus, and of a format that this release knows.
pub(super) fn check_marks(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let mark = |name: &str| -> Result<i64, OpenError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })
    };
    if mark("application_id")? != i64::from(APPLICATION_ID) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let found = u32::try_from(mark("user_version")?).unwrap_or(u32::MAX);
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

fn set_up(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The log is synced at every commit: what was acknowledged survives a power cut.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // The log is moved into the file while nobody waits; only one of this many pages is moved within a commit.
    connection.pragma_update(None, "wal_autocheckpoint", 16_384)?;
    // The log file is cut to this after a checkpoint, so one large state does not keep its size for good.
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    let format: usize = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (place, script) in MIGRATIONS.iter().enumerate().skip(format) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "user_version", place + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

/// States hold secrets: the file, and the log that takes its mode, are the owner's alone.
pub(super) fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if let Err(error) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)) {
        // The directory is closed to others already; a file system without modes is no reason not to start.
        drop(error);
    }
}
