-- +goose Up
-- The claim of a number writes an allocation and an attempt, and four foreign keys had the server look up at each row what the same statement had just
-- written or locked: a fifth of the work of a batch. They go, and nothing is lost:
--   * allocation -> signer: every statement that allocates holds the signer's lease row, which refers to the signer and is never deleted;
--   * allocation -> intent, attempt -> intent: the intent is a row that the same statement returned from writing it or locked;
--   * attempt -> allocation: the number is the one that the same statement returned from allocating it, or that of an intent in flight, which has one.
-- A foreign key also keeps what is referred to from being deleted. Now triggers do, which cost nothing as long as nobody tries: what became of intents and
-- numbers is never deleted.
ALTER TABLE keeper.signer_nonce_allocation
    DROP CONSTRAINT signer_nonce_allocation_signer_fkey,
    DROP CONSTRAINT signer_nonce_allocation_intent_fkey;
ALTER TABLE keeper.tx_attempt
    DROP CONSTRAINT tx_attempt_intent_fkey,
    DROP CONSTRAINT tx_attempt_signer_nonce_fkey;

-- +goose StatementBegin
CREATE FUNCTION keeper.refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of table %.% are never deleted', TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER signer_lease_stays BEFORE DELETE OR TRUNCATE ON keeper.signer_lease
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
CREATE TRIGGER tx_intent_stays BEFORE DELETE OR TRUNCATE ON keeper.tx_intent
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();
CREATE TRIGGER signer_nonce_allocation_stays BEFORE DELETE OR TRUNCATE ON keeper.signer_nonce_allocation
    FOR EACH STATEMENT EXECUTE FUNCTION keeper.refuse_removal();

-- +goose Down
DROP TRIGGER signer_nonce_allocation_stays ON keeper.signer_nonce_allocation;
DROP TRIGGER tx_intent_stays ON keeper.tx_intent;
DROP TRIGGER signer_lease_stays ON keeper.signer_lease;
DROP FUNCTION keeper.refuse_removal();
ALTER TABLE keeper.tx_attempt
    ADD FOREIGN KEY (intent) REFERENCES keeper.tx_intent,
    ADD FOREIGN KEY (signer, nonce) REFERENCES keeper.signer_nonce_allocation;
ALTER TABLE keeper.signer_nonce_allocation
    ADD FOREIGN KEY (signer) REFERENCES keeper.signer,
    ADD FOREIGN KEY (intent) REFERENCES keeper.tx_intent;
