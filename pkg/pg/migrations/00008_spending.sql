-- +goose Up
-- What a signer has spent in a day is summed up again and again while it works. The sum must not look through all intents there ever were to find out whose
-- a receipt is, so a receipt says it itself. Intents never change their signer.
ALTER TABLE keeper.tx_receipt ADD signer bytea;
UPDATE keeper.tx_receipt r SET signer = t.signer FROM keeper.tx_intent t WHERE t.id = r.intent;
ALTER TABLE keeper.tx_receipt ALTER signer SET NOT NULL;
DROP INDEX keeper.tx_receipt_spent;
CREATE INDEX tx_receipt_spent ON keeper.tx_receipt (signer, seen_at) INCLUDE (gas_used, gas_price);

-- +goose Down
DROP INDEX keeper.tx_receipt_spent;
CREATE INDEX tx_receipt_spent ON keeper.tx_receipt (seen_at);
ALTER TABLE keeper.tx_receipt DROP signer;
