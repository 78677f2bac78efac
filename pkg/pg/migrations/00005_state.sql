-- +goose Up

-- Besides the active generation statevm keeps those up to date that are marked: one that is being filled, and the one before the last switch.
ALTER TABLE keeper.generation
    ADD COLUMN followed   boolean     NOT NULL DEFAULT false,
    ADD COLUMN dropped_at timestamptz; -- when its rows were dropped; numbers are not given again

-- Why a generation was switched to although it was not equal to the one before; empty when it was.
ALTER TABLE keeper.generation_switch ADD COLUMN reason text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE keeper.generation_switch DROP COLUMN reason;
ALTER TABLE keeper.generation DROP COLUMN followed, DROP COLUMN dropped_at;
