package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg/txstore"
)

// act lets operators act when keepers fail (LIQ-15).
func act(ctx context.Context, s *session, args []string) error {
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	d := emergencyCommands{cfg: s.Config, store: txstore.NewEmergencies(db), out: s.out,
		dial: func(ctx context.Context) (venueNode, error) { return s.node(ctx) }}
	return d.run(ctx, args)
}

// emergencyCommands is one invocation of the command.
type emergencyCommands struct {
	cfg   Config
	store txstore.Emergencies
	out   printer
	// dial connects to the chain, for the actions that need it.
	dial func(ctx context.Context) (venueNode, error)
}

// venueNode is what the commands ask of the chain, and send where that is configured.
type venueNode interface {
	sendingNode
	Head(ctx context.Context) (chain.BlockRef, error)
	Finalized(ctx context.Context) (chain.BlockRef, error)
	Settled(block chain.Hash) evm.Settled
	Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error)
	Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64, value chain.Uint) (evm.Source, error)
}

func (d emergencyCommands) run(ctx context.Context, args []string) error {
	return verbs{"plan": d.plan, "list": d.list, "run": d.take, "done": d.done}.do(ctx, "emergency", args)
}

// plan shows what the protocol looks at, and what it calls for now. For how long nobody has executed anything a monitor
// knows, and this database does not.
func (d emergencyCommands) plan(ctx context.Context, _ []string) error {
	debt, err := d.store.BadDebtUSD(ctx, time.Hour)
	if err != nil {
		return err
	}
	pending, err := d.store.Pending(ctx)
	if err != nil {
		return err
	}
	own := d.cfg.Emergency
	text := fmt.Sprintf("bad debt within the hour: %d USD (calls for actions above %d; 0 = never)\npending "+
		"liquidations here: %d\n"+
		"nobody executing: a monitor tells (docs/runbooks/monitor.md); it calls for actions after %s\n", debt,
		own.BadDebt, len(pending), own.IdleAfter)
	called := map[emergency.Action]string{}
	for _, c := range d.cfg.Emergency.Recommend(emergency.Facts{BadDebt: debt}) {
		called[c.Action] = c.Cause
	}
	rows := newTable("action", "may be done", "where", "called for now")
	for _, a := range emergency.Actions() {
		may, where := "no (emergency.actions)", "here"
		if d.cfg.Emergency.Permits(a) {
			may = "yes"
		}
		if a.OnChain() {
			where = "on chain, by " + d.account()
		}
		rows.add(a, may, where, called[a])
	}
	if d.out.json {
		return d.out.object(map[string]any{"badDebtUsd": debt, "pendingLiquidations": len(pending),
			"actions": rows.records()})
	}
	return errors.Join(d.out.either(nil, text), d.out.table(rows))
}

// account is who has the role at the venue, as far as it is known.
func (d emergencyCommands) account() string {
	if d.cfg.Emergency.Account == (chain.Address{}) {
		return "whom emergency.account names (not set)"
	}
	return d.cfg.Emergency.Account.Hex()
}

func (d emergencyCommands) list(ctx context.Context, _ []string) error {
	entries, err := d.store.List(ctx, d.cfg.Own.Limit)
	if err != nil {
		return err
	}
	rows := newTable("at", "run", "action", "stage", "dry run", "by", "because", "outcome", "transaction")
	rows.empty = "nothing was ever done, or rehearsed"
	for _, e := range entries {
		tx := ""
		if !e.TxHash.IsZero() {
			tx = e.TxHash.Hex()
		}
		rows.add(text.Moment(e.At), e.Run, e.Action, e.Stage, e.DryRun, e.Operator, e.Cause,
			text.FirstLine(e.Outcome), tx)
	}
	return d.out.table(rows)
}

// take runs an action and hands over what others have to send.
func (d emergencyCommands) take(ctx context.Context, args []string) error {
	o := emergency.Order{Run: uuid.NewString(), Action: emergency.Action(args[0]),
		Operator: operator(d.cfg.Own.Operator), DryRun: d.cfg.Own.DryRun,
		Cause: strings.TrimSpace(text.FirstLine(strings.Join(args[1:], " ")))}
	means := &emergencyMeans{emergencyCommands: d}
	sender, err := d.sender(means)
	if err != nil {
		return err
	}
	steps, err := emergency.Run(ctx, d.cfg.Emergency, o, means, sender, d.store)
	if shown := d.show(o, steps); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	if o.DryRun {
		return sayf(d.out, "run %s: nothing was done; it would succeed. To do it: --keeperctl.dry_run=false\n", o.Run)
	}
	if !o.Action.OnChain() || sender != nil {
		return sayf(d.out, "run %s: done\n", o.Run)
	}
	return sayf(d.out, "run %s: have %s send these calls, and say so for the record: keeperctl emergency done %s %s "+
		"TX\n", o.Run, d.cfg.Emergency.Account, o.Run, o.Action)
}

func (d emergencyCommands) show(o emergency.Order, steps []emergency.Step) error {
	for _, step := range steps {
		if err := sayf(d.out, "%s: %s\n", o.Action, step.Description); err != nil {
			return err
		}
		if step.Contract.IsZero() {
			continue
		}
		if err := sayf(d.out, "  to        %s\n  calldata  0x%x\n  way back  0x%x\n", step.Contract,
			step.Calldata, step.Undo); err != nil {
			return err
		}
	}
	return nil
}

// done records that what was handed over was sent.
func (d emergencyCommands) done(ctx context.Context, args []string) error {
	hash, err := chain.ParseHash(args[2])
	if err != nil {
		return fmt.Errorf("%q is no transaction: %w", args[2], err)
	}
	o := emergency.Order{Run: args[0], Action: emergency.Action(args[1]), Operator: operator(d.cfg.Own.Operator),
		Cause: "reported by the operator"}
	sent := emergency.Entry{Order: o, Stage: emergency.Done, TxHash: hash,
		Outcome: "sent by " + d.cfg.Emergency.Account.Hex()}
	if err := d.store.Record(ctx, sent); err != nil {
		return err
	}
	return sayf(d.out, "recorded\n")
}
