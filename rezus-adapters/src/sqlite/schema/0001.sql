-- Counters that never go back: revisions of tenants' records.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 0);

-- One row a tenant. Versions of removed tenants, and removed versions, are those of tenant 0: nobody's.
CREATE TABLE tenants (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    name             TEXT    NOT NULL UNIQUE,
    revision         INTEGER NOT NULL,
    created_at       INTEGER NOT NULL, -- milliseconds since 1970
    permanent        INTEGER NOT NULL,
    require_locks    INTEGER NOT NULL,
    highest_serial   TEXT,             -- decimal: serials have 64 bits and no sign
    head             INTEGER,          -- number of the newest version
    lock_id          TEXT    UNIQUE,
    lock_info        TEXT,             -- the client's JSON
    lock_acquired_at INTEGER,
    lock_acquired_by TEXT,
    lock_head        INTEGER,          -- number of the newest version when the lock was granted
    last_released    TEXT              -- ID of the lock that was let go last
) STRICT;

CREATE TABLE versions (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id      INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    serial         TEXT,
    lineage        TEXT,
    writer         TEXT,
    sha256         BLOB    NOT NULL,
    md5            BLOB    NOT NULL,
    size_bytes     INTEGER NOT NULL,
    content        TEXT    NOT NULL, -- plain, encrypted or tombstone
    objects        INTEGER NOT NULL,
    is_empty       INTEGER NOT NULL,
    written_at     INTEGER NOT NULL,
    written_by     TEXT    NOT NULL,
    lock_id        TEXT,
    lock_operation TEXT,
    forced         INTEGER NOT NULL,
    unlocked       INTEGER NOT NULL,
    intermediate   INTEGER NOT NULL,
    pinned         INTEGER NOT NULL,
    rollback_of    INTEGER,
    UNIQUE (tenant_id, version)
) STRICT;

-- A version's bytes, 64 KiB each, compressed one by one: any range is read without the rest.
CREATE TABLE chunks (
    version_id INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    data       BLOB    NOT NULL,
    PRIMARY KEY (version_id, seq)
) STRICT, WITHOUT ROWID;

-- Locks let go of late, by whom they were held. The tenant may be gone.
CREATE TABLE released_locks (
    lock_id     TEXT    NOT NULL,
    tenant      TEXT    NOT NULL,
    info        TEXT    NOT NULL,
    released_at INTEGER NOT NULL,
    broken      INTEGER NOT NULL,
    PRIMARY KEY (lock_id, tenant)
) STRICT, WITHOUT ROWID;
CREATE INDEX released_locks_by_age ON released_locks (released_at);

CREATE TABLE refusals (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    who       TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    code      INTEGER NOT NULL,
    reason    TEXT    NOT NULL,
    head      INTEGER
) STRICT;
CREATE INDEX refusals_by_tenant ON refusals (tenant, id);

-- The derived index: a cache, of one version of each tenant. An id is never used again.
CREATE TABLE index_heads (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT    NOT NULL UNIQUE,
    version   INTEGER NOT NULL,
    sha256    BLOB    NOT NULL,
    format    INTEGER NOT NULL,
    row_count INTEGER NOT NULL
) STRICT;
CREATE TABLE index_rows (
    head_id       INTEGER NOT NULL,
    address       TEXT    NOT NULL,
    deposed       TEXT    NOT NULL, -- empty for the current object
    module        TEXT    NOT NULL,
    mode          TEXT    NOT NULL,
    resource_type TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    instance_key  ANY,              -- NULL, an integer or a text
    provider      TEXT    NOT NULL,
    tainted       INTEGER NOT NULL,
    block         INTEGER NOT NULL,
    instance      INTEGER NOT NULL,
    span_start    INTEGER NOT NULL,
    span_end      INTEGER NOT NULL,
    checksum      INTEGER NOT NULL,
    masked        TEXT    NOT NULL, -- JSON pointers, as a JSON array
    seal          INTEGER NOT NULL, -- CRC-32 of all other columns but the first
    PRIMARY KEY (head_id, address, deposed)
) STRICT, WITHOUT ROWID;
-- Heads that were replaced, whose rows are still there: nobody's, removed while nobody waits.
CREATE TABLE index_garbage (
    head_id INTEGER PRIMARY KEY
) STRICT;
