-- +goose Up
-- What has ended is read by people alone, and there are tens of thousands of it a day. It moves to tables that are
-- divided by the week in which it ended, and whole weeks of these are dropped in the end; the tables that the sender
-- works with hold the last days (docs/adr/0035-archive.md).
CREATE TABLE keeper.archived_intent (LIKE keeper.tx_intent) PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_intent ALTER ended_at SET NOT NULL, ADD PRIMARY KEY (id, ended_at);
CREATE INDEX archived_intent_job ON keeper.archived_intent (job_id);
CREATE INDEX archived_intent_key ON keeper.archived_intent (key);
CREATE INDEX archived_intent_account ON keeper.archived_intent (account);
CREATE INDEX archived_intent_ended ON keeper.archived_intent (ended_at);

-- What belongs to an intent is of its week, whenever it was written.
CREATE TABLE keeper.archived_attempt (LIKE keeper.tx_attempt, ended_at timestamptz NOT NULL)
    PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_attempt ADD PRIMARY KEY (hash, ended_at);
CREATE INDEX archived_attempt_number ON keeper.archived_attempt (signer, nonce);

CREATE TABLE keeper.archived_receipt (LIKE keeper.tx_receipt, ended_at timestamptz NOT NULL)
    PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_receipt ADD PRIMARY KEY (intent, ended_at);

CREATE TABLE keeper.archived_allocation (LIKE keeper.signer_nonce_allocation, ended_at timestamptz NOT NULL)
    PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_allocation ADD PRIMARY KEY (signer, nonce, ended_at);

-- The weeks there are, and there have been. A row outlives its partitions.
CREATE TABLE keeper.archive_week (
    week       date        PRIMARY KEY CHECK (extract(isodow FROM week) = 1), -- its Monday, UTC
    intents    bigint      NOT NULL DEFAULT 0,
    attempts   bigint      NOT NULL DEFAULT 0,
    sent       bigint      NOT NULL DEFAULT 0, -- of the attempts, those that were broadcast
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropped_at timestamptz,
    bytes      bigint      -- that the drop gave back
);

-- What has to be known of all that was ever archived, in one row.
CREATE TABLE keeper.archive_mark (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    rearm_ms  bigint  NOT NULL DEFAULT -1, -- the highest there is: no job that was found in a state up to then gets an arm
    summed_ms bigint  NOT NULL DEFAULT 0   -- profit and loss of blocks up to this time stand in pnl_day
);
INSERT INTO keeper.archive_mark DEFAULT VALUES;

-- Below it each number of the signer is spent on the chain: one of them is archived, and was final.
CREATE TABLE keeper.archived_nonce (
    signer bytea  PRIMARY KEY REFERENCES keeper.signer,
    below  bigint NOT NULL CHECK (below > 0)
);

-- The last arms of jobs that may come up again: numbers of arms go on for as long as the archive knows of them.
CREATE TABLE keeper.archived_job (
    job_id   text        COLLATE "C" PRIMARY KEY,
    arm      integer     NOT NULL,
    ended_at timestamptz NOT NULL
);
CREATE INDEX archived_job_ended ON keeper.archived_job (ended_at);

-- Profit and loss of the days whose intents are dropped: the entries of pnl.Statement.
CREATE TABLE keeper.pnl_day (
    day          date           NOT NULL, -- by the blocks' time, UTC; a day ends with its last millisecond, midnight
    signer       bytea          NOT NULL,
    kind         text           NOT NULL, -- of the job; empty where the keeper did not know the transaction
    market       text           NOT NULL, -- 0x…; empty where it did not, and for jobs of no market
    purpose      text           NOT NULL,
    transactions bigint         NOT NULL,
    fees         numeric(78, 0) NOT NULL, -- wei
    gas          numeric(78, 0) NOT NULL, -- wei
    PRIMARY KEY (day, signer, kind, market, purpose)
);

