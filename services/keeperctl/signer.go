package keeperctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
)

// signers lets operators see and steer signers.
func signers(ctx context.Context, s *session, args []string) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	d := signerCommands{db: db, own: s.Own, out: s.out,
		dial: func(ctx context.Context) (witnesses, error) { return s.node(ctx) }}
	return d.run(ctx, args)
}

// signerCommands is one invocation of the command.
type signerCommands struct {
	db  *pg.DB
	own Settings
	out printer
	// dial connects to the chain, for the commands that need it.
	dial func(ctx context.Context) (witnesses, error)
}

func (d signerCommands) run(ctx context.Context, args []string) error {
	return verbs{
		"list": d.list, "pause": d.pause, "resume": d.resume, "cancel": d.cancel,
		"nonces": d.onChain(d.nonces), "gaps": d.onChain(d.gaps), "resync": d.onChain(d.resync),
		"write-off": d.writeOff,
	}.do(ctx, "signer", args)
}

// onChain is a verb about one signer, or all, that asks the chain.
func (d signerCommands) onChain(do func(context.Context, action.Accounts, []txstore.SignerStatus) error,
) func(context.Context, []string) error {
	return func(ctx context.Context, which []string) error {
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
}

// choose returns the signer that is named, or all.
func (d signerCommands) choose(ctx context.Context, which []string) ([]txstore.SignerStatus, error) {
	if len(which) == 0 {
		return txstore.NewSigners(d.db).List(ctx)
	}
	address, err := signerAddress(which[0])
	if err != nil {
		return nil, err
	}
	one, err := action.Signer(ctx, d.db, address)
	return []txstore.SignerStatus{one}, err
}

func signerAddress(text string) (chain.Address, error) {
	address, err := chain.ParseAddress(text)
	if err != nil {
		return address, fmt.Errorf("%q is no signer: %w (keeperctl signer list shows them)", text, err)
	}
	return address, nil
}

func (d signerCommands) list(ctx context.Context, _ []string) error {
	all, err := txstore.NewSigners(d.db).List(ctx)
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
		case s.Unable != "":
			state = "UNABLE"
		}
		rows.add(s.Signer, state, status.LeaseOf(s), s.Token, s.NextNonce, s.Queued, s.InFlight,
			text.FirstLine(cmp.Or(s.Paused, s.Unable)))
	}
	if err := d.out.table(rows); err != nil {
		return err
	}
	return d.advise(all)
}

// advise prints what to do next, once for each kind of trouble.
func (d signerCommands) advise(all []txstore.SignerStatus) error {
	troubles := []struct {
		is     func(txstore.SignerStatus) bool
		advice string
	}{
		{func(s txstore.SignerStatus) bool { return s.Paused != "" },
			"PAUSED: claims nothing new, what is in flight goes on; when the reason is gone: keeperctl signer resume " +
				"SIGNER"},
		{func(s txstore.SignerStatus) bool { return s.LeaseLeft == 0 },
			"nobody has the lease of a signer: is a sender with its key running, and ready? " +
				"(docs/runbooks/not-ready.md) Is its key lost: keeperctl signer write-off SIGNER"},
		{func(s txstore.SignerStatus) bool { return s.LeaseLeft > 0 && lease.ClockWentBack(s.LeaseAhead) },
			"the database's clock has gone back since a lease was written: a holder that lives mends it within " +
				"seconds; for one that is gone: keeperctl lease break SIGNER (docs/runbooks/signers.md)"},
	}
	if len(all) == 0 {
		return d.out.note("no sender has started on this database yet")
	}
	for _, t := range troubles {
		if slices.ContainsFunc(all, t.is) {
			if err := d.out.note(t.advice); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d signerCommands) pause(ctx context.Context, args []string) error {
	address, err := signerAddress(args[0])
	if err != nil {
		return err
	}
	if err := action.Pause(ctx, d.db, address, strings.Join(args[1:], " ")); err != nil {
		return err
	}
	return sayf(d.out, "signer %s claims nothing new from now on; what is in flight goes on (the way back: keeperctl "+
		"signer resume %s)\n", address, address)
}

func (d signerCommands) resume(ctx context.Context, args []string) error {
	address, err := signerAddress(args[0])
	if err != nil {
		return err
	}
	was, err := action.Resume(ctx, d.db, address)
	if err != nil {
		return err
	}
	return sayf(d.out, "signer %s may claim again; it was paused because: %s\nif that is still so, it is paused again "+
		"at the next try\n", address, was)
}
