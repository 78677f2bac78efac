package pg

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/secret"
)

// CreateDatabase creates a database on the server of the given address, whose user must be allowed to, and returns the
// new database's address. A database that exists already is taken as it is.
func CreateDatabase(ctx context.Context, server secret.URL, name string) (secret.URL, error) {
	address, err := url.Parse(server.Reveal())
	if err != nil {
		return secret.URL{}, fmt.Errorf("%s is no address of a server", server)
	}
	address.Path = "/" + name
	conn, err := pgx.Connect(ctx, server.Reveal())
	if err != nil {
		return secret.URL{}, fmt.Errorf("connecting to %s: %w", server, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil &&
		!HasCode(err, codeDuplicateDatabase, codeUniqueViolation) {
		return secret.URL{}, fmt.Errorf("creating database %s: %w", name, err)
	}
	return secret.ParseURL(address.String())
}
