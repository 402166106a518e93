//! Looks for secrets in all that a server has written.

use std::path::Path;

use rezus_testkit::canary::Canary;
use rusqlite::{Connection, OpenFlags};

/// Where secrets are: in the files of folders, and in the tables of databases, whose pages may split what they hold.
pub(super) fn leaks(canary: &Canary, folders: &[&Path]) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders {
        each_file(folder, &mut |path, bytes| {
            let shown = path.display();
            found.extend(canary.leaks(bytes).into_iter().map(|leak| format!("{shown}: {leak}")));
            if bytes.starts_with(b"SQLite format 3\0") {
                each_value(path, &mut |table, bytes| {
                    let leaks = canary.leaks(bytes).into_iter();
                    found.extend(leaks.map(|leak| format!("{shown}: table {table}: {leak}")));
                });
            }
        });
    }
    found
}

/// Reads each file below a folder.
pub(super) fn each_file(folder: &Path, look: &mut impl FnMut(&Path, &[u8])) {
    // What a server that runs has taken away meanwhile holds nothing any more.
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() {
            each_file(&path, look);
        } else if kind.is_file()
            && let Ok(bytes) = std::fs::read(&path)
        {
            look(&path, &bytes);
        }
    }
}

fn each_value(database: &Path, look: &mut impl FnMut(&str, &[u8])) {
    let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables {
        let mut select = database.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let columns = select.column_count();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                if let Ok(bytes) = row.get_ref(column).unwrap().as_bytes() {
                    look(&table, bytes);
                }
            }
        }
    }
}
