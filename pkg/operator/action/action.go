// Package action is what operators change of a running keeper, by the command line and by the console alike: signers,
// their nonces, and delayed jobs.
//
// Guaranteed: nothing here holds a key or a lease, and no sender is disturbed but in the way that is asked for. What
// cannot be done is refused with the reason, and changes nothing.
package action

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/nonce"
)

// Accounts are the queries that actions make of the chain.
type Accounts interface {
	NonceAt(ctx context.Context, account chain.Address, tag evm.Tag) (uint64, error)
	Balance(ctx context.Context, account chain.Address) (chain.Uint, error)
}

// Pause keeps a signer from claiming anything new; what it has in flight goes on.
func Pause(ctx context.Context, db *pg.DB, signer chain.Address, reason string) error {
	already, err := txstore.NewSigners(db).Pause(ctx, signer, strings.TrimSpace(text.FirstLine(reason)))
	if err != nil {
		return err
	}
	if already != "" {
		return fmt.Errorf("signer %s is paused already, and stays so for its first reason: %s", signer, already)
	}
	return nil
}

// Resume lets a paused signer claim again, and returns why it was paused.
func Resume(ctx context.Context, db *pg.DB, signer chain.Address) (was string, err error) {
	was, err = txstore.NewSigners(db).Resume(ctx, signer)
	if err == nil && was == "" {
		err = fmt.Errorf("signer %s is not paused (keeperctl signer list says how it stands)", signer)
	}
	return was, err
}

// Signer finds how one signer stands.
func Signer(ctx context.Context, db *pg.DB, signer chain.Address) (txstore.SignerStatus, error) {
	all, err := txstore.NewSigners(db).List(ctx)
	i := slices.IndexFunc(all, func(s txstore.SignerStatus) bool { return s.Signer == signer })
	if err == nil && i < 0 {
		err = fmt.Errorf("signer %s is not known here (keeperctl signer list shows those that are)", signer)
	}
	if err != nil {
		return txstore.SignerStatus{}, err
	}
	return all[i], nil
}

// Number is what became of one number; the zero state when it was never given.
func Number(ctx context.Context, db *pg.DB, signer chain.Address, n uint64) (txstore.NumberStatus, error) {
	numbers, err := txstore.NewSigners(db).Numbers(ctx, signer, n, 1)
	if err != nil || len(numbers) == 0 || numbers[0].State == nonce.State("") {
		return txstore.NumberStatus{Nonce: n}, err
	}
	return numbers[0], nil
}

// Sighting asks the chain for a signer's next number. The states are asked for from the oldest on, so that what is
// mined between two questions does not look like a number that went backwards.
func Sighting(ctx context.Context, node Accounts, signer chain.Address) (seen nonce.ChainNonces, err error) {
	for _, ask := range []struct {
		tag  evm.Tag
		into *uint64
	}{{evm.Finalized, &seen.Finalized}, {evm.Latest, &seen.Latest}, {evm.Pending, &seen.Pending}} {
		if *ask.into, err = node.NonceAt(ctx, signer, ask.tag); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// Resync moves a signer's cursor to the chain's number, ends every earlier lease term and lifts the pause. Every sender
// of the signer has to be stopped, also those of another copy of the database: the caller has asked for that. It is
// refused while transactions wait to be mined.
func Resync(ctx context.Context, db *pg.DB, signer chain.Address, seen nonce.ChainNonces) (next uint64, err error) {
	if err := seen.Settled(); err != nil {
		return 0, err
	}
	cursor, err := txstore.NewLeases(db).Resync(ctx, signer, seen)
	return cursor.Next, err
}

// Delayed finds one delayed job.
func Delayed(ctx context.Context, s pg.Delayed, id int64) (delayed.Job, error) {
	j, known, err := s.Job(ctx, id)
	if err == nil && !known {
		err = fmt.Errorf("there is no delayed job %d (keeperctl delayed list shows them)", id)
	}
	return j, err
}

// RetryDelayed makes a delayed job due at once. It is refused before its time: held commissions would be released, a
// day reported before it is over.
func RetryDelayed(ctx context.Context, s pg.Delayed, id int64) error {
	j, known, err := s.Job(ctx, id)
	if err == nil && known && j.Status == delayed.Pending && j.DueAt.After(time.Now()) {
		err = fmt.Errorf("delayed job %d is not due before %s: there is nothing to retry", id, text.Moment(j.DueAt))
	}
	if err != nil {
		return err
	}
	return changed(id)(s.Retry(ctx, id))
}

// CancelDelayed calls a delayed job off.
func CancelDelayed(ctx context.Context, s pg.Delayed, id int64) error {
	return changed(id)(s.Cancel(ctx, id))
}

func changed(id int64) func(bool, error) error {
	return func(changed bool, err error) error {
		if err == nil && !changed {
			err = fmt.Errorf("delayed job %d is not there, is done, or was called off", id)
		}
		return err
	}
}
