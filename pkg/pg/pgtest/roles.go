package pgtest

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/setting/secret"
)

// rolePassword is the same for all roles of the tests: they belong to the server, which all databases of the tests
// share.
const rolePassword = "role-of-the-tests"

var granting sync.Mutex

// Passwords are those of the roles of the tests.
func Passwords() pg.Passwords {
	p := secret.New(rolePassword)
	return pg.Passwords{Statevm: p, Planner: p, Sender: p, Ops: p}
}

// Grant gives a database all roles. The server does not let two change a role at once: one comes after the other.
func Grant(ctx context.Context, db *pg.DB) error {
	granting.Lock()
	defer granting.Unlock()
	return db.Grant(ctx, Passwords())
}

// URLAs is the address of a database for a role.
func URLAs(tb testing.TB, role, databaseURL string) string {
	tb.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	u.User = url.UserPassword(role, rolePassword)
	return u.String()
}

// OpenAs opens a database as a role, whose password does not stand in the address.
func OpenAs(tb testing.TB, role, databaseURL string) *pg.DB {
	tb.Helper()
	address := strings.Replace(URLAs(tb, role, databaseURL), ":"+rolePassword+"@", "@", 1)
	cfg := pg.DefaultConfig()
	cfg.URL, cfg.Password = secret.MustURL(address), secret.New(rolePassword)
	db, err := pg.Open(tb.Context(), cfg, tb.Name())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	return db
}
