-- +goose Up
-- Arms that failed for a cause that may pass are tried again by whoever has their signer's lease, at the time that stands with their end.
CREATE INDEX tx_intent_retry ON keeper.tx_intent (signer, ended_at) WHERE outcome IN ('reverted', 'foreign') AND NOT given_up;

-- +goose Down
DROP INDEX keeper.tx_intent_retry;
