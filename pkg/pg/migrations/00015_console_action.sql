-- +goose Up
-- Who did what by the operators' console. An action is written down before it is done, with what it was done to, and
-- again with what came of it; the rows of one action share its run.
CREATE TABLE keeper.console_action (
    id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run     uuid        NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    who     text        COLLATE "C" NOT NULL, -- the user's name
    role    text        NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    address text        NOT NULL,             -- where the browser was
    action  text        COLLATE "C" NOT NULL,
    target  text        NOT NULL,             -- what it was done to
    reason  text        NOT NULL,             -- why, in the user's words; may be empty
    stage   text        NOT NULL CHECK (stage IN ('asked', 'done', 'failed')),
    before  jsonb       NOT NULL,
    after   jsonb       NOT NULL,             -- {} until it is done
    outcome text        NOT NULL              -- why it failed; empty otherwise
);
CREATE INDEX console_action_run ON keeper.console_action (run);
CREATE TRIGGER console_action_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON keeper.console_action
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_change();

-- +goose Down
DROP TABLE keeper.console_action;
