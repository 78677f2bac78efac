package pg

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"perpkeeper/pkg/transport"
)

// codeReadOnly is a write's refusal by a server that only reads: a standby, or a primary that was deposed.
const codeReadOnly = "25006"

// errReadOnly is why a server is not taken.
var errReadOnly = errors.New("the server only reads: it is a standby, or no primary any more (postgres.url has to " +
	"lead to the one that can be written to)")

// wire has connections lead to a server that can be written to, and end when they are mute or it cannot any more. Then
// all others end with the first, by reset, as soon as they are free: behind one address another server may have become
// the primary.
func wire(p *pgxpool.Config, reset func()) {
	cfg := &p.ConnConfig.Config
	dialer := &transport.Dialer{Patience: transport.Mute / 2}
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if own, is := transport.Under(c); is { // until it is accepted, its own time-out bounds it
			own.Confirm(func(context.Context) bool { return true })
		}
		return c, err
	}
	cfg.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return accept(ctx, conn, cfg)
	}
	cfg.OnPgError = func(_ *pgconn.PgConn, refused *pgconn.PgError) (keep bool) {
		if refused.Code == codeReadOnly {
			go reset() // which takes the pool's lock
			return false
		}
		return !strings.EqualFold(refused.Severity, "FATAL")
	}
	// At the acquisition: a look at the release would have the pool release beside its user, who then finds another
	// connection.
	p.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		if !OnlyReads(conn) {
			return true, nil
		}
		go reset()
		return false, nil
	}
}

// OnlyReads reports whether the server of a connection has said that it only reads, as it does unasked (from version 14
// on). It is for connections outside of the pool.
func OnlyReads(conn *pgx.Conn) bool {
	said := conn.PgConn().ParameterStatus
	return said("default_transaction_read_only") == "on" || said("in_hot_standby") == "on"
}

var (
	selectReadOnly = Register("only reads", `SELECT current_setting('transaction_read_only')`)
	selectWorks    = Register("works on an answer",
		`SELECT FROM pg_stat_activity WHERE pid = $1::integer AND state = 'active'`)
)

// accept refuses a server that only reads, and has a mute connection asked about before it is given up. A server before
// version 14 does not say what it is, and a pooler speaks for another process: they are asked, and statements there are
// bounded by their own time-out alone.
func accept(ctx context.Context, conn *pgconn.PgConn, cfg *pgconn.Config) error {
	said := conn.ParameterStatus
	if said("in_hot_standby") == "" {
		answer, err := conn.Exec(ctx, selectReadOnly.SQL()).ReadAll()
		if err == nil && string(answer[0].Rows[0][0]) == "on" {
			err = errReadOnly
		}
		return err
	}
	if said("in_hot_standby") == "on" || said("default_transaction_read_only") == "on" {
		return errReadOnly
	}
	if below, is := transport.Under(conn.Conn()); is {
		pid := strconv.FormatUint(uint64(conn.PID()), 10)
		below.Confirm(func(ctx context.Context) bool { return works(ctx, cfg, pid) })
	}
	return nil
}

// works reports whether the server works on what a process of its was asked: one that has answered, or was never asked,
// does not, and its connection is dead.
func works(ctx context.Context, cfg *pgconn.Config, pid string) bool {
	beside := cfg.Copy()
	beside.ValidateConnect, beside.OnPgError, beside.Fallbacks = nil, nil, nil
	conn, err := pgconn.ConnectConfig(ctx, beside)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(ctx) }()
	answer := conn.ExecParams(ctx, selectWorks.SQL(), [][]byte{[]byte(pid)}, nil, nil, nil).Read()
	return answer.Err == nil && len(answer.Rows) == 1
}
