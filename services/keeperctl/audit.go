package keeperctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/operator/audit"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/execution/ledger"
)

const auditUsage = "audit FROM TO | last DURATION"

// auditChain prints who executed which jobs in a range of blocks, by what the chain shows.
func auditChain(ctx context.Context, s *session, args []string) error {
	d := auditRun{cfg: s.Config, out: s.out, progress: s.err}
	which, err := parseAuditRange(args)
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return err
	}
	node, err := s.node(ctx)
	if err != nil {
		return err
	}
	return d.run(ctx, node, which)
}

// auditRange is what is asked for: blocks, or the time before the newest final block.
type auditRange struct {
	from, to uint64
	last     time.Duration
}

func parseAuditRange(args []string) (r auditRange, err error) {
	if len(args) != 2 {
		return r, usagef("usage: keeperctl %s", auditUsage)
	}
	if args[0] == "last" {
		if r.last, err = time.ParseDuration(args[1]); err != nil || r.last <= 0 {
			return r, usagef("%q is no time to look back: want one such as 10m or 24h", args[1])
		}
		return r, nil
	}
	for i, into := range []*uint64{&r.from, &r.to} {
		if *into, err = strconv.ParseUint(args[i], 10, 63); err != nil {
			return r, usagef("%q is no block number; usage: keeperctl %s", args[i], auditUsage)
		}
	}
	if r.from > r.to {
		return r, usagef("from block %d to block %d is no range: give the earlier one first", r.from, r.to)
	}
	return r, nil
}

// auditNode is what the command asks of the chain.
type auditNode interface {
	audit.Chain
	Finalized(ctx context.Context) (chain.BlockRef, error)
	Settled(block chain.Hash) evm.Settled
}

// auditRun is one invocation of the command.
type auditRun struct {
	cfg      Config
	out      printer
	progress io.Writer
}

// check demands to know at least one keeper.
func (d auditRun) check() error {
	if len(d.roster()) == 0 {
		return usagef(
			"no keeper is known: set keeper.signers to this keeper's signers, or tier.peers to the others'")
	}
	return nil
}

func (d auditRun) roster() tier.Roster { return d.cfg.Tier.Roster(d.cfg.Keeper.Signers) }

func (d auditRun) run(ctx context.Context, node auditNode, which auditRange) error {
	final, err := node.Finalized(ctx)
	if err != nil {
		return err
	}
	if which.last > 0 {
		since := final.TimeMs - min(final.TimeMs, uint64(which.last.Milliseconds()))
		if which.from, err = audit.FirstSince(ctx, node, final, since); err != nil {
			return err
		}
		which.to = final.Number
	}
	if which.to > final.Number {
		_, _ = fmt.Fprintf(d.progress, "keeperctl: blocks above %d are not final and may still be replaced\n",
			final.Number)
	}
	venue, err := gmx.Locate(ctx, node, d.cfg.Venue.DataStore)
	if err != nil {
		return err
	}
	row, end := d.table(), d.tableEnd
	if d.out.json {
		row, end = d.line, d.lineEnd
	}
	result, err := audit.Run(ctx, node, audit.Config{Venue: venue, Roster: d.roster()}, which.from, which.to, row)
	if err != nil {
		return err
	}
	return end(result)
}

// report reckons nothing for losers of a kind of which nobody lost.
func (d auditRun) report(r audit.Result) ledger.Report { return r.Report(d.cfg.Tier.Tiers, nil) }

// table writes the heads of the columns with the first row, so that nothing stands above a complaint.
func (d auditRun) table() func(ledger.Row) error {
	begun := false
	return func(r ledger.Row) error {
		if !begun {
			begun = true
			if err := ledger.WriteHeader(d.out); err != nil {
				return err
			}
		}
		return r.Write(d.out)
	}
}

func (d auditRun) tableEnd(r audit.Result) error {
	span := time.Duration(r.To.TimeMs-r.From.TimeMs) * time.Millisecond
	if err := sayf(d.out, "\nblocks %d to %d, %s of chain time\n\n", r.From.Number, r.To.Number, span); err != nil {
		return err
	}
	return d.report(r).Write(d.out)
}

func (d auditRun) line(r ledger.Row) error {
	return json.NewEncoder(d.out).Encode(map[string]ledger.Row{"job": r})
}

func (d auditRun) lineEnd(r audit.Result) error {
	return json.NewEncoder(d.out).Encode(map[string]any{"report": struct {
		From uint64 `json:"from"`
		To   uint64 `json:"to"`
		ledger.Report
	}{r.From.Number, r.To.Number, d.report(r)}})
}
