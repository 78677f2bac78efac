package simulator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/setting/check"
)

// Fault is something that goes wrong, from one time to another; all faults end at the end.
type Fault struct {
	What FaultKind `toml:"what"`
	// Keeper is the tier it concerns; 0 is all of them, or the chain.
	Keeper int  `toml:"keeper"`
	From   Span `toml:"from"`
	To     Span `toml:"to"`
	// Every repeats the fault with this period, from its first From to Until.
	Every Span `toml:"every"`
	Until Span `toml:"until"`
	// By is how far a clock is off, or how much late or behind something is.
	By Span `toml:"by"`
	// Depth is how many blocks a reorg takes away.
	Depth int `toml:"depth"`
}

// FaultKind is a kind of fault.
type FaultKind string

// The kinds of faults.
const (
	// Down: the whole keeper is killed; it starts anew at the end, with what its databases and topics held.
	Down        FaultKind = "down"
	RPCDown     FaultKind = "rpc_down"     // the chain cannot be reached: no heads, no logs, no answers
	ClockOff    FaultKind = "clock_off"    // the machine's clock is off, by
	Behind      FaultKind = "behind"       // the endpoint is behind the chain, by: heads, logs and answers
	StateBehind FaultKind = "state_behind" // the derived state is behind the chain, by
	Swallow     FaultKind = "swallow"      // the endpoint accepts transactions and forwards none
	Late        FaultKind = "late"         // the endpoint forwards transactions late, by
	NoGas       FaultKind = "no_gas"       // the signer has no money
	NoRole      FaultKind = "no_role"      // the signer's role was revoked
	Halt        FaultKind = "halt"         // no block is made
	Slow        FaultKind = "slow"         // each block comes late, by, as in the turn of a dead validator
	Unfinal     FaultKind = "unfinal"      // no block becomes final
	Reorg       FaultKind = "reorg"        // the newest blocks, depth of them, are replaced once, at from
	ReorgDrop   FaultKind = "reorg_drop"   // the same, and the keepers' transactions in them are forgotten by the pool
)

// faultParameters are the settings that a kind of fault needs.
type faultParameters struct{ keeper, chain, by, depth bool }

var faultKinds = map[FaultKind]faultParameters{
	Down: {keeper: true}, RPCDown: {keeper: true},
	ClockOff: {keeper: true, by: true}, Behind: {keeper: true, by: true}, StateBehind: {keeper: true, by: true},
	Swallow: {keeper: true}, Late: {keeper: true, by: true}, NoGas: {keeper: true}, NoRole: {keeper: true},
	Halt: {chain: true}, Slow: {chain: true, by: true}, Unfinal: {chain: true}, Reorg: {chain: true, depth: true},
	ReorgDrop: {chain: true, depth: true},
}

func (f Fault) validate(keepers int) error {
	t, known := faultKinds[f.What]
	if !known {
		return fmt.Errorf("what: %q is none of %s", f.What, names(faultKinds))
	}
	var problems []error
	add := func(bad bool, format string, args ...any) {
		problems = append(problems, check.Refuse(bad, format, args...))
	}
	moment := f.What == Reorg || f.What == ReorgDrop
	add(f.Keeper < 0 || f.Keeper > keepers, "keeper: %d is not between 0 (all) and %d", f.Keeper, keepers)
	add(t.chain && f.Keeper != 0, "keeper: %s concerns the chain", f.What)
	add(t.by && f.By == 0, "by: %s needs a duration", f.What)
	add(f.What != ClockOff && f.By < 0, "by: %s is negative", time.Duration(f.By))
	add(t.depth && f.Depth < 1, "depth: %s needs a number of blocks", f.What)
	add(!moment && f.To <= f.From, "to: the fault ends (%s) before it begins (%s)", time.Duration(f.To),
		time.Duration(f.From))
	add(f.Every != 0 && f.Every < f.To-f.From, "every: a period of %s is shorter than the fault",
		time.Duration(f.Every))
	add(f.Every != 0 && f.Until <= f.From, "until: a repeated fault needs an end")
	return errors.Join(problems...)
}

// names lists the keys of a map for people.
func names[K ~string, V any](of map[K]V) string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		names = append(names, string(key))
	}
	return strings.Join(names, ", ")
}

// times are when the fault begins and ends, again and again where it repeats.
func (f Fault) times() (spans [][2]time.Duration) {
	from, to := time.Duration(f.From), time.Duration(f.To)
	spans = append(spans, [2]time.Duration{from, to})
	for every := time.Duration(f.Every); every != 0 && from+every < time.Duration(f.Until); {
		from, to = from+every, to+every
		spans = append(spans, [2]time.Duration{from, to})
	}
	return spans
}

// tiers lists the tiers that a fault concerns.
func (f Fault) tiers(keepers int) (tiers []int) {
	if faultKinds[f.What].chain {
		return nil
	}
	for n := 1; n <= keepers; n++ {
		if f.Keeper == 0 || f.Keeper == n {
			tiers = append(tiers, n)
		}
	}
	return tiers
}
