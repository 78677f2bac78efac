-- +goose Up
-- Which builds can work with this schema: those that know the migration of this number, and newer ones. Migrations add (tables, columns with
-- defaults, indexes), so that the builds of before go on while processes are replaced one after the other. One that takes away what an older
-- build uses raises the number, in a release after the one that has stopped using it.
CREATE TABLE keeper.oldest_build (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint  NOT NULL
);
INSERT INTO keeper.oldest_build (version) VALUES (21);

-- +goose Down
DROP TABLE keeper.oldest_build;
