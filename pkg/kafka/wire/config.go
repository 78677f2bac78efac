package wire

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// Config is the [keeper] section: what every process of one keeper must agree on. Topics are named after the chain, and
// rows and jobs live in the partition their key points to, so none of it changes but by a procedure
// (docs/runbooks/partitions.md).
type Config struct {
	ChainID       uint64 `toml:"chain_id" help:"EIP-155 id of the chain, part of every topic's name: 56 is BNB Smart Chain"`
	LogPartitions int    `toml:"log_partitions" help:"partitions of the log topic: how many statevm and planner can share the work; raised by writing it anew (docs/runbooks/partitions.md)"`
	JobPartitions int    `toml:"job_partitions" help:"partitions of the job topic: how many sender can share the signers; never lowered (docs/runbooks/partitions.md)"`
	// Signers and FrozenRole are what planner, sender and operators must not disagree about.
	Signers    []chain.Address `toml:"signers" help:"addresses of this keeper's own signers; the planner routes jobs to them by account"`
	FrozenRole bool            `toml:"frozen_role" help:"the signers hold the frozen-order role, so frozen orders and limit swaps are jobs too"`
	// LogRetention is how long the log topic keeps its records; 0 = for ever. A rebuild then needs a snapshot.
	LogRetention time.Duration `toml:"log_retention" help:"how long the log topic keeps its records; 0 = for ever; else a rebuild needs a snapshot (keeperctl snapshot)"`
}

// leastRetention is how long the log topic keeps its records at least.
const leastRetention = 24 * time.Hour

// DefaultConfig is BNB Smart Chain with four partitions.
func DefaultConfig() Config { return Config{ChainID: 56, LogPartitions: 4, JobPartitions: 4} }

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	const most = 256 // far above what a keeper can use, and a typing mistake beyond
	var problems []error
	if c.ChainID == 0 {
		problems = append(problems, errors.New("chain_id: is 0 (56 is BNB Smart Chain)"))
	}
	for key, n := range map[string]int{"log_partitions": c.LogPartitions, "job_partitions": c.JobPartitions} {
		if n < 1 || n > most {
			problems = append(problems, fmt.Errorf("%s: %d is not between 1 and %d", key, n, most))
		}
	}
	if c.LogRetention != 0 && c.LogRetention < leastRetention {
		problems = append(problems, fmt.Errorf("log_retention: %s is less than %s (a scanner that was away for longer "+
			"would find nothing to go on from; 0 = for ever)", c.LogRetention, leastRetention))
	}
	return errors.Join(problems...)
}

// Topics lists the topics of this keeper.
func (c Config) Topics() []Topic {
	topics := Topics(c.ChainID, c.LogPartitions, c.JobPartitions)
	for i := range topics {
		if topics[i].Name == LogTopic(c.ChainID) {
			topics[i].Retention = c.LogRetention
		}
	}
	return topics
}

// Named lists those of this keeper's topics that have one of the names.
func (c Config) Named(names ...string) []Topic {
	return slices.DeleteFunc(c.Topics(), func(t Topic) bool { return !slices.Contains(names, t.Name) })
}
