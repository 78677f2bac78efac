-- +goose Up
-- What operators do beside the senders: call a transaction off, and act when keepers fail.

-- An operator wants this arm's number back: who, and why. The sender that has the lease gives the number to a payment to oneself. NULL for nobody.
ALTER TABLE keeper.tx_intent ADD called_off text;

-- What was planned, rehearsed and handed over in an emergency (LIQ-15), and what was said to have come of it. The rows of one run share its id.
CREATE TABLE keeper.emergency_action (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run      uuid        NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    action   text        COLLATE "C" NOT NULL,
    operator text        NOT NULL, -- who asked: a person, or the watch of a keeper
    cause    text        NOT NULL, -- why
    dry_run  boolean     NOT NULL,
    stage    text        NOT NULL CHECK (stage IN ('planned', 'rehearsed', 'handed_over', 'done', 'failed')),
    contract bytea       CHECK (octet_length(contract) = 20), -- where the call goes; NULL for what happens in the keeper
    calldata bytea,
    tx_hash  bytea       CHECK (octet_length(tx_hash) = 32),
    outcome  text        NOT NULL, -- in words
    CHECK ((contract IS NULL) = (calldata IS NULL))
);
CREATE INDEX emergency_action_at ON keeper.emergency_action (at);
CREATE TRIGGER emergency_action_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON keeper.emergency_action
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_change();

-- How far the result topic was told to others (LIQ-12): what is below has been delivered, or put with the dead letters.
CREATE TABLE keeper.notified (
    audience    text        COLLATE "C" NOT NULL,
    topic       text        COLLATE "C" NOT NULL,
    part        integer     NOT NULL,
    next_offset bigint      NOT NULL CHECK (next_offset >= 0),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (audience, topic, part)
);

-- +goose Down
DROP TABLE keeper.notified;
DROP TABLE keeper.emergency_action;
ALTER TABLE keeper.tx_intent DROP COLUMN called_off;
