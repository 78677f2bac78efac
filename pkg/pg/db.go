package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is one keeper's database. It is safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
	cfg  Config
	// active is the generation that was active at the last look, 0 before the first one.
	active atomic.Int64
}

// Open prepares connections under the given application name, which the server shows beside them. It does not connect
// yet: a server that is down is found by the first question, such as [DB.CheckSchema].
func Open(ctx context.Context, cfg Config, application string) (*DB, error) {
	poolConfig, err := cfg.pool(application)
	if err != nil {
		return nil, err
	}
	db := &DB{cfg: cfg}
	wire(poolConfig, func() { db.pool.Reset() })
	if db.pool, err = pgxpool.NewWithConfig(ctx, poolConfig); err != nil {
		return nil, fmt.Errorf("preparing connections to %s: %w", cfg.URL, err)
	}
	return db, nil
}

func (c Config) pool(application string) (*pgxpool.Config, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p, err := pgxpool.ParseConfig(c.URL.Reveal())
	if err != nil {
		return nil, fmt.Errorf("%s is no address of a PostgreSQL database", c.URL)
	}
	if c.Password.IsSet() {
		p.ConnConfig.Password = c.Password.Reveal()
	}
	if !c.namesMaxConns() {
		p.MaxConns = int32(c.MaxConns)
	}
	p.ConnConfig.ConnectTimeout = c.ConnectTimeout
	if p.ConnConfig.TLSConfig == nil && p.ConnConfig.RequireAuth == "" {
		p.ConnConfig.RequireAuth = "scram-sha-256,none" // nobody on the way is told the password
	}
	maps.Copy(p.ConnConfig.RuntimeParams, map[string]string{
		"application_name": application,
		"timezone":         "UTC",
		// Every statement names its schema: two generations live side by side.
		"search_path":  "pg_catalog",
		"bytea_output": "hex",
		// Compiling saves time in statements that run for seconds. It begins by an estimate, which knows little of a
		// young table, and takes half a second where it loads the compiler.
		"jit":                                 "off",
		"statement_timeout":                   milliseconds(c.StatementTimeout),
		"idle_in_transaction_session_timeout": milliseconds(c.IdleInTransactionTimeout),
		// A client that is gone without a word is noticed as well, so that it does not keep its locks.
		"tcp_user_timeout":        milliseconds(c.IdleInTransactionTimeout),
		"tcp_keepalives_idle":     "5",
		"tcp_keepalives_interval": "2",
		"tcp_keepalives_count":    "3",
	})
	if c.PlanOnce {
		p.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	}
	p.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		acceptArrays(conn.TypeMap())
		return nil
	}
	return p, nil
}

// Health returns nil, or why the database cannot be asked. It is what readiness should ask.
func (db *DB) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, db.cfg.ConnectTimeout,
		fmt.Errorf("the database has not answered for %s", db.cfg.ConnectTimeout))
	defer cancel()
	if _, err := db.pool.Exec(ctx, selectNothing.SQL()); err != nil {
		if late := context.Cause(ctx); late != nil {
			err = late
		}
		return fmt.Errorf("asking the database: %w", err)
	}
	return nil
}

var selectNothing = Register("nothing", `SELECT`)

// Pool is for the packages below this one, which run registered statements on it. Nobody else does.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Close waits for connections in use and closes all.
func (db *DB) Close() { db.pool.Close() }

// Bounded ends a call that the server neither answers nor refuses, for instance because the network between swallows
// packets.
func (db *DB) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, db.cfg.ConnectTimeout+2*db.cfg.StatementTimeout,
		errors.New("the database does not answer"))
}

// The conditions of the server that code here distinguishes.
const (
	codeUndefinedTable  = "42P01"
	codeInvalidSchema   = "3F000"
	codeUniqueViolation = "23505"
	codeInvalidPassword = "28P01"
	codeInvalidRole     = "28000" // also what pg_hba.conf turns away
	codeUnknownDatabase = "3D000"
)

// HasCode reports whether an error is the server's answer with one of these SQLSTATEs.
func HasCode(err error, codes ...string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	return slices.Contains(codes, refused.Code)
}

// ViolatedIndex is the name of the unique index that a statement violated, empty where an error says nothing of one.
func ViolatedIndex(err error) string {
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == codeUniqueViolation {
		return refused.ConstraintName
	}
	return ""
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// refusal is an error that another try cannot mend.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Refuse marks an error for which [Refused] is to be true.
func Refuse(err error) error { return refusal{err} }

// Refusef makes an error for which [Refused] is true.
func Refusef(format string, args ...any) error { return Refuse(fmt.Errorf(format, args...)) }

// Unfit reports whether an error says that a value can be stored in no row, whatever else is true: it is the value that
// is wrong, and not the database.
func Unfit(err error) bool {
	const dataException, checkViolation = "22", "23514"
	answer, is := errors.AsType[*pgconn.PgError](err)
	return is && (strings.HasPrefix(answer.Code, dataException) || answer.Code == checkViolation)
}

// Refused reports whether an error says that the database, or this package on its behalf, understood a write and cannot
// accept it: a value that does not fit, a block that does not follow. Trying again is pointless; whoever wrote the
// request has to look.
func Refused(err error) bool {
	if _, is := errors.AsType[refusal](err); is {
		return true
	}
	answer, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return false
	}
	const dataException, integrityViolation, wrongStatement = "22", "23", "42"
	for _, class := range []string{dataException, integrityViolation, wrongStatement} {
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return false
}
