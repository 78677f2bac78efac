package pg

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"perpkeeper/pkg/check"
	"perpkeeper/pkg/secret"
)

// Config is how to reach the keeper's database, and how long to wait for it. Start from DefaultConfig.
type Config struct {
	URL secret.URL `toml:"url" help:"the keeper's database: postgres://user:password@host:port/name?sslmode=require"`
	// Password is for those who keep it in a file of its own, apart from the address.
	Password secret.String `toml:"password" help:"password of the url's user, where the url holds none"`
	MaxConns int           `toml:"max_conns" help:"most connections this process opens"`
	// ConnectTimeout bounds the opening of one connection.
	ConnectTimeout time.Duration `toml:"connect_timeout" help:"how long opening a connection may take"`
	// StatementTimeout bounds one statement, at the server and, with a margin, here.
	StatementTimeout time.Duration `toml:"statement_timeout" help:"how long one statement may run"`
	// IdleInTransactionTimeout is after how long the server ends the transaction of a client that went silent in it,
	// and frees its locks.
	IdleInTransactionTimeout time.Duration `toml:"idle_in_transaction_timeout" help:"how long a silent client may hold a transaction open"`
	// PollInterval is how late a change of state is noticed when its notification was lost.
	PollInterval time.Duration `toml:"poll_interval" help:"how often to look for changes without having been notified"`
	// PlanOnce has the server plan each statement once a connection, for any arguments, and not at every execution. It
	// is for whom small statements of the same shape are all there is: planning the claim of a nonce takes longer than
	// executing it. It is the program's choice, and no setting.
	PlanOnce bool `toml:"-"`
}

// DefaultConfig has no address: every keeper has a database of its own.
func DefaultConfig() Config {
	return Config{
		MaxConns:                 10,
		ConnectTimeout:           5 * time.Second,
		StatementTimeout:         30 * time.Second,
		IdleInTransactionTimeout: 5 * time.Second,
		PollInterval:             time.Second,
	}
}

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	short := func(key string, d time.Duration) error {
		return check.Refuse(d < time.Millisecond, "%s: %s is too short (use 1ms or more)", key, d)
	}
	return errors.Join(
		c.validateURL(),
		check.Refuse(c.MaxConns < 2, "max_conns: %d is too few (use 2 or more: one waits for notifications)",
			c.MaxConns),
		short("connect_timeout", c.ConnectTimeout), short("statement_timeout", c.StatementTimeout),
		short("idle_in_transaction_timeout", c.IdleInTransactionTimeout), short("poll_interval", c.PollInterval),
	)
}

func (c Config) validateURL() error {
	if !c.URL.IsSet() {
		return errors.New("url: not set (name the keeper's database, postgres://user:password@host:port/name)")
	}
	if _, err := pgxpool.ParseConfig(c.URL.Reveal()); err != nil {
		// The driver's own words quote the address.
		return fmt.Errorf("url: %s is no address of a PostgreSQL database (write "+
			"postgres://user:password@host:port/name)", c.URL)
	}
	return check.Refuse(c.Password.IsSet() && c.urlHasPassword(),
		"password: the url holds one already (remove one of them)")
}

func (c Config) urlHasPassword() bool {
	address, err := url.Parse(c.URL.Reveal())
	if err != nil || address.User == nil {
		return false
	}
	_, has := address.User.Password()
	return has
}
