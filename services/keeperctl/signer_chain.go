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
	"perpkeeper/pkg/txmgr/nonce"
)

// nonces holds the database's cursors against the chain's numbers. The chain is asked first: a number is stored before
// it is broadcast, so that a cursor that was read afterwards is behind only where something is wrong. What there is to
// pay gas with stands beside.
func (d signerCommands) nonces(ctx context.Context, node action.Accounts, chosen []txstore.SignerStatus) error {
	seen, funds := map[chain.Address]nonce.ChainNonces{}, map[chain.Address]chain.Uint{}
	for _, s := range chosen {
		var err error
		if funds[s.Signer], err = node.Balance(ctx, s.Signer); err != nil {
			return err
		}
		if seen[s.Signer], err = action.Sighting(ctx, node, s.Signer); err != nil {
			return err
		}
	}
	now, err := txstore.NewSigners(d.db).List(ctx)
	if err != nil {
		return err
	}
	rows := newTable("signer", "balance", "next here", "pending", "latest", "finalized", "in flight", "meaning")
	behind, poor := 0, 0
	for _, s := range now {
		at, asked := seen[s.Signer]
		if !asked {
			continue
		}
		if at.Pending > s.NextNonce && !unused(s) {
			behind++
		}
		if funds[s.Signer].IsZero() {
			poor++
		}
		rows.add(s.Signer, text.Coins(funds[s.Signer]), s.NextNonce, at.Pending, at.Latest, at.Finalized,
			s.InFlight, meaning(s, at))
	}
	if err := d.out.table(rows); err != nil {
		return err
	}
	if behind > 0 {
		return fmt.Errorf("signers that are further on the chain than in the database: %d "+
			"(docs/runbooks/signers.md)", behind)
	}
	if poor > 0 {
		return fmt.Errorf("signers that cannot pay for gas: %d (send money: they go on by themselves)", poor)
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
	return sayf(d.out, "noted; the sender gives this nonce to a payment to oneself, and the chain takes one of the "+
		"two (keeperctl job says which)\n")
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
