-- By which rules a tenant's index was masked; an index of an earlier release by none that is in force.
ALTER TABLE index_heads ADD COLUMN secret_rules BLOB NOT NULL
    DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