-- People see what is archived beside what is not.
CREATE VIEW keeper.every_intent AS SELECT t.*, false AS archived FROM keeper.tx_intent t
    UNION ALL SELECT t.*, true FROM keeper.archived_intent t;
CREATE VIEW keeper.every_attempt AS SELECT a.* FROM keeper.tx_attempt a
    UNION ALL SELECT hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token, sends, first_sent_at, last_sent_at,
        last_class, created_at FROM keeper.archived_attempt;
CREATE VIEW keeper.every_receipt AS SELECT r.* FROM keeper.tx_receipt r
    UNION ALL SELECT intent, tx_hash, block, block_hash, ok, gas_used, gas_price, outcome, reason, final, seen_at, signer,
        settlement, kind FROM keeper.archived_receipt;

-- A receipt is written from the row of its intent and the row of its transaction, by the statement that reads them.
-- Its foreign keys cost the road a look at each, and the archive a search through all receipts for each transaction.
ALTER TABLE keeper.tx_receipt DROP CONSTRAINT tx_receipt_intent_fkey, DROP CONSTRAINT tx_receipt_tx_hash_fkey;

-- What became of intents and numbers is never deleted, unless it stands in the archive.
-- +goose StatementBegin
CREATE FUNCTION keeper.refuse_loss() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- One at a time: a condition is only understood where the row has its columns.
    IF TG_TABLE_NAME = 'tx_intent' THEN
        IF EXISTS (SELECT FROM keeper.archived_intent a WHERE a.id = OLD.id AND a.ended_at = OLD.ended_at) THEN
            RETURN OLD;
        END IF;
    ELSIF TG_TABLE_NAME = 'tx_attempt' THEN
        IF EXISTS (SELECT FROM keeper.archived_attempt a WHERE a.hash = OLD.hash) THEN
            RETURN OLD;
        END IF;
    ELSIF EXISTS (SELECT FROM keeper.archived_allocation a WHERE a.signer = OLD.signer AND a.nonce = OLD.nonce) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'rows of table %.% are never deleted before they are archived', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
DROP TRIGGER tx_intent_stays ON keeper.tx_intent;
DROP TRIGGER signer_nonce_allocation_stays ON keeper.signer_nonce_allocation;
CREATE TRIGGER tx_intent_kept BEFORE DELETE ON keeper.tx_intent
    FOR EACH ROW EXECUTE FUNCTION keeper.refuse_loss();
CREATE TRIGGER tx_attempt_kept BEFORE DELETE ON keeper.tx_attempt
    FOR EACH ROW EXECUTE FUNCTION keeper.refuse_loss();
CREATE TRIGGER signer_nonce_allocation_kept BEFORE DELETE ON keeper.signer_nonce_allocation
    FOR EACH ROW EXECUTE FUNCTION keeper.refuse_loss();
CREATE TRIGGER tx_intent_stays BEFORE TRUNCATE ON keeper.tx_intent
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
CREATE TRIGGER tx_attempt_stays BEFORE TRUNCATE ON keeper.tx_attempt
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
CREATE TRIGGER signer_nonce_allocation_stays BEFORE TRUNCATE ON keeper.signer_nonce_allocation
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();

