-- Whether states in clear are refused; absent where the server's own setting counts.
ALTER TABLE tenants ADD COLUMN require_encryption INTEGER;
