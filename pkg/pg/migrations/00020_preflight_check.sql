-- +goose Up
-- What was said of an arm before it got its nonce, for people. Written beside the road, and so without a reference to the arm.
CREATE TABLE keeper.preflight_check (
    intent  bigint      NOT NULL,
    at      timestamptz NOT NULL, -- by the clock of the process that checked
    stage   text        NOT NULL,
    verdict text        NOT NULL,
    said    text        NOT NULL,
    said_by text        NOT NULL,
    block   bigint      NOT NULL  -- as of which; 0 where that is not known
);
CREATE INDEX preflight_check_intent ON keeper.preflight_check (intent);
CREATE INDEX preflight_check_at ON keeper.preflight_check USING brin (at);

-- +goose Down
DROP TABLE keeper.preflight_check;
