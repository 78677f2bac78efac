package pg

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/retry"
)

// AwaitSchema waits, by the caller's policy, for a database that answers and checks that this build can work with it. A schema of another
// version, and a server that lets nobody in (Denied), are errors at once: waiting does not mend them.
func (db *DB) AwaitSchema(ctx context.Context, policy retry.Policy) error {
	return await(ctx, policy, db.CheckSchema)
}

// AwaitVersion is AwaitSchema for those who look at the layout of each generation by themselves.
func (db *DB) AwaitVersion(ctx context.Context, policy retry.Policy) error {
	return await(ctx, policy, db.checkVersion)
}

func await(ctx context.Context, policy retry.Policy, check func(context.Context) error) error {
	err := retry.Do(ctx, policy, func(ctx context.Context) error {
		err := check(ctx)
		switch {
		case errors.Is(err, ErrSchema):
			return retry.Stop(err)
		case Denied(err):
			return retry.Stop(fmt.Errorf("%w (correct postgres.url)", err))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("checking the database: %w", err)
	}
	return nil
}
