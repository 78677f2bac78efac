package keeperctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
)

// leaseBreakCommand ends a lease term whose holder is gone, and that does not end by itself.
func leaseBreakCommand(cmd *cobra.Command) runner {
	yes := cmd.Flags().String("yes", "", "the signer's address once more, in place of the question: for scripts")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) != 1 {
			return usagef("usage: keeperctl lease break SIGNER [--yes SIGNER]")
		}
		db, err := s.database(ctx)
		if err != nil {
			return err
		}
		b := leaseBreak{leases: txstore.NewLeases(db), by: operator(s.Own.Operator), patience: s.Own.Patience, in: s.in,
			out: s.out}
		return b.run(ctx, args[0], *yes)
	}
}

// leaseBreak is one invocation of the command.
type leaseBreak struct {
	leases   txstore.Leases
	by       string // who asks, for the record
	patience time.Duration
	in       io.Reader
	out      io.Writer
}

// run shows who has the lease, and breaks it once the signer's address has been written a second time.
func (b leaseBreak) run(ctx context.Context, which, yes string) error {
	signer, err := signerAddress(which)
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, b.patience) // nobody is hurried while the question is read
	defer cancel()
	at, err := b.leases.Status(asked, signer)
	if err != nil {
		return err
	}
	if at.Left == 0 {
		return fmt.Errorf("nobody has the lease of signer %s: there is nothing to break (it was last %s's, token %d)",
			signer, at.Label, at.Token)
	}
	if err := sayf(b.out, "%s", leaseText(at)); err != nil {
		return err
	}
	if err := b.confirm(signer, yes); err != nil {
		return err
	}
	done, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	token, err := b.leases.Break(done, at, b.by)
	if err != nil {
		return err
	}
	return sayf(b.out, "broken: the token is %d, and nothing is written under %d any more; the next sender with the "+
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

// confirm demands the signer's address once more, from the flag or from whoever is there.
func (b leaseBreak) confirm(signer chain.Address, yes string) error {
	answer := yes
	if yes == "" {
		if err := sayf(b.out, "stop its holder first, if it can be reached. To break the lease write the "+
			"signer's address: "); err != nil {
			return err
		}
		line, err := bufio.NewReader(b.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading the answer: %w", err)
		}
		answer = line
	}
	if again, err := chain.ParseAddress(strings.TrimSpace(answer)); err != nil || again != signer {
		return fmt.Errorf("nothing was changed: %q is not the address of the signer, %s", strings.TrimSpace(answer),
			signer)
	}
	return nil
}
