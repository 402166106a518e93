//! What says that a database is not what was written.

use rusqlite::{Error, ErrorCode};

/// Tells whether an error of SQLite is of a file that is not what was written, rather than of one that is out of reach.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            // A value, or a table, that is none of those that are written.
            Error::FromSqlConversionFailure(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidColumnType(..)
                | Error::SqlInputError { .. }
        )
        // Of a table that is gone SQLite gives no code of its own.
        || matches!(error, Error::SqliteFailure(_, Some(message)) if message.starts_with("no such table"))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn what_is_not_there_as_it_was_written_is_damage_and_what_is_locked_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("some.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE kept (name TEXT); INSERT INTO kept VALUES (x'ff')").unwrap();
        let read = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap_err();
        assert!(is_damage(&read("SELECT name FROM kept")));
        assert!(is_damage(&read("SELECT name FROM gone")));
        assert!(is_damage(&read("SELECT gone FROM kept")));
        assert!(!is_damage(&read("SELECT name FROM kept WHERE name = 'none'")));
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        assert!(!is_damage(&read("SELECT name FROM kept")));
        let file = directory.path().join("other.db");
        std::fs::write(&file, [0x5a; 4_096]).unwrap();
        let error =
            Connection::open(&file).unwrap().query_row("SELECT * FROM kept", [], |_| Ok(())).unwrap_err();
        assert!(is_damage(&error));
    }
}
