-- +goose Up
-- Further attempts at a nonce, arms that are cancelled, numbers that are filled; times of jobs by the chain's clock; databases that went back in time.

-- Which database this signer's rows were last known to be whole in. A backup that was restored, and a replica that was promoted, are other ones.
ALTER TABLE keeper.signer
    ADD system_identifier bigint,           -- of the server's cluster
    ADD timeline          integer,          -- of its log
    ADD expected_below    bigint NOT NULL DEFAULT 0, -- a resync found the chain at this nonce: below it, strangers' transactions alarm nobody
    ADD resynced_at       timestamptz;

ALTER TABLE keeper.tx_intent
    DROP CONSTRAINT tx_intent_state_check,
    ADD  CONSTRAINT tx_intent_state_check CHECK (state IN
        ('QUEUED', 'SIGNED', 'SENT', 'MINED', 'FINAL_OK', 'FINAL_REVERTED', 'FINAL_LOST_RACE', 'CANCELLED', 'SKIPPED', 'FOREIGN')),
    ADD tries          integer NOT NULL DEFAULT 0 CHECK (tries >= 0), -- failed arms in a row before this one
    ADD given_up       boolean NOT NULL DEFAULT false,                -- it failed, and no arm follows by itself: somebody has to look
    ADD cancel_outcome text,                                          -- how the arm ends if what only frees its nonce is mined
    ADD cancel_reason  text,
    ADD said_ms        bigint  NOT NULL DEFAULT 0,                    -- chain time of the state in which a planner last found the job
    ADD rearm_ms       bigint,                                        -- the next arm needs the job to be found in a state from after this
    ADD CHECK ((cancel_outcome IS NULL) = (cancel_reason IS NULL));
UPDATE keeper.tx_intent SET said_ms = (extract(epoch FROM said_at) * 1000)::bigint, rearm_ms = (extract(epoch FROM rearm_at) * 1000)::bigint;
ALTER TABLE keeper.tx_intent
    DROP COLUMN said_at,
    DROP COLUMN rearm_at,
    ADD CHECK ((rearm_ms IS NULL) = (ended_at IS NULL));

ALTER TABLE keeper.tx_attempt
    DROP CONSTRAINT tx_attempt_kind_check,
    ADD  CONSTRAINT tx_attempt_kind_check CHECK (kind IN ('EXEC', 'CANCEL', 'FILL'));
CREATE INDEX tx_receipt_spent ON keeper.tx_receipt (seen_at);

-- What others may know of liquidations (LIQ-8): the newest arm of each job that is in flight, or was given up. Whoever wants it of positions joins it to
-- the active generation's; see pg.Liquidations.
CREATE VIEW keeper.liquidation AS
    SELECT DISTINCT ON (key) key, account, job_id, arm, tries, outcome, reason, ended_at,
        CASE WHEN ended_at IS NULL THEN 'LIQUIDATING' WHEN given_up THEN 'LIQUIDATION_FAILED' END AS status
    FROM keeper.tx_intent WHERE kind = 'liquidation' AND state <> 'QUEUED'
    ORDER BY key, id DESC;

-- +goose Down
DROP VIEW keeper.liquidation;
DROP INDEX keeper.tx_receipt_spent;
ALTER TABLE keeper.tx_intent ADD said_at timestamptz, ADD rearm_at timestamptz;
UPDATE keeper.tx_intent SET said_at = to_timestamp(said_ms / 1000.0), rearm_at = to_timestamp(rearm_ms / 1000.0);
ALTER TABLE keeper.tx_intent
    ALTER said_at SET NOT NULL, ADD CHECK ((rearm_at IS NULL) = (ended_at IS NULL)),
    DROP COLUMN tries, DROP COLUMN given_up, DROP COLUMN cancel_outcome, DROP COLUMN cancel_reason, DROP COLUMN said_ms, DROP COLUMN rearm_ms;
ALTER TABLE keeper.signer DROP COLUMN system_identifier, DROP COLUMN timeline, DROP COLUMN expected_below, DROP COLUMN resynced_at;
