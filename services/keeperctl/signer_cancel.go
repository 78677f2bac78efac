package keeperctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/pg/outbox"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txm"
)

// askAgain is how often the database is asked whether the sender has heard the wish.
const askAgain = 200 * time.Millisecond

// cancel has the sender that holds a signer's lease give a number to a payment to oneself. No key is at hand here, and
// none is needed: the wish goes through the database, with the name of who had it, and what the chain then takes the
// sender finds out as always.
func (d signerDesk) cancel(ctx context.Context, which, number, reason string) error {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no nonce (keeperctl signer nonces shows them)", number)
	}
	chosen, err := d.choose(ctx, []string{which})
	if err != nil {
		return err
	}
	s := chosen[0]
	before, err := action.Number(ctx, d.db, s.Signer, n)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "signer %s, nonce %d: %s of %s, %d transactions signed, last answer %s; lease: %s\n",
		s.Signer, n, cmp.Or(before.Intent, "no arm"), cmp.Or(before.JobID, "no job"), before.Attempts,
		cmp.Or(before.LastClass, "none"), status.LeaseOf(s))
	if err != nil {
		return err
	}
	if !before.Intent.Replaceable() { // the store says why, and changes nothing
		return outbox.NewSigners(d.db).CallOff(ctx, s.Signer, n, operator(d.own.Operator), reason)
	}
	if !d.own.Yes {
		return errors.New("nothing was changed; the job stays due, and is taken up again when it has cooled down. " +
			"To give the nonce back: --keeperctl.yes")
	}
	if err := outbox.NewSigners(d.db).CallOff(ctx, s.Signer, n, operator(d.own.Operator), reason); err != nil {
		return err
	}
	if s.LeaseLeft == 0 {
		_, err := fmt.Fprintln(d.out,
			"noted; nobody has the lease of this signer: the next sender that takes it up acts on it "+
				"(docs/runbooks/not-ready.md)")
		return err
	}
	return d.awaitCancel(ctx, s.Signer, before)
}

// awaitCancel waits until the sender has signed another transaction at a number, or what was there has been mined
// first.
func (d signerDesk) awaitCancel(ctx context.Context, signer chain.Address, before outbox.NumberStanding) error {
	for {
		now, err := action.Number(ctx, d.db, signer, before.Nonce)
		switch {
		case err != nil:
			return err
		case now.Intent == txm.Cancelled:
			_, err := fmt.Fprintln(d.out, "done: the payment to oneself is final")
			return err
		case !now.Intent.Replaceable():
			_, err := fmt.Fprintf(d.out,
				"a transaction at this nonce was mined: the arm is %s (keeperctl signer nonces %s)\n", now.Intent,
				signer)
			return err
		case now.Attempts > before.Attempts:
			_, err := fmt.Fprintf(d.out,
				"the sender has signed transaction %d at this nonce, a payment to oneself; the chain takes one of "+
					"the %d\n",
				now.Attempts, now.Attempts)
			return err
		}
		if !retry.Sleep(ctx, askAgain) {
			return fmt.Errorf("noted, and the sender has not acted on it yet (%w); its caps may leave no room for a "+
				"raise: see its log", context.Cause(ctx))
		}
	}
}

// operator is who is told to have asked: the configured name, or the account and the machine.
func operator(configured string) string {
	if configured != "" {
		return configured
	}
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname() // only for people
	return name + "@" + host
}
