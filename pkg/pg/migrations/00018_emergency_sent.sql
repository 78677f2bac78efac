-- +goose Up
-- Calls of the venue may be sent by keeperctl with a key of their own (LIQ-15): signed, on record, and then broadcast.
ALTER TABLE keeper.emergency_action
    DROP CONSTRAINT emergency_action_stage_check,
    ADD  CONSTRAINT emergency_action_stage_check CHECK (stage IN ('planned', 'rehearsed', 'handed_over', 'sent', 'done', 'failed'));

-- +goose Down
ALTER TABLE keeper.emergency_action
    DROP CONSTRAINT emergency_action_stage_check,
    ADD  CONSTRAINT emergency_action_stage_check CHECK (stage IN ('planned', 'rehearsed', 'handed_over', 'done', 'failed')) NOT VALID;
