-- +goose Up
CREATE SCHEMA keeper;

-- Generations of the derived state. The rows of generation N are in schema state_g<N>.
CREATE TABLE keeper.generation (
    number     integer     PRIMARY KEY CHECK (number > 0),
    layout     integer     NOT NULL, -- of the state schema it was created with
    partitions smallint    CHECK (partitions > 0), -- of the log topic it is filled from; NULL until the first claim
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
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
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose Down
DROP SCHEMA keeper CASCADE;
