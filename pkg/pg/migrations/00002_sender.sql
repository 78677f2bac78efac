-- +goose Up

-- The accounts that send transactions.
CREATE TABLE keeper.signer (
    signer        bytea       PRIMARY KEY CHECK (octet_length(signer) = 20),
    chain_id      bigint      NOT NULL CHECK (chain_id > 0),
    paused_reason text,       -- NULL while it works; a paused signer claims nothing, and what it has in flight goes on
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp()
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
    updated_at    timestamptz NOT NULL
);

-- One arm of a job. Only txm.State says which state may follow which.
CREATE TABLE keeper.tx_intent (
    id          bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      text          COLLATE "C" NOT NULL,
    arm         integer       NOT NULL CHECK (arm > 0),
    kind        text          NOT NULL,
    key         bytea         NOT NULL,
    account     bytea         NOT NULL,
    class       smallint      NOT NULL,
    ratio       numeric(78,0) NOT NULL,
    birth_ms    bigint        NOT NULL,
    job         jsonb         NOT NULL, -- all of it, as the planner last said it
    signer      bytea         NOT NULL REFERENCES keeper.signer,
    state       text          NOT NULL CHECK (state IN
                ('QUEUED', 'SIGNED', 'SENT', 'MINED', 'FINAL_OK', 'FINAL_REVERTED', 'FINAL_LOST_RACE', 'SKIPPED', 'FOREIGN')),
    said_at     timestamptz   NOT NULL, -- when a planner last said that the job is live, by its clock
    queued_at   timestamptz   NOT NULL DEFAULT clock_timestamp(),
    nonce       bigint,
    token       bigint,                 -- of the tenure that claimed it
    slot        smallint,               -- of a liquidation: which of the keeper's places it takes while in flight
    outcome     text,
    reason      text,
    ended_at    timestamptz,
    rearm_at    timestamptz,            -- the next arm needs words of a planner from after this
    reported_at timestamptz,            -- when the result was published
    updated_at  timestamptz   NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (job_id, arm),
    CHECK ((nonce IS NULL) = (state IN ('QUEUED', 'SKIPPED'))),
    CHECK ((ended_at IS NULL) = (state IN ('QUEUED', 'SIGNED', 'SENT', 'MINED'))),
    CHECK ((outcome IS NULL) = (ended_at IS NULL)),
    CHECK ((rearm_at IS NULL) = (ended_at IS NULL))
);
CREATE UNIQUE INDEX tx_intent_live_arm ON keeper.tx_intent (job_id) WHERE state IN ('QUEUED', 'SIGNED', 'SENT', 'MINED');
-- An order that changes while it is being executed is another job and still the same order: only one transaction for it may be under way.
CREATE UNIQUE INDEX tx_intent_key_in_flight ON keeper.tx_intent (key) WHERE state IN ('SIGNED', 'SENT', 'MINED');
CREATE UNIQUE INDEX tx_intent_liquidation_account ON keeper.tx_intent (account) WHERE kind = 'liquidation' AND state IN ('SIGNED', 'SENT', 'MINED');
CREATE UNIQUE INDEX tx_intent_liquidation_slot ON keeper.tx_intent (slot) WHERE slot IS NOT NULL AND state IN ('SIGNED', 'SENT', 'MINED');
CREATE INDEX tx_intent_queue ON keeper.tx_intent (signer, class, ratio, birth_ms, job_id) WHERE state = 'QUEUED';
CREATE INDEX tx_intent_flight ON keeper.tx_intent (signer, nonce) WHERE state IN ('SIGNED', 'SENT', 'MINED');
CREATE INDEX tx_intent_unreported ON keeper.tx_intent (signer, id) WHERE ended_at IS NOT NULL AND reported_at IS NULL;

-- What became of each number a signer was given.
CREATE TABLE keeper.signer_nonce_allocation (
    signer     bytea       NOT NULL REFERENCES keeper.signer,
    nonce      bigint      NOT NULL CHECK (nonce >= 0),
    state      text        NOT NULL CHECK (state IN ('HELD', 'SIGNED', 'CONSUMED', 'RELEASED')),
    intent     bigint      NOT NULL REFERENCES keeper.tx_intent, -- the last one it was given to
    token      bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (signer, nonce)
);
CREATE INDEX signer_nonce_allocation_open ON keeper.signer_nonce_allocation (signer, nonce) WHERE state IN ('HELD', 'RELEASED');

-- Every transaction ever signed. Nothing is broadcast that is not here.
CREATE TABLE keeper.tx_attempt (
    hash          bytea       PRIMARY KEY CHECK (octet_length(hash) = 32),
    intent        bigint      NOT NULL REFERENCES keeper.tx_intent,
    signer        bytea       NOT NULL,
    nonce         bigint      NOT NULL,
    seq           integer     NOT NULL CHECK (seq > 0),
    kind          text        NOT NULL CHECK (kind IN ('EXEC')),
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
    UNIQUE (signer, nonce, seq),
    FOREIGN KEY (signer, nonce) REFERENCES keeper.signer_nonce_allocation
);
CREATE INDEX tx_attempt_intent ON keeper.tx_attempt (intent, seq);

-- Where an intent's transaction was last seen on the chain. Only one transaction of an intent can be mined, because all have one nonce.
CREATE TABLE keeper.tx_receipt (
    intent     bigint      PRIMARY KEY REFERENCES keeper.tx_intent,
    tx_hash    bytea       NOT NULL REFERENCES keeper.tx_attempt,
    block      bigint      NOT NULL,
    block_hash bytea       NOT NULL CHECK (octet_length(block_hash) = 32),
    ok         boolean     NOT NULL,
    gas_used   bigint      NOT NULL,
    gas_price  bigint      NOT NULL, -- wei per gas
    outcome    text        NOT NULL,
    reason     text        NOT NULL,
    final      boolean     NOT NULL DEFAULT false,
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

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

-- +goose Down
DROP TABLE keeper.signer_event, keeper.tx_receipt, keeper.tx_attempt, keeper.signer_nonce_allocation, keeper.tx_intent, keeper.signer_lease, keeper.signer;