-- Only the owner of a table may add partitions and drop them; the sender may have it done, a week at a time.
-- +goose StatementBegin
CREATE FUNCTION keeper.open_archive_week(week date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    kind text;
BEGIN
    IF EXISTS (SELECT FROM keeper.archive_week w WHERE w.week = open_archive_week.week AND w.dropped_at IS NULL) THEN
        RETURN;
    END IF;
    FOREACH kind IN ARRAY ARRAY['intent', 'attempt', 'receipt', 'allocation'] LOOP
        EXECUTE format('CREATE TABLE keeper.%I PARTITION OF keeper.%I FOR VALUES FROM (%L) TO (%L)',
            'archived_' || kind || '_' || to_char(week, 'YYYYMMDD'), 'archived_' || kind,
            week::timestamp AT TIME ZONE 'UTC', (week + 7)::timestamp AT TIME ZONE 'UTC');
    END LOOP;
    INSERT INTO keeper.archive_week AS w (week) VALUES (open_archive_week.week)
        ON CONFLICT ON CONSTRAINT archive_week_pkey DO UPDATE SET dropped_at = NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION keeper.drop_archive_week(week date) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    kind  text;
    freed bigint := 0;
BEGIN
    IF (SELECT m.summed_ms FROM keeper.archive_mark m) < extract(epoch FROM (week + 7)::timestamp) * 1000 THEN
        RAISE EXCEPTION 'week % of the archive is dropped before its profit and loss is summed up', week
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    FOREACH kind IN ARRAY ARRAY['intent', 'attempt', 'receipt', 'allocation'] LOOP
        kind := 'keeper.archived_' || kind || '_' || to_char(week, 'YYYYMMDD');
        freed := freed + pg_total_relation_size(kind::regclass);
        EXECUTE 'DROP TABLE ' || kind;
    END LOOP;
    DELETE FROM keeper.archived_job j WHERE j.ended_at < (week + 7)::timestamp AT TIME ZONE 'UTC';
    UPDATE keeper.archive_week w SET dropped_at = clock_timestamp(), bytes = coalesce(w.bytes, 0) + freed
        WHERE w.week = drop_archive_week.week;
    RETURN freed;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION keeper.open_archive_week(date), keeper.drop_archive_week(date) FROM PUBLIC;

-- +goose Down
-- The archive goes back to where it came from, as far as it was not dropped.
DROP VIEW keeper.every_receipt, keeper.every_attempt, keeper.every_intent;
INSERT INTO keeper.tx_intent OVERRIDING SYSTEM VALUE SELECT * FROM keeper.archived_intent;
INSERT INTO keeper.tx_attempt SELECT hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token, sends, first_sent_at,
    last_sent_at, last_class, created_at FROM keeper.archived_attempt;
INSERT INTO keeper.tx_receipt SELECT intent, tx_hash, block, block_hash, ok, gas_used, gas_price, outcome, reason, final, seen_at,
    signer, settlement, kind FROM keeper.archived_receipt;
INSERT INTO keeper.signer_nonce_allocation SELECT signer, nonce, state, intent, token, created_at, updated_at
    FROM keeper.archived_allocation;
DROP TABLE keeper.archived_intent, keeper.archived_attempt, keeper.archived_receipt, keeper.archived_allocation,
    keeper.archive_week, keeper.archive_mark, keeper.archived_nonce,
    keeper.archived_job, keeper.pnl_day;
DROP TRIGGER tx_intent_kept ON keeper.tx_intent;
DROP TRIGGER tx_attempt_kept ON keeper.tx_attempt;
DROP TRIGGER signer_nonce_allocation_kept ON keeper.signer_nonce_allocation;
DROP TRIGGER tx_intent_stays ON keeper.tx_intent;
DROP TRIGGER tx_attempt_stays ON keeper.tx_attempt;
DROP TRIGGER signer_nonce_allocation_stays ON keeper.signer_nonce_allocation;
CREATE TRIGGER tx_intent_stays BEFORE DELETE OR TRUNCATE ON keeper.tx_intent
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
CREATE TRIGGER signer_nonce_allocation_stays BEFORE DELETE OR TRUNCATE ON keeper.signer_nonce_allocation
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
DROP FUNCTION keeper.open_archive_week(date), keeper.drop_archive_week(date), keeper.refuse_loss();
ALTER TABLE keeper.tx_receipt
    ADD CONSTRAINT tx_receipt_intent_fkey FOREIGN KEY (intent) REFERENCES keeper.tx_intent,
    ADD CONSTRAINT tx_receipt_tx_hash_fkey FOREIGN KEY (tx_hash) REFERENCES keeper.tx_attempt;
