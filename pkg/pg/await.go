package pg

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/retry"
)

// AwaitSchema waits, by the caller's policy, for a database that answers and checks that this build can work with it. A
// schema of another version, and a server that lets nobody in, are errors at once (Lasting).
func (db *DB) AwaitSchema(ctx context.Context, policy retry.Policy) error {
	return await(ctx, policy, db.CheckSchema)
}

// AwaitVersion is AwaitSchema for those who look at the layout of each generation by themselves.
func (db *DB) AwaitVersion(ctx context.Context, policy retry.Policy) error {
	return await(ctx, policy, db.checkVersion)
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
