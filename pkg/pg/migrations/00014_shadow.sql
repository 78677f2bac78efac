-- +goose Up
-- What a keeper without keys would have sent (sender.mode = shadow): one row for each birth of a job that its planner found due.
CREATE TABLE keeper.shadow_trial (
    job_id     text    COLLATE "C" NOT NULL,
    birth_ms   bigint  NOT NULL,
    kind       text    NOT NULL,
    key        bytea   NOT NULL,
    account    bytea   NOT NULL,
    market     bytea   NOT NULL,
    is_long    boolean NOT NULL,
    heard_ms   bigint  NOT NULL, -- by the chain's clock
    sent_block bigint  NOT NULL, -- the head on which the simulated call succeeded; 0 = it never did
    sent_ms    bigint  NOT NULL,
    gas        bigint  NOT NULL, -- limit
    gas_price  bigint  NOT NULL, -- wei
    reverts    integer NOT NULL,
    outcome    text    NOT NULL, -- how it ended without being sent; empty while it is open, and when it was sent
    reason     text    NOT NULL,
    PRIMARY KEY (job_id, birth_ms)
);
CREATE INDEX shadow_trial_heard ON keeper.shadow_trial (heard_ms);

-- +goose Down
DROP TABLE keeper.shadow_trial;
