-- Who declared objects are over time, as of the version a tenant's table was carried on to: no value of a state.
CREATE TABLE history_heads (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant  TEXT    NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    sha256  BLOB    NOT NULL
) STRICT;
CREATE TABLE object_history (
    head_id         INTEGER NOT NULL,
    kind            TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    uid             TEXT    NOT NULL,
    first_version   INTEGER NOT NULL,
    changed_version INTEGER NOT NULL,
    digest          BLOB    NOT NULL,
    created_at      INTEGER NOT NULL, -- milliseconds since 1970
    changed_at      INTEGER NOT NULL,
    PRIMARY KEY (head_id, kind, name)
) STRICT, WITHOUT ROWID;
