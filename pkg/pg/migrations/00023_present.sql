-- +goose Up
-- Which owner had, when it last took or renewed the lease, a session with an advisory lock of its own, so that whoever waits for the lease can tell
-- that this process is gone. Any other owner's absence proves nothing: it may be of a build, or behind a pooler, that keeps none.
ALTER TABLE keeper.signer_lease ADD COLUMN present uuid;

-- +goose Down
ALTER TABLE keeper.signer_lease DROP COLUMN present;
