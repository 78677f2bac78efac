-- One generation of the derived state, besides its rows: where each partition of the log topic stands, and how to go back.
-- {state} is the generation's schema. Changing anything here or in the files beside it means a new layout: see stateLayout.

CREATE SCHEMA {state};

-- Offsets: one row per partition. Whoever commits locks it first and compares owner and next_offset; a former owner finds another token.
CREATE TABLE {state}.stream_offset (
    part             smallint    PRIMARY KEY,
    next_offset      bigint      NOT NULL,           -- of the first record not yet applied
    mark             bytea,                          -- fingerprint of the record before it; NULL = not known
    epoch            bigint      NOT NULL,           -- highest scanner epoch seen; records of a lower one are dropped
    block            bigint,                         -- last block applied; NULL until there is one
    hash             bytea,
    parent           bytea,
    time_ms          bigint,
    finalized        bigint,                         -- highest finalized block heard of
    finalized_hash   bytea,
    finalized_parent bytea,
    finalized_ms     bigint,
    rev              bigint      NOT NULL,           -- raised by every transaction that touches rows, and stamped on them
    rev_floor        bigint      NOT NULL,           -- rows removed at or below this rev have left no trace: a reader behind it reloads
    owner            uuid,                           -- token of the process that may write
    owner_label      text        NOT NULL DEFAULT '',
    claimed_at       timestamptz,
    halted           text        NOT NULL DEFAULT '',  -- why nobody may act on this state until the operator has looked; empty = all is well
    dead_letter      bigint,                         -- offset of the last record of this partition that was sent to the dead letter topic
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The blocks that can still be undone, and the oldest one that can be gone back to.
CREATE TABLE {state}.kept_block (
    part     smallint NOT NULL,
    block    bigint   NOT NULL,
    hash     bytea    NOT NULL,
    parent   bytea    NOT NULL,
    time_ms  bigint   NOT NULL,
    rev      bigint   NOT NULL, -- no row that a later block touched has this revision or a lower one
    -- Where the topic has it, so that rows and topic can be compared when the topic has lost its end; NULL where that is not known.
    next_offset bigint, -- after its last record
    mark        bytea,  -- fingerprint of its last record
    PRIMARY KEY (part, block)
);

-- The journal: each row as it was before a block touched it for the first time; NULL where there was none.
CREATE TABLE {state}.undo (
    part  smallint NOT NULL,
    block bigint   NOT NULL,
    tbl   text     NOT NULL,
    key   bytea    NOT NULL,
    prior bytea, -- the row's columns in their order, each as four bytes of length and the value in binary form
    PRIMARY KEY (part, block, tbl, key)
);
