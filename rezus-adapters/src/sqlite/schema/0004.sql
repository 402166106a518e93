-- Accounts: of a token its hash alone.
CREATE TABLE users (
    name       TEXT    NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL, -- milliseconds since 1970
    created_by TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE memberships (
    user_name  TEXT    NOT NULL,
    group_name TEXT    NOT NULL,
    PRIMARY KEY (user_name, group_name)
) STRICT, WITHOUT ROWID;
CREATE TABLE grants (
    subject_kind TEXT  NOT NULL CHECK (subject_kind IN ('user', 'group')),
    subject      TEXT  NOT NULL,
    role         TEXT  NOT NULL,
    tenant       TEXT  NOT NULL, -- empty: all tenants
    PRIMARY KEY (subject_kind, subject, role, tenant)
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    id           TEXT    NOT NULL PRIMARY KEY,
    digest       BLOB    NOT NULL UNIQUE, -- SHA-256
    user_name    TEXT,
    tenant       TEXT,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    note         TEXT    NOT NULL,
    CHECK ((user_name IS NULL) <> (tenant IS NULL))
) STRICT, WITHOUT ROWID;
-- What was done, by whom, with what outcome: names and numbers only.
CREATE TABLE audit (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    groups      TEXT    NOT NULL, -- JSON array
    token       TEXT,
    came_from   TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    tenant      TEXT,
    object      TEXT    NOT NULL,
    code        INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_tenant ON audit (tenant, id);
CREATE INDEX audit_by_who ON audit (who, id);
