package pg

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
)

// Config is how to reach the keeper's database, and how long to wait for it. Start from DefaultConfig.
type Config struct {
	URL secret.URL `toml:"url" file:"none" help:"the keeper's database: postgres://user:password@host:port/name?sslmode=require, and pool_max_conns=20 for more than 10 connections"`
	// Password is for those who keep it in a file of its own, apart from the address.
	Password secret.String `toml:"password" help:"password of the url's user, where the url holds none"`
	// MaxConns: most connections this process opens, where the URL names no pool_max_conns.
	MaxConns int `toml:"-"`
	// ConnectTimeout bounds the opening of one connection.
	ConnectTimeout time.Duration `toml:"-"`
	// StatementTimeout bounds one statement, at the server and, with a margin, here.
	StatementTimeout time.Duration `toml:"-"`
	// IdleInTransactionTimeout is after how long the server ends the transaction of a client that went silent in it,
	// and frees its locks.
	IdleInTransactionTimeout time.Duration `toml:"-"`
	// PollInterval is how late a change of state is noticed when its notification was lost.
	PollInterval time.Duration `toml:"-"`
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
	if !c.URL.IsSet() {
		return errors.New("url: not set (name the keeper's database, postgres://user:password@host:port/name)")
	}
	parsed, err := pgxpool.ParseConfig(c.URL.Reveal())
	if err != nil {
		// The driver's own words quote the address.
		return fmt.Errorf("url: %s is no address of a PostgreSQL database (write "+
			"postgres://user:password@host:port/name)", c.URL)
	}
	for _, other := range parsed.ConnConfig.Fallbacks {
		if at, err := netip.ParseAddr(other.Host); (err != nil || !at.IsLoopback()) &&
			(other.TLSConfig == nil) != (parsed.ConnConfig.TLSConfig == nil) {
			return fmt.Errorf("url: %s leaves open whether %s is spoken to readably (say sslmode=verify-full, or "+
				"sslmode=disable)", c.URL, other.Host)
		}
	}
	return errors.Join(
		check.Refuse(c.Password.IsSet() && c.urlHasPassword(),
			"password: the url holds one already (remove one of them)"),
		check.Refuse(c.namesMaxConns() && parsed.MaxConns < 2,
			"url: %s=%d is too few (use 2 or more: one waits for notifications)", poolMaxConns, parsed.MaxConns),
	)
}

func (c Config) urlHasPassword() bool {
	address, err := url.Parse(c.URL.Reveal())
	if err != nil || address.User == nil {
		return false
	}
	_, has := address.User.Password()
	return has
}

// poolMaxConns is the driver's own parameter of an address: how many connections a process opens at most.
const poolMaxConns = "pool_max_conns"

func (c Config) namesMaxConns() bool { return strings.Contains(c.URL.Reveal(), poolMaxConns+"=") }

// Client is how the PostgreSQL client programs reach the database: an address that anybody may see, and the password,
// which is for the environment.
func (c Config) Client() (address string, password secret.String, err error) {
	p, err := c.pool("")
	if err != nil {
		return "", secret.String{}, err
	}
	at, err := url.Parse(c.URL.Reveal())
	if err != nil {
		return "", secret.String{}, fmt.Errorf("url: %s is no address", c.URL)
	}
	at.User = url.User(p.ConnConfig.User)
	query := at.Query()
	query.Del("password")
	query.Del(poolMaxConns)
	at.RawQuery = query.Encode()
	return at.String(), secret.New(p.ConnConfig.Password), nil
}
