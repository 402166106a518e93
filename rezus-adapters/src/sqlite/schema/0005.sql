-- The high-water mark of resource versions: one row.
CREATE TABLE version_mark (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    mark INTEGER NOT NULL
) STRICT;
