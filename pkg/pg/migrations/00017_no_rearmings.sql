-- +goose Up
-- Whoever has a signer's lease tries again by itself; what was booked for a planner to do about it has nobody to do it any more.
UPDATE keeper.delayed_job SET status = 'done', version = version + 1, finished_at = clock_timestamp(),
    result = '{"came": "left to the owner of the lease"}'
WHERE kind = 'rearm' AND status <> 'done';

-- +goose Down
SELECT 1;
