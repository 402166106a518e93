-- Nothing changes.
SELECT 1;
