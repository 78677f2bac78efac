package keeperctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

// balances shows what signers can pay for gas with.
func (d signerCommands) balances(ctx context.Context, node action.Accounts, chosen []txstore.SignerStatus) error {
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
func (d signerCommands) nonces(ctx context.Context, node action.Accounts, chosen []txstore.SignerStatus) error {
	seen := map[chain.Address]nonce.ChainNonces{}
	for _, s := range chosen {
		var err error
		if seen[s.Signer], err = action.Sighting(ctx, node, s.Signer); err != nil {
			return err
		}
	}
	now, err := txstore.NewSigners(d.db).List(ctx)
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
			"(docs/runbooks/signers.md)", behind)
	}
	return nil
}

// unused reports whether a signer is new here. It may have a past elsewhere, which is no alarm.
func unused(s txstore.SignerStatus) bool { return s.NextNonce == 0 && s.InFlight == 0 }

// meaning is what the numbers of a signer say, in a few words.
func meaning(s txstore.SignerStatus, seen nonce.ChainNonces) string {
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
func (d signerCommands) gaps(ctx context.Context, node action.Accounts, chosen []txstore.SignerStatus) error {
	rows := newTable("signer", "nonce", "state", "for", "last given to", "behind it", "what happens")
	rows.empty = "no gaps: every number from the chain's on has a transaction"
	blocked, found := 0, 0
	for _, s := range chosen {
		latest, err := node.NonceAt(ctx, s.Signer, evm.Latest)
		if err != nil {
			return errors.Join(d.out.table(rows), err)
		}
		numbers, err := txstore.NewSigners(d.db).Numbers(ctx, s.Signer, latest, d.own.Limit)
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
		return fmt.Errorf("%d of %d gaps keep transactions from being mined (docs/runbooks/signers.md)", blocked,
			found)
	}
	return nil
}

func signedOf(numbers []txstore.NumberStatus) (count int) {
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
func (d signerCommands) resync(ctx context.Context, node action.Accounts, chosen []txstore.SignerStatus) error {
	s := chosen[0]
	seen, err := action.Sighting(ctx, node, s.Signer)
	if err != nil {
		return err
	}
	if err := sayf(d.out, "signer %s: next nonce here %d, on the chain %d (latest), %d (finalized), %d (pending); "+
		"lease: %s; paused: %s\n", s.Signer, s.NextNonce, seen.Latest, seen.Finalized, seen.Pending, status.LeaseOf(s),
		cmp.Or(s.Paused, "no")); err != nil {
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
	return sayf(d.out, "resynced: the next nonce is %d, the signer is not paused, every earlier lease term is over; "+
		"senders may be started\n", next)
}

// askAgain is how often the database is asked whether the sender has taken the request.
const askAgain = 200 * time.Millisecond

// cancel has the sender that holds a signer's lease give a number to a payment to oneself. No key is at hand here, and
// none is needed: the wish goes through the database, with the name of who had it, and what the chain then takes the
// sender finds out as always.
func (d signerCommands) cancel(ctx context.Context, args []string) error {
	n, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no nonce (keeperctl signer nonces shows them)", args[1])
	}
	reason := cmp.Or(strings.TrimSpace(text.FirstLine(strings.Join(args[2:], " "))), "no reason given")
	chosen, err := d.choose(ctx, args[:1])
	if err != nil {
		return err
	}
	s := chosen[0]
	before, err := action.Number(ctx, d.db, s.Signer, n)
	if err != nil {
		return err
	}
	if err := sayf(d.out, "signer %s, nonce %d: %s of %s, %d transactions signed, last answer %s; lease: %s\n",
		s.Signer, n, cmp.Or(before.Intent, "no attempt"), cmp.Or(before.JobID, "no job"), before.Attempts,
		cmp.Or(before.LastClass, "none"), status.LeaseOf(s)); err != nil {
		return err
	}
	inFlight := before.Intent.Replaceable()
	if inFlight && !d.own.Yes {
		return errors.New("nothing was changed; the job stays due, and is taken up again when it has cooled down. " +
			"To give the nonce back: --keeperctl.yes")
	}
	err = txstore.NewSigners(d.db).CallOff(ctx, s.Signer, n, operator(d.own.Operator), reason)
	if err != nil || !inFlight { // of what is not in flight the store says why it changes nothing
		return err
	}
	if s.LeaseLeft == 0 {
		return sayf(d.out, "noted; nobody has the lease of this signer: the next sender that takes it up acts on it "+
			"(docs/runbooks/not-ready.md)\n")
	}
	return d.awaitCancel(ctx, s.Signer, before)
}

// awaitCancel waits until the sender has signed another transaction at a number, or what was there has been mined
// first.
func (d signerCommands) awaitCancel(ctx context.Context, signer chain.Address, before txstore.NumberStatus) error {
	for {
		now, err := action.Number(ctx, d.db, signer, before.Nonce)
		switch {
		case err != nil:
			return err
		case now.Intent == txm.Cancelled:
			return sayf(d.out, "done: the payment to oneself is final\n")
		case !now.Intent.Replaceable():
			return sayf(d.out,
				"a transaction at this nonce was mined: the attempt is %s (keeperctl signer nonces %s)\n",
				now.Intent, signer)
		case now.Attempts > before.Attempts:
			return sayf(d.out, "the sender has signed transaction %d at this nonce, a payment to oneself; the chain "+
				"takes one of the %d\n", now.Attempts, now.Attempts)
		}
		if !retry.Sleep(ctx, askAgain) {
			return fmt.Errorf("noted, and the sender has not acted on it yet (%w); its caps may leave no room for a "+
				"raise: see its log", context.Cause(ctx))
		}
	}
}

// writeOff gives up a signer whose key is lost, or shows what that would end.
func (d signerCommands) writeOff(ctx context.Context, args []string) error {
	chosen, err := d.choose(ctx, args[:1])
	if err != nil {
		return err
	}
	s, why := chosen[0].Signer, args[1:]
	var from *uint64
	if len(why) > 0 {
		if n, err := strconv.ParseUint(why[0], 10, 64); err == nil {
			from, why = &n, why[1:]
		}
	}
	node, err := d.dial(ctx)
	if err != nil {
		return err
	}
	lost, err := findLost(ctx, d.db, node, s)
	if err != nil {
		return err
	}
	rows := newTable("nonce", "job", "transactions", "fate")
	rows.empty = "nothing is in flight"
	for _, f := range lost.Fates {
		rows.add(f.Intent.Nonce, f.Intent.Job.ID, len(f.Txs), f.Word())
	}
	if err := errors.Join(sayf(d.out, "signer %s: its nonce is %d at final block %d; lease: %s\n", s, lost.Next,
		lost.At.Number, status.LeaseOf(chosen[0])), d.out.table(rows)); err != nil {
		return err
	}
	reason := strings.TrimSpace(text.FirstLine(strings.Join(why, " ")))
	if !d.own.Yes || reason == "" {
		return errors.New("nothing was changed; give a reason, and --keeperctl.yes: what is in flight ends, and " +
			"other signers do what the state still shows as due. Where a nonce is not used its bytes may still land: " +
			"name the lowest such nonce before the reason if you take that risk")
	}
	if _, err := writeOff(ctx, d.db, node, s, from, operator(d.own.Operator), reason); err != nil {
		return err
	}
	return sayf(d.out, "written off and paused; take it out of keeper.signers, and its roles at the venue\n")
}

// operator is who is recorded to have asked: the configured name, or the account and the machine.
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
