package pg

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/retry"
)

// ErrLayout marks an active generation whose layout is not this build's, and wraps [ErrSchema]. While processes are
// replaced by those of a build with another layout, the ones it is not for wait, and the others work.
var ErrLayout = fmt.Errorf("other layout of the state, %w", ErrSchema)

// AwaitSchema waits, by the caller's policy, for a database that answers and checks that this build can work with it. A
// schema of another version, and a server that lets nobody in, are errors at once (Lasting). While the active
// generation is of another layout it waits for a switch to one that this build can read; the policy's OnRetry is told.
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
	_, err := ActiveGeneration(ctx, db.pool)
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
