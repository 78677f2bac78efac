-- +goose Up
-- A transaction takes a place among those in flight until it is mined as far as two hosts agree, which is long before it is final. One number of the signer
-- says that of all its transactions: those below it are mined. After a reorg it is lower again. A liquidation that is below it has given its slot back.
ALTER TABLE keeper.signer_lease ADD mined_nonce bigint NOT NULL DEFAULT 0 CHECK (mined_nonce >= 0);

-- +goose Down
ALTER TABLE keeper.signer_lease DROP mined_nonce;
