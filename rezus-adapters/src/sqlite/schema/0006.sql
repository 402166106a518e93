-- An operator's stop of the tenant; all four are absent where there is none.
ALTER TABLE tenants ADD COLUMN frozen_at INTEGER; -- milliseconds since 1970
ALTER TABLE tenants ADD COLUMN frozen_by TEXT;
ALTER TABLE tenants ADD COLUMN freeze_reason TEXT;
ALTER TABLE tenants ADD COLUMN freeze_clients INTEGER;

-- Runs, in the order they were added.
CREATE TABLE runs (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    ended  INTEGER NOT NULL,
    record TEXT    NOT NULL, -- JSON
    UNIQUE (tenant, name)
) STRICT;
CREATE INDEX runs_by_tenant ON runs (tenant, seq);
CREATE INDEX runs_under_way ON runs (seq) WHERE ended = 0;

-- What is set of a tenant, and the digest of the uploaded configuration that it names.
CREATE TABLE tenant_settings (
    tenant   TEXT PRIMARY KEY,
    archive  TEXT,
    settings TEXT NOT NULL -- JSON
) STRICT, WITHOUT ROWID;

-- Uploaded configurations, by the SHA-256 of their bytes: those that settings name.
CREATE TABLE archives (
    digest TEXT    PRIMARY KEY,
    size   INTEGER NOT NULL,
    data   BLOB    NOT NULL -- compressed
) STRICT;
