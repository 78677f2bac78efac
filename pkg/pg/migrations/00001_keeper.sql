-- +goose Up
-- What is not derived from the chain. From the first release on this file stays as it is: a change is the next number, it adds (tables, columns
-- with defaults, indexes), and a schema is never taken back.
CREATE SCHEMA keeper;

-- Which builds can work with this schema: those that know the migration of this number, and newer ones. A migration that takes away what an older
-- build uses raises the number, in a release after the one that has stopped using it. So builds go on while processes are replaced one by one.
CREATE TABLE keeper.oldest_build (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint  NOT NULL
);
INSERT INTO keeper.oldest_build (version) VALUES (1);

-- +goose StatementBegin
CREATE FUNCTION keeper.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table %.% is append-only: correct it with another entry', TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION keeper.refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of table %.% are never deleted', TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
-- A statement that writes in several steps writes all of what it was asked for, or nothing: it asks this function in the end, and an error with a
-- code of its own takes back what it has written.
-- +goose StatementBegin
CREATE FUNCTION keeper.whole(whole boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF whole IS NOT TRUE THEN
        RAISE EXCEPTION 'a step came to less than the whole batch' USING ERRCODE = 'PK001';
    END IF;
    RETURN true;
END $$;
-- +goose StatementEnd


-- Generations of the derived state. The rows of generation N are in schema state_g<N>.
CREATE TABLE keeper.generation (
    number     integer     PRIMARY KEY CHECK (number > 0),
    layout     integer     NOT NULL, -- of the state schema it was created with
    partitions smallint    CHECK (partitions > 0), -- of the log topic it is filled from; NULL until the first claim
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    followed   boolean     NOT NULL DEFAULT false, -- statevm keeps it up to date beside the active one: it is being filled, or was active before
    dropped_at timestamptz -- when its rows were dropped; numbers are not given again
);

-- The one row that says which generation readers use. It is read first in every snapshot.
CREATE TABLE keeper.active_generation (
    one        boolean     PRIMARY KEY DEFAULT true CHECK (one),
    generation integer     NOT NULL REFERENCES keeper.generation,
    since      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Every switch there has been.
CREATE TABLE keeper.generation_switch (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    generation integer     NOT NULL REFERENCES keeper.generation,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason     text        NOT NULL DEFAULT '' -- why, although it was not equal to the one before; empty when it was
);

-- The accounts that send transactions.
CREATE TABLE keeper.signer (
    signer        bytea       PRIMARY KEY CHECK (octet_length(signer) = 20),
    chain_id      bigint      NOT NULL CHECK (chain_id > 0),
    paused_reason text,       -- NULL while it works; a paused signer claims nothing, and what it has in flight goes on
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Which database this signer's rows were last known to be whole in. A backup that was restored, and a replica that was promoted, are other ones.
    system_identifier bigint, -- of the server's cluster
    timeline       integer,   -- of its log
    expected_below bigint NOT NULL DEFAULT 0, -- a resync found the chain at this nonce: below it, external transactions alarm nobody
    resynced_at    timestamptz,
    unable       text,        -- why its holder could not sign, as it last said,
    unable_until timestamptz  -- and until when that is believed
);

-- Who may act for a signer, and its next nonce. A row is born with its signer and is never deleted, so that the token never falls. Every write for the
-- signer locks it.
CREATE TABLE keeper.signer_lease (
    signer        bytea       PRIMARY KEY REFERENCES keeper.signer,
    owner         uuid        NOT NULL,
    owner_label   text        NOT NULL,
    fencing_token bigint      NOT NULL,
    next_nonce    bigint      NOT NULL CHECK (next_nonce >= 0),
    acquired_at   timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    -- The signer's transactions below it are mined as far as two hosts agree, which is long before they are final: they take no place in flight any
    -- more. After a reorg it is lower again.
    mined_nonce   bigint      NOT NULL DEFAULT 0 CHECK (mined_nonce >= 0),
    -- Which owner had, when it last took or renewed the lease, a session with an advisory lock of its own, so that whoever waits for the lease can
    -- tell that this process is gone. Any other owner's absence proves nothing: it may be behind a pooler that keeps none.
    present       uuid
);
CREATE TRIGGER signer_lease_stays BEFORE DELETE OR TRUNCATE ON keeper.signer_lease
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();

-- One attempt at a job. Only txm.State says which state may follow which.
CREATE TABLE keeper.tx_intent (
    id          bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      text          COLLATE "C" NOT NULL,
    attempt         integer       NOT NULL CHECK (attempt > 0),
    kind        text          NOT NULL,
    key         bytea         NOT NULL,
    account     bytea         NOT NULL,
    class       smallint      NOT NULL,
    ratio       numeric(78,0) NOT NULL,
    due_since_ms    bigint        NOT NULL,
    job         jsonb         NOT NULL, -- all of it, as the planner last said it
    signer      bytea         NOT NULL REFERENCES keeper.signer,
    state       text          NOT NULL CHECK (state IN
                ('QUEUED', 'SIGNED', 'SENT', 'MINED', 'FINAL_OK', 'FINAL_REVERTED', 'FINAL_LOST_RACE', 'CANCELLED', 'SKIPPED', 'FOREIGN')),
    queued_at   timestamptz   NOT NULL DEFAULT clock_timestamp(),
    nonce       bigint,
    token       bigint,                 -- of the lease term that claimed it
    slot        smallint,               -- of a liquidation: which of the keeper's places it takes while in flight
    outcome     text,
    reason      text,
    ended_at    timestamptz,
    reported_at timestamptz,            -- when the result was published
    updated_at  timestamptz   NOT NULL DEFAULT clock_timestamp(),
    tries          integer NOT NULL DEFAULT 0 CHECK (tries >= 0), -- failed attempts in a row before this one
    given_up       boolean NOT NULL DEFAULT false, -- it failed, and no attempt follows by itself: somebody has to look
    cancel_outcome text,                           -- how the attempt ends if what only frees its nonce is mined
    cancel_reason  text,
    said_ms        bigint  NOT NULL DEFAULT 0,     -- chain time of the state in which a planner last found the job
    retry_after_ms       bigint,                         -- the next attempt needs the job to be found in a state from after this
    called_off     text,                           -- an operator wants this attempt's number back: who, and why
    UNIQUE (job_id, attempt),
    CHECK ((nonce IS NULL) = (state IN ('QUEUED', 'SKIPPED'))),
    CHECK ((ended_at IS NULL) = (state IN ('QUEUED', 'SIGNED', 'SENT', 'MINED'))),
    CHECK ((outcome IS NULL) = (ended_at IS NULL)),
    CHECK ((retry_after_ms IS NULL) = (ended_at IS NULL)),
    CHECK ((cancel_outcome IS NULL) = (cancel_reason IS NULL))
);
CREATE UNIQUE INDEX tx_intent_live_attempt ON keeper.tx_intent (job_id) WHERE state IN ('QUEUED', 'SIGNED', 'SENT', 'MINED');
-- An order that changes while it is being executed is another job and still the same order: only one transaction for it may be under way.
CREATE UNIQUE INDEX tx_intent_key_in_flight ON keeper.tx_intent (key) WHERE state IN ('SIGNED', 'SENT', 'MINED');
-- One that is mined has given its slot back, and what the next one is judged by holds what it did (LIQ-20). Slots from 16000 on are of those that a reorg has taken back:
-- two of one account may then be under way again.
CREATE UNIQUE INDEX tx_intent_liquidation_account ON keeper.tx_intent (account)
    WHERE kind = 'liquidation' AND slot < 16000 AND state IN ('SIGNED', 'SENT', 'MINED');
CREATE UNIQUE INDEX tx_intent_liquidation_slot ON keeper.tx_intent (slot) WHERE slot IS NOT NULL AND state IN ('SIGNED', 'SENT', 'MINED');
CREATE INDEX tx_intent_queue ON keeper.tx_intent (signer, class, ratio, due_since_ms, job_id) WHERE state = 'QUEUED';
CREATE INDEX tx_intent_flight ON keeper.tx_intent (signer, nonce) WHERE state IN ('SIGNED', 'SENT', 'MINED');
CREATE INDEX tx_intent_unreported ON keeper.tx_intent (signer, id) WHERE ended_at IS NOT NULL AND reported_at IS NULL;
-- For the daily report.
CREATE INDEX tx_intent_ended ON keeper.tx_intent (ended_at) WHERE ended_at IS NOT NULL;
-- What is left to deleverage of a side of a market is known when the one before has landed: one transaction of the keeper is under way for it at a time.
CREATE UNIQUE INDEX tx_intent_adl_side ON keeper.tx_intent ((job ->> 'market'), (job ->> 'isLong'))
    WHERE kind IN ('adl', 'adlState') AND state IN ('SIGNED', 'SENT', 'MINED');
-- Arms that failed for a cause that may pass are tried again by whoever has their signer's lease, at the time that stands with their end.
CREATE INDEX tx_intent_retry ON keeper.tx_intent (signer, ended_at) WHERE outcome IN ('reverted', 'foreign') AND NOT given_up;

-- What became of each number a signer was given. Allocations and attempts have no foreign keys: the statement that writes them has just written or
-- locked what they refer to, and looking it up again was a fifth of a batch's work. Triggers keep what is referred to from being deleted.
CREATE TABLE keeper.signer_nonce_allocation (
    signer     bytea       NOT NULL,
    nonce      bigint      NOT NULL CHECK (nonce >= 0),
    state      text        NOT NULL CHECK (state IN ('HELD', 'SIGNED', 'CONSUMED', 'RELEASED')),
    intent     bigint      NOT NULL, -- the last one it was given to
    token      bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (signer, nonce)
);
CREATE INDEX signer_nonce_allocation_open ON keeper.signer_nonce_allocation (signer, nonce) WHERE state IN ('HELD', 'RELEASED');

-- Every transaction ever signed. Nothing is broadcast that is not here.
CREATE TABLE keeper.signed_tx (
    hash          bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    intent        bigint      NOT NULL,
    signer        bytea       NOT NULL,
    nonce         bigint      NOT NULL,
    seq           integer     NOT NULL CHECK (seq > 0),
    kind          text        NOT NULL CHECK (kind IN ('EXEC', 'CANCEL', 'FILL')),
    raw           bytea       NOT NULL,
    tip           bigint      NOT NULL, -- wei per gas
    cap           bigint      NOT NULL, -- wei per gas
    gas           bigint      NOT NULL,
    token         bigint      NOT NULL,
    sends         integer     NOT NULL DEFAULT 0, -- broadcasts that were noted
    first_sent_at timestamptz,
    last_sent_at  timestamptz,
    last_class    text,       -- what the last noted broadcast was answered with
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (signer, nonce, seq)
);

-- Where an intent's transaction was last seen on the chain. Only one transaction of an intent can be mined, because all have one nonce.
CREATE TABLE keeper.tx_receipt (
    intent     bigint      PRIMARY KEY,
    tx_hash    bytea       NOT NULL,
    block      bigint      NOT NULL,
    block_hash bytea       NOT NULL CHECK (octet_length(block_hash) = 32),
    ok         boolean     NOT NULL,
    gas_used   bigint      NOT NULL,
    gas_price  bigint      NOT NULL, -- wei per gas
    outcome    text        NOT NULL,
    reason     text        NOT NULL,
    final      boolean     NOT NULL DEFAULT false,
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    signer     bytea       NOT NULL,
    settlement jsonb,                -- what it came to for the owner of the position that it closed or decreased; NULL where it did neither
    kind       text        NOT NULL  -- of the job
);
-- What a signer has spent in a day is summed up again and again while it works, by kind of job: the index holds all that the sum needs.
CREATE INDEX tx_receipt_spent ON keeper.tx_receipt (signer, seen_at) INCLUDE (kind, gas_used, gas_price);

-- What happened to signers, for people.
CREATE TABLE keeper.signer_event (
    id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    signer bytea       NOT NULL REFERENCES keeper.signer,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    token  bigint      NOT NULL,
    what   text        NOT NULL,
    detail text        NOT NULL
);
CREATE INDEX signer_event_signer ON keeper.signer_event (signer, id);

-- What others may know of liquidations (LIQ-8): the newest attempt of each job that is in flight, or was given up. Whoever wants it of positions joins it to
-- the active generation's; see pg.Liquidations.
CREATE VIEW keeper.liquidation AS
    SELECT DISTINCT ON (key) key, account, job_id, attempt, tries, outcome, reason, ended_at,
        CASE WHEN ended_at IS NULL THEN 'LIQUIDATING' WHEN given_up THEN 'LIQUIDATION_FAILED' END AS status
    FROM keeper.tx_intent WHERE kind = 'liquidation' AND state <> 'QUEUED'
    ORDER BY key, id DESC;

-- Work that has to be done at a time. Only delayed.Scanner says what becomes of a row.
CREATE TABLE keeper.delayed_job (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text        COLLATE "C" NOT NULL,
    key         text        COLLATE "C" NOT NULL, -- what the work is about: the same need is one row
    payload     jsonb       NOT NULL,
    due_at      timestamptz NOT NULL,             -- when it ought to be done
    next_at     timestamptz NOT NULL,             -- when it is tried (again); due_at at first
    status      text        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'parked')),
    attempts    integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- that failed
    last_error  text,                             -- of the last one that failed
    result      jsonb,                            -- what the work came to, for people
    version     bigint      NOT NULL DEFAULT 1,   -- raised by every change
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    deleted_at  timestamptz,                      -- called off by an operator
    UNIQUE (kind, key),
    CHECK ((finished_at IS NULL) = (status = 'pending')),
    CHECK (status <> 'parked' OR last_error IS NOT NULL)
);
CREATE INDEX delayed_job_due ON keeper.delayed_job (next_at, id) WHERE status = 'pending' AND deleted_at IS NULL;
CREATE INDEX delayed_job_parked ON keeper.delayed_job (kind) WHERE status = 'parked' AND deleted_at IS NULL;

