package keeperctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg/outbox"
)

// balances shows what signers can pay for gas with.
func (d signerDesk) balances(ctx context.Context, node action.Accounts, chosen []outbox.SignerStanding) error {
	rows := newTable("signer", "balance", "wei")
	var poor []string
	for _, s := range chosen {
		wei, err := node.Balance(ctx, s.Signer)
		if err != nil {
			return errors.Join(d.out.table(rows), err)
		}
		if wei.IsZero() {
			poor = append(poor, s.Signer.Hex())
		}
		rows.add(s.Signer, text.Coins(wei), wei)
	}
	if err := d.out.table(rows); err != nil {
		return err
	}
	if len(poor) > 0 {
		return fmt.Errorf("%s cannot pay for gas: send it some; it goes on by itself, with the nonces it had",
			strings.Join(poor, ", "))
	}
	return nil
}

// nonces holds the database's cursors against the chain's numbers. The chain is asked first: a number is stored before
// it is broadcast, so that a cursor that was read afterwards is behind only where something is wrong.
func (d signerDesk) nonces(ctx context.Context, node action.Accounts, chosen []outbox.SignerStanding) error {
	seen := map[chain.Address]nonce.ChainNonces{}
	for _, s := range chosen {
		var err error
		if seen[s.Signer], err = action.Sighting(ctx, node, s.Signer); err != nil {
			return err
		}
	}
	now, err := outbox.NewSigners(d.db).List(ctx)
	if err != nil {
		return err
	}
	rows := newTable("signer", "next here", "pending", "latest", "finalized", "in flight", "meaning")
	behind := 0
	for _, s := range now {
		at, asked := seen[s.Signer]
		if !asked {
			continue
		}
		if at.Pending > s.NextNonce && !unused(s) {
			behind++
		}
		rows.add(s.Signer, s.NextNonce, at.Pending, at.Latest, at.Finalized, s.InFlight, meaning(s, at))
	}
	if err := d.out.table(rows); err != nil {
		return err
	}
	if behind > 0 {
		return fmt.Errorf("signers that are further on the chain than in the database: %d "+
			"(docs/runbooks/signer-paused.md)", behind)
	}
	return nil
}

// unused tells whether a signer is new here. It may have a past elsewhere, which is no alarm.
func unused(s outbox.SignerStanding) bool { return s.NextNonce == 0 && s.InFlight == 0 }

// meaning is what the numbers of a signer say, in a few words.
func meaning(s outbox.SignerStanding, seen nonce.ChainNonces) string {
	switch {
	case unused(s):
		return "nothing was sent from here yet: it begins at the chain's number"
	case seen.Latest > s.NextNonce:
		return "DATABASE BEHIND: the chain has numbers that were never given out here"
	case seen.Pending > s.NextNonce:
		return "STRANGER: somebody else has sent transactions that wait to be mined"
	case seen.Latest == s.NextNonce:
		return "at rest"
	case seen.Pending == s.NextNonce:
		return fmt.Sprintf("%d wait to be mined", s.NextNonce-seen.Latest)
	}
	return fmt.Sprintf("%d wait to be mined; those from %d on are just sent, not with this node, or behind a gap "+
		"(keeperctl signer gaps)",
		s.NextNonce-seen.Latest, seen.Pending)
}

// gaps lists the numbers between the chain's and the cursor that no transaction has.
func (d signerDesk) gaps(ctx context.Context, node action.Accounts, chosen []outbox.SignerStanding) error {
	rows := newTable("signer", "nonce", "state", "for", "last given to", "behind it", "what happens")
	rows.empty = "no gaps: every number from the chain's on has a transaction"
	blocked, found := 0, 0
	for _, s := range chosen {
		latest, err := node.NonceAt(ctx, s.Signer, evm.Latest)
		if err != nil {
			return errors.Join(d.out.table(rows), err)
		}
		numbers, err := outbox.NewSigners(d.db).Numbers(ctx, s.Signer, latest, d.own.Limit)
		if err != nil {
			return errors.Join(d.out.table(rows), err)
		}
		for i, n := range numbers {
			if n.State == nonce.Signed || n.State == nonce.Consumed {
				continue
			}
			above := signedOf(numbers[i:])
			found, blocked = found+1, blocked+min(above, 1)
			rows.add(s.Signer, n.Nonce, cmp.Or(n.State, "never given"), n.Age.Round(time.Second),
				cmp.Or(n.JobID, "nobody"), above, remedy(n.State, above))
		}
	}
	if err := d.out.table(rows); err != nil {
		return err
	}
	if blocked > 0 {
		return fmt.Errorf("%d of %d gaps keep transactions from being mined (docs/runbooks/signer-paused.md)", blocked,
			found)
	}
	return nil
}

func signedOf(numbers []outbox.NumberStanding) (count int) {
	for _, n := range numbers {
		if n.State == nonce.Signed {
			count++
		}
	}
	return count
}

// remedy is what becomes of a gap.
func remedy(state nonce.State, above int) string {
	switch {
	case state == nonce.Held:
		return "its signature is awaited; a take-over releases it"
	case state == nonce.Released && above > 0:
		return "the sender fills it after 2 blocks without a job"
	case state == nonce.Released:
		return "the next job takes it"
	}
	return "NOTHING by itself: pay 0 to the signer's own address with this nonce from a wallet"
}

// resync makes the database's peace with the chain, or shows what it would do.
func (d signerDesk) resync(ctx context.Context, node action.Accounts, chosen []outbox.SignerStanding) error {
	s := chosen[0]
	seen, err := action.Sighting(ctx, node, s.Signer)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out,
		"signer %s: next nonce here %d, on the chain %d (latest), %d (finalized), %d (pending); lease: %s; paused: %s\n",
		s.Signer, s.NextNonce, seen.Latest, seen.Finalized, seen.Pending, status.LeaseOf(s), cmp.Or(s.Paused, "no"))
	if err != nil {
		return err
	}
	if err := seen.Settled(); err != nil {
		return err
	}
	if !d.own.Yes {
		return errors.New("nothing was changed; stop every sender of this signer, also those of another copy of " +
			"this database, then: --keeperctl.yes")
	}
	next, err := action.Resync(ctx, d.db, s.Signer, seen)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out,
		"resynced: the next nonce is %d, the signer is not paused, every earlier tenure is over; senders may be "+
			"started\n", next)
	return err
}
