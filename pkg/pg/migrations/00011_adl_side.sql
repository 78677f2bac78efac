-- +goose Up
-- What is left to deleverage of a side of a market is known when the one before has landed: one transaction of the keeper is under way for it at a time.
CREATE UNIQUE INDEX tx_intent_adl_side ON keeper.tx_intent ((job ->> 'market'), (job ->> 'isLong'))
	WHERE kind IN ('adl', 'adlState') AND state IN ('SIGNED', 'SENT', 'MINED');

-- +goose Down
DROP INDEX keeper.tx_intent_adl_side;
