-- +goose Up
-- What a transaction came to for the owner of the position it closed or decreased; NULL where it did nothing to a position.
ALTER TABLE keeper.tx_receipt ADD settlement jsonb;

-- +goose Down
ALTER TABLE keeper.tx_receipt DROP settlement;
