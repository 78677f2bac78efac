-- What every table of rows has: the partition that writes the row, the revision that wrote it last, and when an undo removed it (the row stays a
-- while as a tombstone, for readers that follow revisions).
ALTER TABLE {state}.{table}
    ADD COLUMN part       smallint NOT NULL,
    ADD COLUMN rev        bigint   NOT NULL,
    ADD COLUMN deleted_at timestamptz,
    -- The writing partition is part of the identity: after a reorg the exchange gives a key to somebody else's order, whose partition may apply the new
    -- branch before the old one has taken its row back.
    ADD PRIMARY KEY (key, part);
CREATE INDEX {table}_tombstone ON {state}.{table} (part) WHERE deleted_at IS NOT NULL;
