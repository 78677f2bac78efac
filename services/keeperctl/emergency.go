package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/emergency"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/wire"
)

// EmergencyConfig is what `keeperctl emergency` is told: the keeper's database, its chain and venue, and what may be done.
type EmergencyConfig struct {
	Keeper    wire.Config       `toml:"keeper"`
	Chain     evm.Config        `toml:"chain"`
	Postgres  pg.Config         `toml:"postgres"`
	Venue     gmx.Config        `toml:"venue"`
	Notify    notify.Config     `toml:"notify"`
	Emergency emergency.Config  `toml:"emergency"`
	Own       EmergencySettings `toml:"keeperctl"`
}

// EmergencySettings is its part of the [keeperctl] section.
type EmergencySettings struct {
	DryRun   bool          `toml:"dry_run" help:"plan, rehearse and record, and do nothing"`
	Limit    int           `toml:"limit" help:"most rows to list"`
	Patience time.Duration `toml:"patience" help:"how long to wait for the database, the chain and the webhook"`
	Operator string        `toml:"operator" help:"who asks, for the record; empty = the account's and the machine's name"`
}

// DefaultEmergencyConfig does nothing.
func DefaultEmergencyConfig() EmergencyConfig {
	return EmergencyConfig{
		Keeper: wire.DefaultConfig(), Chain: evm.DefaultConfig(), Postgres: pg.DefaultConfig(), Venue: gmx.DefaultConfig(), Notify: notify.DefaultConfig(),
		Emergency: emergency.DefaultConfig(), Own: EmergencySettings{DryRun: true, Limit: 50, Patience: 30 * time.Second},
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c EmergencyConfig) Validate() error { return nil }

// Validate names every setting that cannot work.
func (s EmergencySettings) Validate() error {
	return LedgerSettings{Limit: s.Limit, Patience: s.Patience}.Validate()
}

const emergencyUsage = "emergency plan | list | run ACTION CAUSE | done RUN ACTION TX"

// Emergency lets operators act when keepers fail (LIQ-15).
func Emergency(sh *service.Shell, cfg EmergencyConfig, args []string) error {
	ctx, cancel := context.WithTimeoutCause(sh.Context(), cfg.Own.Patience, fmt.Errorf("gave up after %s (keeperctl.patience)", cfg.Own.Patience))
	defer cancel()
	db, err := pg.Open(ctx, cfg.Postgres, sh.Name)
	if err != nil {
		return fmt.Errorf("opening postgres: %w", err)
	}
	defer db.Close()
	if err := db.CheckSchema(ctx); err != nil {
		return err
	}
	d := emergencyDesk{cfg: cfg, store: db.Emergencies(), out: escaped(os.Stdout), dial: func(ctx context.Context) (venueNode, func(), error) {
		node, err := evm.Dial(ctx, cfg.Keeper.ChainID, cfg.Chain, sh.Log, evm.NewMetrics(sh.Registry))
		if err != nil {
			return nil, nil, fmt.Errorf("connecting to the chain: %w", err)
		}
		return node, node.Close, nil
	}}
	return d.run(ctx, args[min(1, len(args)):])
}

// emergencyDesk is one invocation of the command.
type emergencyDesk struct {
	cfg   EmergencyConfig
	store pg.Emergencies
	out   io.Writer
	// dial connects to the chain, for the actions that need it.
	dial func(ctx context.Context) (venueNode, func(), error)
}

// venueNode is what the commands ask of the chain. They send nothing.
type venueNode interface {
	Head(ctx context.Context) (chain.BlockRef, error)
	Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error)
	Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64, value perp.Uint) error
}

func (d emergencyDesk) run(ctx context.Context, args []string) error {
	verb, rest := "", args
	if len(args) > 0 {
		verb, rest = args[0], args[1:]
	}
	switch {
	case verb == "plan" && len(rest) == 0:
		return d.plan(ctx)
	case verb == "list" && len(rest) == 0:
		return d.list(ctx)
	case verb == "run" && len(rest) >= 2:
		return d.take(ctx, emergency.Action(rest[0]), strings.TrimSpace(firstLine(strings.Join(rest[1:], " "))))
	case verb == "run" && len(rest) == 1:
		return errors.New("say why, for whoever reads the record: keeperctl emergency run ACTION CAUSE")
	case verb == "done" && len(rest) == 3:
		return d.done(ctx, rest[0], emergency.Action(rest[1]), rest[2])
	}
	return usagef("usage: keeperctl %s", emergencyUsage)
}

