package keeperctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/replay"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/risk/due"
)

// replayCommand repeats decisions of the past (PIPE-9).
func replayCommand(cmd *cobra.Command) runner {
	at := cmd.Flags().Uint64("at", 0, "block whose state the decisions were made with")
	until := cmd.Flags().Uint64("until", 0, "repeat those of all blocks from --at to this one")
	key := cmd.Flags().String("position", "", "only what was said of this position, order or request; where nothing "+
		"was, what would have been")
	from := cmd.Flags().String("from", "", "repeat those of a bug report, from that file alone")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) > 0 || (*at == 0) == (*from == "") || *until > 0 && *until < *at {
			return usagef("usage: keeperctl replay --at BLOCK [--until BLOCK] [--position KEY] | --from FILE")
		}
		var wanted chain.Hash
		if *key != "" {
			var err error
			if wanted, err = chain.ParseHash(*key); err != nil {
				return usagef("--position: %q is no key: %w", *key, err)
			}
		}
		if *from != "" {
			return repeatReport(s.out, *from, wanted)
		}
		return s.replay(ctx, *at, max(*at, *until), wanted)
	}
}

func (s *session) replay(ctx context.Context, first, last uint64, key chain.Hash) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	published, err := replay.ReadJobs(ctx, client, s.Keeper, first, last, key)
	if err != nil {
		return notAsked(err)
	}
	past, reports, err := s.past(ctx, client, last)
	if err != nil {
		return err
	}
	decoder, rules := s.Venue.Decoder(), s.rules()
	if len(published) == 0 && !key.IsZero() {
		sentence, err := replay.Decide(past, decoder, reports, rules, first, key)
		if err != nil {
			return err
		}
		return s.out.either(map[string]any{"block": first, "key": key, "now": sentence},
			fmt.Sprintf("nothing was said of it from the state of block %d; repeated: %s\n", first, inLine(sentence)))
	}
	all, err := replay.Repeat(past, decoder, reports, rules, published)
	if err != nil {
		return err
	}
	return printRepeated(s.out, all, first == last)
}

// rules are those of this keeper's planner.
func (s *session) rules() due.Rules {
	return due.Rules{FireRatio: s.Liquidation.FireRatio.Factor, FrozenRole: s.Keeper.FrozenRole,
		AdlRole: s.Planner.AdlRole, CancelExpired: s.Planner.CancelExpired}
}

// printRepeated prints the decisions that differ, or all, and counts them. It fails where any differs.
func printRepeated(out printer, all []replay.Repeated, whole bool) error {
	rows := newTable("block", "job", "verdict", "where", "said", "repeated")
	same, differs, missing := 0, 0, 0
	for _, r := range all {
		verdict, now := "same", r.Now
		switch {
		case r.Missing != "":
			verdict, now, missing = "not repeated", r.Missing, missing+1
		case r.Same:
			same++
		default:
			verdict, differs = "DIFFERS", differs+1
		}
		if whole || verdict == "DIFFERS" {
			rows.add(r.Job.Evidence.Block.Number, r.Job.ID, verdict, r.Where, text.FirstLine(r.Job.Evidence.Reason),
				text.FirstLine(now))
		}
	}
	var err error
	if out.json {
		err = out.object(map[string]any{"same": same, "differs": differs, "notRepeated": missing,
			"decisions": rows.records()})
	} else {
		if len(rows.rows) > 0 {
			err = out.table(rows)
		}
		if err == nil {
			err = out.note(fmt.Sprintf("%d decisions: %d the same, %d differ, %d could not be repeated", len(all), same,
				differs, missing))
		}
	}
	if err != nil || differs == 0 {
		return err
	}
	return fmt.Errorf("%d of %d decisions differ", differs, len(all))
}
