package keeperctl

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/outbox"
)

const signerUsage = "signer list | pause SIGNER REASON | resume SIGNER | balance [SIGNER] | nonces [SIGNER] | gaps " +
	"[SIGNER] | resync SIGNER" +
	" | cancel SIGNER NONCE [REASON]"

// signers lets operators see and steer signers.
func signers(ctx context.Context, s *session, args []string) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	d := signerDesk{db: db, own: s.Own, out: s.out,
		dial: func(ctx context.Context) (action.Accounts, error) { return s.node(ctx) }}
	return d.run(ctx, args)
}

// signerDesk is one invocation of the command.
type signerDesk struct {
	db  *pg.DB
	own Settings
	out printer
	// dial connects to the chain, for the commands that need it.
	dial func(ctx context.Context) (action.Accounts, error)
}

func (d signerDesk) run(ctx context.Context, args []string) error {
	verb, rest := verbOf(args)
	switch {
	case verb == "list" && len(rest) == 0:
		return d.list(ctx)
	case verb == "pause" && len(rest) >= 2:
		return d.pause(ctx, rest[0], strings.Join(rest[1:], " "))
	case verb == "pause" && len(rest) == 1:
		return usagef("say why, for whoever finds it paused: keeperctl signer pause SIGNER REASON")
	case verb == "resume" && len(rest) == 1:
		return d.resume(ctx, rest[0])
	case verb == "cancel" && len(rest) >= 2:
		return d.cancel(ctx, rest[0], rest[1], cmp.Or(strings.TrimSpace(text.FirstLine(strings.Join(rest[2:], " "))),
			"no reason given"))
	case verb == "resync" && len(rest) == 1:
		return d.onChain(ctx, rest, d.resync)
	}
	if show := map[string]func(context.Context, action.Accounts, []outbox.SignerStanding) error{
		"balance": d.balances, "nonces": d.nonces, "gaps": d.gaps,
	}[verb]; show != nil && len(rest) <= 1 {
		return d.onChain(ctx, rest, show)
	}
	return usagef("usage: keeperctl %s", signerUsage)
}

// onChain runs a command about one signer, or all, that asks the chain.
func (d signerDesk) onChain(ctx context.Context, which []string,
	do func(context.Context, action.Accounts, []outbox.SignerStanding) error) error {
	chosen, err := d.choose(ctx, which)
	if err != nil {
		return err
	}
	node, err := d.dial(ctx)
	if err != nil {
		return err
	}
	return do(ctx, node, chosen)
}

// choose returns the signer that is named, or all.
func (d signerDesk) choose(ctx context.Context, which []string) ([]outbox.SignerStanding, error) {
	if len(which) == 0 {
		return outbox.NewSigners(d.db).List(ctx)
	}
	address, err := signerAddress(which[0])
	if err != nil {
		return nil, err
	}
	one, err := action.Signer(ctx, d.db, address)
	return []outbox.SignerStanding{one}, err
}

func signerAddress(text string) (chain.Address, error) {
	address, err := chain.ParseAddress(text)
	if err != nil {
		return address, fmt.Errorf("%q is no signer: %w (keeperctl signer list shows them)", text, err)
	}
	return address, nil
}

func (d signerDesk) list(ctx context.Context) error {
	all, err := outbox.NewSigners(d.db).List(ctx)
	if err != nil {
		return err
	}
	rows := newTable("signer", "state", "lease", "token", "next nonce", "queued", "in flight", "paused because")
	for _, s := range all {
		state := "works"
		switch {
		case s.Paused != "":
			state = "PAUSED"
		case s.LeaseLeft == 0:
			state = "UNATTENDED"
		}
		rows.add(s.Signer, state, status.LeaseOf(s), s.Token, s.NextNonce, s.Queued, s.InFlight,
			text.FirstLine(s.Paused))
	}
	if err := d.out.table(rows); err != nil {
		return err
	}
	return d.advise(all)
}

// advise says what to do next, once for each kind of trouble.
func (d signerDesk) advise(all []outbox.SignerStanding) error {
	var paused, unattended, clock bool
	for _, s := range all {
		clock = clock || s.LeaseLeft > 0 && lease.ClockWentBack(s.LeaseAhead)
		paused, unattended = paused || s.Paused != "", unattended || s.LeaseLeft == 0
	}
	var lines []string
	if len(all) == 0 {
		lines = append(lines, "no sender has started on this database yet")
	}
	if paused {
		lines = append(lines, "PAUSED: claims nothing new, what is in flight goes on; when the reason is gone: "+
			"keeperctl signer resume SIGNER")
	}
	if unattended {
		lines = append(lines, "nobody has the lease of a signer: is a sender with its key running, and ready? "+
			"(docs/runbooks/not-ready.md)")
	}
	if clock {
		lines = append(lines,
			"the database's clock has gone back since a lease was written: a holder that lives mends "+
				"it within seconds; for one that is gone: keeperctl lease break SIGNER (docs/runbooks/signers.md)")
	}
	for _, line := range lines {
		if err := d.out.note(line); err != nil {
			return err
		}
	}
	return nil
}

func (d signerDesk) pause(ctx context.Context, which, reason string) error {
	address, err := signerAddress(which)
	if err != nil {
		return err
	}
	if err := action.Pause(ctx, d.db, address, reason); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out,
		"signer %s claims nothing new from now on; what is in flight goes on (the way back: keeperctl signer resume "+
			"%s)\n",
		address, address)
	return err
}

func (d signerDesk) resume(ctx context.Context, which string) error {
	address, err := signerAddress(which)
	if err != nil {
		return err
	}
	was, err := action.Resume(ctx, d.db, address)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out,
		"signer %s may claim again; it was paused because: %s\nif that is still so, it is paused again at the next "+
			"try\n", address, was)
	return err
}
