package statevm

import (
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// difference is a word of the exchange's DataStore of which an audit has found another value than the fold had:
// something has written it without an event.
type difference struct {
	audited perp.ParameterAudited
	folded  chain.Hash
}

// reportDifferences logs which words differed, once they are right in the database. Every partition has the same copy
// of them, so only one of them logs.
func (f *follower) reportDifferences() {
	found := f.rows.differing()
	if f.partition.Offset().Partition != 0 {
		return
	}
	for _, d := range found {
		name, key := d.audited.Name, d.audited.Parameter.Key
		base, _, _ := strings.Cut(name, "(")
		if name == "" {
			base = "unnamed"
		}
		f.metrics.differed.WithLabelValues(base).Inc()
		f.log.Warn().Str("word", name).Stringer("key", key).Stringer("folded", d.folded).
			Stringer("chain", d.audited.Parameter.Value).
			Uint64("block", d.audited.Parameter.Stamp.Block).Msg("a word of the exchange's DataStore is not what " +
			"its events have said; it was put right")
	}
}
