package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
)

// leases ends a lease term whose holder is gone, and that does not end by itself, or shows who has it.
func leases(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
	return verbs{"break": func(ctx context.Context, args []string) error {
		return breakLease(ctx, txstore.NewLeases(db), own, args[0], out)
	}}.do(ctx, "lease", args)
}

func breakLease(ctx context.Context, leases txstore.Leases, own Settings, which string, out printer) error {
	signer, err := signerAddress(which)
	if err != nil {
		return err
	}
	at, err := leases.Status(ctx, signer)
	if err != nil {
		return err
	}
	if at.Left == 0 {
		return fmt.Errorf("nobody has the lease of signer %s: there is nothing to break (it was last %s's, token %d)",
			signer, at.Label, at.Token)
	}
	if err := sayf(out, "%s", leaseText(at)); err != nil {
		return err
	}
	if !own.Yes {
		return errors.New("nothing was changed; stop its holder first, if it can be reached, then: --keeperctl.yes")
	}
	token, err := leases.Break(ctx, at, operator(own.Operator))
	if err != nil {
		return err
	}
	return sayf(out, "broken: the token is %d, and nothing is written under %d any more; the next sender with the "+
		"key takes the signer up\n", token, at.Token)
}

// leaseText is what there is to know before a lease is broken.
func leaseText(at txstore.LeaseStatus) string {
	text := fmt.Sprintf("signer %s: held by %s (%s) under token %d, which ends by itself in %s\n", at.Signer, at.Label,
		at.Owner, at.Token, at.Left.Round(time.Second))
	switch {
	case lease.ClockWentBack(-at.Written):
		return text + fmt.Sprintf("it was written %s ahead of the database's clock, which has gone back since\n",
			-at.Written.Round(time.Second))
	case at.Written < lease.DefaultTTL:
		return text + fmt.Sprintf("it was renewed %s ago: ITS HOLDER LIVES, and takes it again unless it is stopped\n",
			at.Written.Round(time.Millisecond))
	}
	return text + fmt.Sprintf("it was last written %s ago\n", at.Written.Round(time.Second))
}
