-- +goose Up
-- An intent's transactions are found by its signer and number, which their unique index begins with. A second index for the same was one entry more for
-- each number that is claimed.
DROP INDEX keeper.tx_attempt_intent;

-- +goose Down
CREATE INDEX tx_attempt_intent ON keeper.tx_attempt (intent, seq);
