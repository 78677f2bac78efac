-- +goose Up
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

-- +goose Down
DROP FUNCTION keeper.whole(boolean);
