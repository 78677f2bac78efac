package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/operator/shadow"
	"perpkeeper/pkg/operator/text"
)

const (
	// shadowSettles is for how long after the first job that was observed nothing is judged: planner and sender have
	// just started.
	shadowSettles = 10 * time.Second
	// shadowLooksBack is by how much what is read is older than what is judged, so that a job found before the range
	// and executed in it is known.
	shadowLooksBack = 15 * time.Minute
)

// shadowReportCommand scores what a keeper without keys would have sent.
func shadowReportCommand(cmd *cobra.Command) runner {
	since := cmd.Flags().Duration("since", 24*time.Hour, "how far back, by the chain's clock")
	grace := cmd.Flags().Duration("grace", time.Minute, "how long real keepers may take for a job before it is "+
		"blamed on the shadow that nobody executes it")
	return func(ctx context.Context, s *session, _ []string) error {
		db, err := s.database(ctx)
		if err != nil {
			return err
		}
		progress, err := db.Progress(ctx)
		if err != nil {
			return err
		}
		begin := progress.Watermark.TimeMs - min(progress.Watermark.TimeMs, uint64(since.Milliseconds()))
		trials, fates, upTo, err := db.Shadow().Evidence(ctx, begin-min(begin, uint64(shadowLooksBack.Milliseconds())))
		if err != nil {
			return err
		}
		if len(trials) == 0 {
			return errors.New("no job was tried: is there a sender with sender.mode = shadow, and does its planner " +
				"find " +
				"any?")
		}
		begin = max(begin, trials[0].ObservedMs+uint64(shadowSettles.Milliseconds())) // they are in this order
		rules := shadow.Rules{BeginMs: begin, EndMs: upTo.TimeMs, Grace: uint64(grace.Milliseconds())}
		return printShadow(s.out, rules, shadow.Judge(rules, trials, fates))
	}
}

// printShadow prints a report. It fails where a job was wrongly due, or never found.
func printShadow(out printer, rules shadow.Rules, r shadow.Report) error {
	scores := newTable("kind", "before", "same block", "after", "never found", "wrongly due", "would have reverted",
		"overtaken", "open", "fees", "gas")
	for _, s := range append(r.Scores, r.Total()) {
		scores.add(s.Kind, s.Before, s.Same, s.After, s.Never, s.Wrong, s.WouldRevert, s.Overtaken, s.Open, s.Fees,
			s.Gas)
	}
	distances := newTable("blocks", "executions")
	for _, d := range slices.Sorted(maps.Keys(r.Distances)) {
		distances.add(fmt.Sprintf("%+d", d), r.Distances[d])
	}
	faults := newTable("fault", "kind", "job", "block", "reason")
	for _, f := range r.Faults {
		faults.add(f.What, f.Kind, f.Name, f.Block, text.FirstLine(f.Reason))
	}
	if err := printShadowTables(out, rules, scores, distances, faults); err != nil {
		return err
	}
	if len(r.Faults) > 0 {
		return fmt.Errorf("jobs that were wrongly due or never found: %d", len(r.Faults))
	}
	return nil
}

func printShadowTables(out printer, rules shadow.Rules, scores, distances, faults *table) error {
	if out.json {
		return out.object(struct {
			SinceMs   uint64   `json:"sinceMs"`
			UntilMs   uint64   `json:"untilMs"`
			Scores    []record `json:"scores"`    // the last is the total
			Distances []record `json:"distances"` // the shadow's lead in blocks; below 0 it was late
			Faults    []record `json:"faults"`
		}{rules.BeginMs, rules.EndMs, scores.records(), distances.records(), faults.records()})
	}
	at := func(ms uint64) string { return time.UnixMilli(int64(ms)).UTC().Format(time.DateTime) }
	err := out.note(fmt.Sprintf("from %s to %s UTC; fees and gas, in wei, are what real keepers had of the "+
		"executions in "+
		"\"before\" and \"same block\"", at(rules.BeginMs), at(rules.EndMs)))
	for _, t := range []*table{scores, distances, faults} {
		if len(t.rows) > 0 {
			err = errors.Join(err, out.table(t), out.note(""))
		}
	}
	return err
}