// plan shows what the protocol looks at, and what it calls for now. For how long nobody has executed anything a monitor knows, and this database does not.
func (d emergencyDesk) plan(ctx context.Context) error {
	debt, err := d.badDebt(ctx)
	if err != nil {
		return err
	}
	pending, err := d.store.Pending(ctx)
	if err != nil {
		return err
	}
	own := d.cfg.Emergency
	_, err = fmt.Fprintf(d.out, "bad debt within the hour: %d USD (calls for actions above %d; 0 = never)\npending liquidations here: %d\n"+
		"nobody executing: a monitor tells (docs/runbooks/monitor.md); it calls for actions after %s\n", debt, own.BadDebt, len(pending), own.IdleAfter)
	if err != nil {
		return err
	}
	called := map[emergency.Action]string{}
	for _, c := range d.cfg.Emergency.Follow(emergency.Facts{BadDebt: debt}) {
		called[c.Action] = c.Cause
	}
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "action\tmay be done\twhere\tcalled for now") // the writer keeps what goes wrong for Flush
	for _, a := range emergency.Actions() {
		may, where := "no (emergency.actions)", "here"
		if d.cfg.Emergency.Permits(a) {
			may = "yes"
		}
		if a.OnChain() {
			where = "on chain, by " + d.account()
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", a, may, where, called[a])
	}
	return table.Flush()
}

// account is who has the role at the venue, as far as it is known.
func (d emergencyDesk) account() string {
	if d.cfg.Emergency.Account == (chain.Address{}) {
		return "whom emergency.account names (not set)"
	}
	return d.cfg.Emergency.Account.Hex()
}

// badDebt is that of the last hour in whole dollars.
func (d emergencyDesk) badDebt(ctx context.Context) (uint64, error) {
	text, err := d.store.BadDebt(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	usd, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return 0, fmt.Errorf("bad debt of %q is no number", text)
	}
	return usd.Div(usd, perp.Pow10(30).Big()).Uint64(), nil
}

func (d emergencyDesk) list(ctx context.Context) error {
	entries, err := d.store.List(ctx, d.cfg.Own.Limit)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		_, err := fmt.Fprintln(d.out, "nothing was ever done, or rehearsed")
		return err
	}
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "at\trun\taction\tstage\tdry run\tby\tbecause\toutcome\ttransaction") // the writer keeps what goes wrong for Flush
	for _, e := range entries {
		tx := ""
		if !e.TxHash.IsZero() {
			tx = e.TxHash.Hex()
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\t%s\t%s\t%s\t%s\n", moment(e.At), e.Run, e.Action, e.Stage, e.DryRun, e.Operator, e.Cause,
			firstLine(e.Outcome), tx)
	}
	return table.Flush()
}

// take runs an action and hands over what others have to send.
func (d emergencyDesk) take(ctx context.Context, action emergency.Action, cause string) error {
	o := emergency.Order{Run: uuid.NewString(), Action: action, Operator: operator(d.cfg.Own.Operator), Cause: cause, DryRun: d.cfg.Own.DryRun}
	means := &emergencyMeans{emergencyDesk: d}
	defer means.close()
	deeds, err := emergency.Run(ctx, d.cfg.Emergency, o, means, d.store)
	if shown := d.show(o, deeds); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	if o.DryRun {
		_, err = fmt.Fprintf(d.out, "run %s: nothing was done; it would succeed. To do it: --keeperctl.dry_run=false\n", o.Run)
		return err
	}
	if !action.OnChain() {
		_, err = fmt.Fprintf(d.out, "run %s: done\n", o.Run)
		return err
	}
	_, err = fmt.Fprintf(d.out, "run %s: have %s send these calls, and say so for the record: keeperctl emergency done %s %s TX\n",
		o.Run, d.cfg.Emergency.Account, o.Run, action)
	return err
}

func (d emergencyDesk) show(o emergency.Order, deeds []emergency.Deed) error {
	for _, deed := range deeds {
		if _, err := fmt.Fprintf(d.out, "%s: %s\n", o.Action, deed.Does); err != nil {
			return err
		}
		if deed.Contract.IsZero() {
			continue
		}
		if _, err := fmt.Fprintf(d.out, "  to        %s\n  calldata  0x%x\n  way back  0x%x\n", deed.Contract, deed.Calldata, deed.Undo); err != nil {
			return err
		}
	}
	return nil
}

// done records that what was handed over was sent.
func (d emergencyDesk) done(ctx context.Context, run string, action emergency.Action, tx string) error {
	hash, err := chain.ParseHash(tx)
	if err != nil {
		return fmt.Errorf("%q is no transaction: %w", tx, err)
	}
	o := emergency.Order{Run: run, Action: action, Operator: operator(d.cfg.Own.Operator), Cause: "reported by the operator"}
	sent := emergency.Entry{Order: o, Stage: emergency.Done, TxHash: hash, Outcome: "sent by " + d.cfg.Emergency.Account.Hex()}
	if err := d.store.Record(ctx, sent); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "recorded\n")
	return err
}