-- The last scan of each process that scans, for operators who ask for one and wait for it.
CREATE TABLE keeper.delayed_scan (
    scanner     text        PRIMARY KEY,
    began_at    timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    found       integer     NOT NULL,
    done        integer     NOT NULL,
    failed      integer     NOT NULL,
    parked      integer     NOT NULL,
    error       text
);

-- What an agent's signers have earned, in wei. The entries are the truth; the balances are their sums.
CREATE TABLE keeper.wallet (
    agent          text          COLLATE "C" PRIMARY KEY,
    balance        numeric(78,0) NOT NULL DEFAULT 0 CHECK (balance >= 0),        -- released
    frozen_balance numeric(78,0) NOT NULL DEFAULT 0 CHECK (frozen_balance >= 0), -- held back
    version        bigint        NOT NULL DEFAULT 1,
    created_at     timestamptz   NOT NULL DEFAULT clock_timestamp(),
    updated_at     timestamptz   NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE keeper.wallet_entry (
    id            bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent         text          COLLATE "C" NOT NULL REFERENCES keeper.wallet,
    what          text          NOT NULL CHECK (what IN ('commission', 'release')),
    source        text          COLLATE "C" NOT NULL, -- the commission's identity: chain, block hash, log index
    balance_delta numeric(78,0) NOT NULL,
    frozen_delta  numeric(78,0) NOT NULL,
    at            timestamptz   NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (what, source)
);
CREATE INDEX wallet_entry_agent ON keeper.wallet_entry (agent, id);

-- Every fee that was booked, by the identity of its log. It stands outside the generations of derived state, so that a rebuild books nothing twice.
CREATE TABLE keeper.commission (
    chain_id   bigint        NOT NULL,
    block_hash bytea         NOT NULL CHECK (octet_length(block_hash) = 32),
    log_index  bigint        NOT NULL,
    block      bigint        NOT NULL,
    tx_hash    bytea         NOT NULL CHECK (octet_length(tx_hash) = 32),
    signer     bytea         NOT NULL CHECK (octet_length(signer) = 20),
    agent      text          COLLATE "C" NOT NULL,
    amount     numeric(78,0) NOT NULL CHECK (amount > 0), -- wei
    earned_at  timestamptz   NOT NULL, -- the block's time
    booked_at  timestamptz   NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (chain_id, block_hash, log_index)
);
CREATE INDEX commission_booked ON keeper.commission (booked_at);
-- What the venue has paid a signer in a day is subtracted from what it spent.
CREATE INDEX commission_earned ON keeper.commission (signer, earned_at);

-- A ledger is written at its end and nowhere else.
CREATE TRIGGER wallet_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON keeper.wallet_entry
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_change();
CREATE TRIGGER commission_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON keeper.commission
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_change();

-- What was planned, rehearsed and handed over in an emergency (LIQ-15), and what was said to have come of it. The rows of one run share its id.
CREATE TABLE keeper.emergency_action (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run      uuid        NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    action   text        COLLATE "C" NOT NULL,
    operator text        NOT NULL, -- who asked: a person, or the watch of a keeper
    cause    text        NOT NULL, -- why
    dry_run  boolean     NOT NULL,
    stage    text        NOT NULL CHECK (stage IN ('planned', 'rehearsed', 'handed_over', 'sent', 'done', 'failed')),
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
    mark        bytea,      -- fingerprint of the record before it; NULL = not known
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (audience, topic, part)
);

-- What a keeper without keys would have sent (sender.mode = shadow): one row for each due time of a job that its planner found due.
CREATE TABLE keeper.shadow_trial (
    job_id     text    COLLATE "C" NOT NULL,
    due_since_ms   bigint  NOT NULL,
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
    PRIMARY KEY (job_id, due_since_ms)
);
CREATE INDEX shadow_trial_heard ON keeper.shadow_trial (heard_ms);

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

-- What was said of an attempt before it got its nonce, for people. Written beside the road, and so without a reference to the attempt.
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
CREATE TABLE keeper.archived_signed_tx (LIKE keeper.signed_tx, ended_at timestamptz NOT NULL)
    PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_signed_tx ADD PRIMARY KEY (hash, ended_at);
CREATE INDEX archived_signed_tx_number ON keeper.archived_signed_tx (signer, nonce);

CREATE TABLE keeper.archived_receipt (LIKE keeper.tx_receipt, ended_at timestamptz NOT NULL)
    PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_receipt ADD PRIMARY KEY (intent, ended_at);
CREATE INDEX archived_receipt_spent ON keeper.archived_receipt (signer, seen_at);

CREATE TABLE keeper.archived_allocation (LIKE keeper.signer_nonce_allocation, ended_at timestamptz NOT NULL)
    PARTITION BY RANGE (ended_at);
ALTER TABLE keeper.archived_allocation ADD PRIMARY KEY (signer, nonce, ended_at);

-- The weeks there are, and there have been. A row outlives its partitions.
CREATE TABLE keeper.archive_week (
    week       date        PRIMARY KEY CHECK (extract(isodow FROM week) = 1), -- its Monday, UTC
    intents    bigint      NOT NULL DEFAULT 0,
    signed     bigint      NOT NULL DEFAULT 0, -- transactions
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    dropped_at timestamptz,
    bytes      bigint      -- that the drop gave back
);

-- What has to be known of all that was ever archived, in one row.
CREATE TABLE keeper.archive_mark (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    retry_after_ms  bigint  NOT NULL DEFAULT -1, -- the highest there is: no job that was found in a state up to then gets an attempt
    summed_ms bigint  NOT NULL DEFAULT 0   -- profit and loss of blocks up to this time stand in pnl_day
);
INSERT INTO keeper.archive_mark DEFAULT VALUES;

-- Below it each number of the signer is spent on the chain: one of them is archived, and was final.
CREATE TABLE keeper.archived_nonce (
    signer bytea  PRIMARY KEY REFERENCES keeper.signer,
    below  bigint NOT NULL CHECK (below > 0)
);

-- The last attempts of jobs that may come up again: numbers of attempts go on for as long as the archive knows of them.
CREATE TABLE keeper.archived_job (
    job_id   text        COLLATE "C" PRIMARY KEY,
    attempt      integer     NOT NULL,
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
CREATE VIEW keeper.every_signed_tx AS SELECT a.* FROM keeper.signed_tx a
    UNION ALL SELECT hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token, sends, first_sent_at, last_sent_at,
        last_class, created_at FROM keeper.archived_signed_tx;
CREATE VIEW keeper.every_receipt AS SELECT r.* FROM keeper.tx_receipt r
    UNION ALL SELECT intent, tx_hash, block, block_hash, ok, gas_used, gas_price, outcome, reason, final, seen_at, signer,
        settlement, kind FROM keeper.archived_receipt;

-- What became of intents and numbers is never deleted, unless it stands in the archive.
-- +goose StatementBegin
CREATE FUNCTION keeper.refuse_loss() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- One at a time: a condition is only understood where the row has its columns.
    IF TG_TABLE_NAME = 'tx_intent' THEN
        IF EXISTS (SELECT FROM keeper.archived_intent a WHERE a.id = OLD.id AND a.ended_at = OLD.ended_at) THEN
            RETURN OLD;
        END IF;
    ELSIF TG_TABLE_NAME = 'signed_tx' THEN
        IF EXISTS (SELECT FROM keeper.archived_signed_tx a WHERE a.hash = OLD.hash) THEN
            RETURN OLD;
        END IF;
    ELSIF EXISTS (SELECT FROM keeper.archived_allocation a WHERE a.signer = OLD.signer AND a.nonce = OLD.nonce) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'rows of table %.% are never deleted before they are archived', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER tx_intent_kept BEFORE DELETE ON keeper.tx_intent
    FOR EACH ROW EXECUTE FUNCTION keeper.refuse_loss();
CREATE TRIGGER signed_tx_kept BEFORE DELETE ON keeper.signed_tx
    FOR EACH ROW EXECUTE FUNCTION keeper.refuse_loss();
CREATE TRIGGER signer_nonce_allocation_kept BEFORE DELETE ON keeper.signer_nonce_allocation
    FOR EACH ROW EXECUTE FUNCTION keeper.refuse_loss();
CREATE TRIGGER tx_intent_stays BEFORE TRUNCATE ON keeper.tx_intent
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
CREATE TRIGGER signed_tx_stays BEFORE TRUNCATE ON keeper.signed_tx
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
    FOREACH kind IN ARRAY ARRAY['intent', 'signed_tx', 'receipt', 'allocation'] LOOP
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
    FOREACH kind IN ARRAY ARRAY['intent', 'signed_tx', 'receipt', 'allocation'] LOOP
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
