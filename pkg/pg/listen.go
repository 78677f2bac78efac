package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/retry"
)

var (
	listenChange     = Register("listen", `LISTEN state_changed`)
	listenGeneration = Register("listen for generations", `LISTEN generation_changed`)
)

// Listener waits for notifications. It is for one goroutine at a time.
type Listener struct {
	db      *DB
	channel *Statement // the LISTEN that it connects with
	conn    *pgx.Conn  // nil until connected, and after a failure
	heard   time.Time  // when the server last said something
}

// Listener returns a listener for changes of state. It connects at the first wait.
func (db *DB) Listener() *Listener { return db.ListenOn(listenChange) }

// ListenOn returns a listener that connects with a LISTEN of its own.
func (db *DB) ListenOn(listen *Statement) *Listener { return &Listener{db: db, channel: listen} }

// GenerationListener returns a listener for changes of the list of generations: which there are, and which of them is
// active or followed.
func (db *DB) GenerationListener() *Listener { return &Listener{db: db, channel: listenGeneration} }

// WaitChange returns when state may have changed since the last call: at a notification, or when the poll interval is
// over, since a notification is lost with its connection. The only error is that of ctx.
func (l *Listener) WaitChange(ctx context.Context) error { return l.Wait(ctx, l.db.cfg.PollInterval) }

// Wait returns at a notification, when the time is over, or at once when a connection was made: notifications may have
// been missed before. The only error is that of ctx.
func (l *Listener) Wait(ctx context.Context, atMost time.Duration) error {
	poll, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	if fresh, err := l.connect(poll); err != nil || !fresh {
		l.wait(poll)
	}
	return ctx.Err()
}

// connect makes sure of a connection. A fresh one may have missed something, so its caller has to look at once.
func (l *Listener) connect(ctx context.Context) (fresh bool, err error) {
	if l.conn != nil {
		return false, nil
	}
	pooled, err := l.db.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	conn := pooled.Hijack() // It waits all its life; the pool may open another one in its place.
	if _, err := conn.Exec(ctx, l.channel.SQL()); err != nil {
		closeConnection(conn)
		return false, err
	}
	l.conn, l.heard = conn, time.Now()
	return true, nil
}

// wait ends with ctx, at a notification, or, when there is no connection, with ctx only.
func (l *Listener) wait(ctx context.Context) {
	if l.conn != nil {
		_, err := l.conn.WaitForNotification(ctx)
		if err == nil {
			l.heard = time.Now()
			return
		}
		l.look()
	}
	<-ctx.Done()
}

// look gives the connection up where it has ended, leads to a server that only reads, or answers nothing: who only
// listens would wait on a dead one for ever.
func (l *Listener) look() {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	if !l.conn.IsClosed() && time.Since(l.heard) >= lookEvery {
		if _, err := l.conn.Exec(ctx, selectNothing.SQL()); err == nil {
			l.heard = time.Now()
		}
	}
	if stale := time.Since(l.heard) >= lookEvery; stale || l.conn.IsClosed() || OnlyReads(l.conn) {
		l.Close()
	}
}

// After how long a server that said nothing is asked something, and how long it may take to answer.
const (
	lookEvery    = 3 * time.Second
	lookPatience = time.Second
)

// Close closes the connection, if there is one.
func (l *Listener) Close() {
	if l.conn != nil {
		closeConnection(l.conn)
		l.conn = nil
	}
}

// closeConnection closes the connection, within a moment at most; a server that does not listen will notice anyway.
func closeConnection(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// ErrLayout marks an active generation whose layout is not this build's, and wraps [ErrSchema]. While processes are
// replaced by those of a build with another layout, the ones it is not for wait, and the others work.
var ErrLayout = fmt.Errorf("other layout of the state, %w", ErrSchema)

// AwaitSchema waits, by the caller's policy, for a database that answers and checks that this build can work with it. A
// schema of another version, and a server that lets nobody in, are errors at once (Lasting). While the active
// generation is of another layout it waits for a switch to one that this build can read; the policy's OnRetry is
// called.
func (db *DB) AwaitSchema(ctx context.Context, policy retry.Policy) error {
	listener := db.GenerationListener()
	defer listener.Close()
	return await(ctx, policy, func(ctx context.Context) error {
		for {
			err := db.CheckSchema(ctx)
			if !errors.Is(err, ErrLayout) {
				return err
			}
			if policy.OnRetry != nil {
				policy.OnRetry(0, err, db.cfg.PollInterval)
			}
			if err := listener.WaitChange(ctx); err != nil {
				return err
			}
		}
	})
}

// AwaitVersion is AwaitSchema for those who look at the layout of each generation by themselves.
func (db *DB) AwaitVersion(ctx context.Context, policy retry.Policy) error {
	return await(ctx, policy, db.checkVersion)
}

// WatchLayout returns ErrLayout as soon as the active generation is one that this build cannot read. Whoever reads the
// state ends then, and waits in AwaitSchema when it is started again: it must keep no partition from those who can.
func (db *DB) WatchLayout(ctx context.Context) error {
	listener := db.GenerationListener()
	defer listener.Close()
	for {
		if err := db.checkLayout(ctx); errors.Is(err, ErrLayout) {
			return err
		}
		if err := listener.WaitChange(ctx); err != nil {
			return err
		}
	}
}

func (db *DB) checkLayout(ctx context.Context) error {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	_, err := activeGeneration(ctx, db.pool)
	return err
}

func await(ctx context.Context, policy retry.Policy, check func(context.Context) error) error {
	err := retry.Do(ctx, policy, func(ctx context.Context) error { return Lasting(check(ctx)) })
	if err != nil {
		return fmt.Errorf("checking the database: %w", err)
	}
	return nil
}

// Lasting makes errors that waiting does not mend end a retry: a schema of another version, and a server that is there
// and knows no such user, password or database.
func Lasting(err error) error {
	switch {
	case errors.Is(err, ErrSchema):
		return retry.Stop(err)
	case HasCode(err, codeInvalidPassword, codeInvalidRole, codeUnknownDatabase):
		return retry.Stop(fmt.Errorf("%w (correct postgres.url)", err))
	}
	return err
}
