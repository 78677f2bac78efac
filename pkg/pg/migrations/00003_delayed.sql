-- +goose Up

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

-- A ledger is written at its end and nowhere else.
-- +goose StatementBegin
CREATE FUNCTION keeper.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table %.% is append-only: correct it with another entry', TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER wallet_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON keeper.wallet_entry
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_change();
CREATE TRIGGER commission_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON keeper.commission
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_change();

-- The arms that ended, by when they did: for re-arming and for the daily report.
CREATE INDEX tx_intent_ended ON keeper.tx_intent (ended_at) WHERE ended_at IS NOT NULL;

-- +goose Down
DROP INDEX keeper.tx_intent_ended;
DROP TABLE keeper.commission, keeper.wallet_entry, keeper.wallet, keeper.delayed_scan, keeper.delayed_job;
DROP FUNCTION keeper.refuse_change();
