package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Fault is something that goes wrong, from one time to another; all faults end at the end.
type Fault struct {
	What Ill `toml:"what"`
	// Keeper is the tier it befalls; 0 is all of them, or the chain.
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

// Ill is a kind of fault.
type Ill string

// The ills.
const (
	// the whole keeper is killed; it starts anew at the end, with what its databases and topics held
	Down        Ill = "down"
	RPCDown     Ill = "rpc_down"     // the chain cannot be reached: no heads, no logs, no answers
	KafkaDown   Ill = "kafka_down"   // nothing is published or read: no logs, no reports, no jobs, no results
	PgDown      Ill = "pg_down"      // no statement is answered
	PgLost      Ill = "pg_lost"      // statements are worked and their answers lost
	ClockOff    Ill = "clock_off"    // the machine's clock is off, by
	Behind      Ill = "behind"       // the endpoint is behind the chain, by: heads, logs and answers
	StateBehind Ill = "state_behind" // the derived state is behind the chain, by
	Swallow     Ill = "swallow"      // the endpoint accepts transactions and forwards none
	Late        Ill = "late"         // the endpoint forwards transactions late, by
	NoGas       Ill = "no_gas"       // the signer has no money
	NoRole      Ill = "no_role"      // the signer's role was revoked
	NoReports   Ill = "no_reports"   // no price report arrives
	Halt        Ill = "halt"         // no block is made
	Unfinal     Ill = "unfinal"      // no block becomes final
	Reorg       Ill = "reorg"        // the newest blocks, depth of them, are replaced once, at from
	ReorgDrop   Ill = "reorg_drop"   // the same, and the keepers' transactions in them are forgotten by the pool
)

// traits are what an ill has to be told.
type traits struct{ keeper, chain, by, depth bool }

var ills = map[Ill]traits{
	Down: {keeper: true}, RPCDown: {keeper: true}, KafkaDown: {keeper: true}, PgDown: {keeper: true},
	PgLost:   {keeper: true},
	ClockOff: {keeper: true, by: true}, Behind: {keeper: true, by: true}, StateBehind: {keeper: true, by: true},
	Swallow: {keeper: true}, Late: {keeper: true, by: true}, NoGas: {keeper: true}, NoRole: {keeper: true},
	NoReports: {keeper: true},
	Halt:      {chain: true}, Unfinal: {chain: true}, Reorg: {chain: true, depth: true},
	ReorgDrop: {chain: true, depth: true},
}

func (f Fault) validate(keepers int) error {
	t, known := ills[f.What]
	if !known {
		return fmt.Errorf("what: %q is none of %s", f.What, strings.Join(illNames(), ", "))
	}
	var problems []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	moment := f.What == Reorg || f.What == ReorgDrop
	add(f.Keeper < 0 || f.Keeper > keepers, "keeper: %d is not between 0 (all) and %d", f.Keeper, keepers)
	add(t.chain && f.Keeper != 0, "keeper: %s befalls the chain", f.What)
	add(t.by && f.By == 0, "by: %s needs to know by how much", f.What)
	add(f.What != ClockOff && f.By < 0, "by: %s is negative", time.Duration(f.By))
	add(t.depth && f.Depth < 1, "depth: %s needs to know how many blocks", f.What)
	add(!moment && f.To <= f.From, "to: the fault ends (%s) before it begins (%s)", time.Duration(f.To),
		time.Duration(f.From))
	add(f.Every != 0 && f.Every < f.To-f.From, "every: a period of %s is shorter than the fault",
		time.Duration(f.Every))
	add(f.Every != 0 && f.Until <= f.From, "until: a repeated fault needs an end")
	return errors.Join(problems...)
}

func illNames() (names []string) {
	for ill := range ills {
		names = append(names, string(ill))
	}
	slices.Sort(names)
	return names
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

// befalls lists the tiers that a fault befalls.
func (f Fault) befalls(keepers int) (tiers []int) {
	if ills[f.What].chain {
		return nil
	}
	for n := 1; n <= keepers; n++ {
		if f.Keeper == 0 || f.Keeper == n {
			tiers = append(tiers, n)
		}
	}
	return tiers
}
