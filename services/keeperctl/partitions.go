package keeperctl

import (
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
)

// raisePartitions walks through a higher number of partitions, from what keeper.log_partitions and
// keeper.job_partitions are to be: it does what a running keeper can bear, and prints in one line what somebody has to
// do before it can go on. It may be run at any time, and goes on from how things stand.
func raisePartitions(ctx context.Context, s *session, _ []string) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	asking, cancel := s.within(ctx)
	defer cancel()
	count, err := countPartitions(asking, client, s.Keeper)
	if err != nil {
		return err
	}
	if err := raiseJobs(asking, client, s, count); err != nil {
		return err
	}
	topic := wire.LogTopic(s.Keeper.ChainID)
	if have := count[topic]; have != s.Keeper.LogPartitions {
		return fmt.Errorf("topic %s has %d partitions, and keeper.log_partitions is %d: rows stand where their keys "+
			"point, so it has to be written anew from the chain (stop scanner, statevm, planner and sender of this "+
			"region, delete the topic, run keeperctl prepare, start scanner and statevm, and run this again; "+
			"docs/runbooks/partitions.md)", topic, have, s.Keeper.LogPartitions)
	}
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	return s.rebuilder(db, client).raise(ctx, s.out)
}

// countPartitions asks how many partitions each topic has, and refuses to go on where one has more than are wanted.
func countPartitions(ctx context.Context, client *bus.Client, keeper wire.Config) (map[string]int, error) {
	count := map[string]int{}
	for _, t := range keeper.Topics() {
		have, err := client.Describe(ctx, t.Name)
		if bus.NoTopic(err) {
			return nil, fmt.Errorf("%w (run keeperctl prepare)", err)
		}
		if err != nil {
			return nil, err
		}
		if have > t.Partitions {
			return nil, fmt.Errorf("topic %s has %d partitions, and the configuration wants %d: a number is never "+
				"lowered (set keeper.log_partitions and keeper.job_partitions to what there is, or more)", t.Name, have,
				t.Partitions)
		}
		count[t.Name] = have
	}
	return count, nil
}

// raiseJobs raises the topics of jobs and results in place. A signer's jobs then go another way, and whoever reads that
// takes its lease as after any rebalance; what stands in the former partition is read as well.
func raiseJobs(ctx context.Context, client *bus.Client, s *session, count map[string]int) error {
	raised, chainID := 0, s.Keeper.ChainID
	for _, spec := range bus.Specs(s.Keeper.Named(wire.JobTopic(chainID), wire.ResultTopic(chainID))...) {
		if count[spec.Name] == spec.Partitions {
			continue
		}
		had, err := client.Raise(ctx, spec)
		if err != nil {
			return err
		}
		raised++
		if err := sayf(s.out, "topic %s: from %d to %d partitions\n", spec.Name, had, spec.Partitions); err != nil {
			return err
		}
	}
	if raised == 0 {
		return nil
	}
	return sayf(s.out, "start console, then sender, then planner, with keeper.job_partitions = %d\n",
		s.Keeper.JobPartitions)
}

// raise fills a generation from the new log topic, and prints what is next.
func (r Rebuilder) raise(ctx context.Context, out printer) error {
	all, err := r.DB.Generations(ctx)
	if err != nil {
		return err
	}
	active, err := generation.ActiveOf(all)
	if err != nil {
		return err
	}
	if !active.Reads(r.Keeper.LogPartitions) {
		return r.Run(ctx, out)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "the log topic and generation %d, which readers use, are of %d partitions\n", active.Number,
		r.Keeper.LogPartitions)
	for _, g := range all {
		if !g.Reads(r.Keeper.LogPartitions) {
			fmt.Fprintf(&text, "generation %d is of %d partitions and stands still (keeperctl generations drop %d)\n",
				g.Number, g.Partitions, g.Number)
		}
	}
	return sayf(out, "%s", text.String())
}
