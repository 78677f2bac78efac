-- +goose Up
-- A day's money is divided among the lanes of jobs. What was spent is summed up again and again while a signer works, so a receipt says itself of which
-- kind its job was, and the index holds all that the sum needs.
ALTER TABLE keeper.tx_receipt ADD kind text;
UPDATE keeper.tx_receipt r SET kind = t.kind FROM keeper.tx_intent t WHERE t.id = r.intent;
ALTER TABLE keeper.tx_receipt ALTER kind SET NOT NULL;
DROP INDEX keeper.tx_receipt_spent;
CREATE INDEX tx_receipt_spent ON keeper.tx_receipt (signer, seen_at) INCLUDE (kind, gas_used, gas_price);
-- What the venue has paid a signer in a day is subtracted.
CREATE INDEX commission_earned ON keeper.commission (signer, earned_at);

-- +goose Down
DROP INDEX keeper.commission_earned;
DROP INDEX keeper.tx_receipt_spent;
CREATE INDEX tx_receipt_spent ON keeper.tx_receipt (signer, seen_at) INCLUDE (gas_used, gas_price);
ALTER TABLE keeper.tx_receipt DROP kind;
