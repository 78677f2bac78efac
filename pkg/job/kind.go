package job

import (
	"slices"
	"strings"
)

// Kind is what has to be executed (TIER-13).
type Kind string

// The kinds of jobs. A request's is named as the kind of request.
const (
	Liquidation   Kind = "liquidation"
	Order         Kind = "order"
	Deposit       Kind = "deposit"
	Withdrawal    Kind = "withdrawal"
	Shift         Kind = "shift"
	GlvDeposit    Kind = "glvDeposit"
	GlvWithdrawal Kind = "glvWithdrawal"
	GlvShift      Kind = "glvShift"
	Adl           Kind = "adl"
	AdlState      Kind = "adlState" // brings the exchange's word on whether a side is to be deleveraged up to date
)

// Lane is a class of transactions that are paid for alike.
type Lane string

// The lanes, the most urgent first.
const (
	LiquidationLane Lane = "liquidation" // liquidations and deleveragings: the venue loses money while they wait
	OrderLane       Lane = "order"       // orders: a user waits
	MaintenanceLane Lane = "maintenance" // requests, and what only keeps the nonces going
	CleanupLane     Lane = "cleanup"     // cancels of what expired: nobody waits for them, and nobody pays for them
)

// Lanes lists every lane, the most urgent first.
func Lanes() []Lane { return []Lane{LiquidationLane, OrderLane, MaintenanceLane, CleanupLane} }

// KeyOf is what the key of a job names.
type KeyOf int

// What keys name.
const (
	PositionKey KeyOf = iota + 1
	OrderKey
	RequestKey
	MarketKey // a market, padded; with the side it is the whole need
)

// Descriptor is what every part of a keeper has to know of a kind of job.
type Descriptor struct {
	Kind Kind
	Lane Lane
	// Classes are those its jobs may have, the most urgent first.
	Classes []Class
	Key     KeyOf
}

// descriptors has one entry for each kind, in the order of [Kinds]. A request's own fields choose the call that
// executes it.
var descriptors = slices.Concat([]Descriptor{
	{Liquidation, LiquidationLane, []Class{ClassLiquidation}, PositionKey},
	{Order, OrderLane, []Class{ClassMarketOrder, ClassTriggerOrder}, OrderKey},
}, requestDescriptors(), []Descriptor{
	{Adl, LiquidationLane, []Class{ClassAdl}, PositionKey},
	{AdlState, LiquidationLane, []Class{ClassAdl}, MarketKey},
})

func requestDescriptors() (all []Descriptor) {
	for _, k := range []Kind{Deposit, Withdrawal, Shift, GlvDeposit, GlvWithdrawal, GlvShift} {
		all = append(all, Descriptor{k, MaintenanceLane, []Class{ClassRequest}, RequestKey})
	}
	return all
}

// Kinds lists every kind that executes something; [Cancels] the others.
func Kinds() (kinds []Kind) {
	for _, d := range descriptors {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// Cancels lists the kinds that cancel what expired.
func Cancels() (kinds []Kind) {
	for _, k := range Kinds() {
		if c, has := k.Cancel(); has {
			kinds = append(kinds, c)
		}
	}
	return kinds
}

const cancelPrefix = "cancel"

// Cancel is the kind of the jobs that cancel what jobs of this kind would have executed, once that has expired. It is
// named as the venue's function. There is none for what never expires, nor for GLV shifts, which the venue lets nobody
// cancel.
func (k Kind) Cancel() (cancel Kind, has bool) {
	d, known := Describe(k)
	if !known || d.Lane == CleanupLane || k == GlvShift || d.Key != OrderKey && d.Key != RequestKey {
		return "", false
	}
	return Kind(cancelPrefix + strings.ToUpper(string(k[:1])) + string(k[1:])), true
}

// Cancels is the inverse of [Kind.Cancel]: the kind of the jobs that would have executed what these cancel.
func (k Kind) Cancels() (of Kind, is bool) {
	name, is := strings.CutPrefix(string(k), cancelPrefix)
	if !is || name == "" {
		return "", false
	}
	of = Kind(strings.ToLower(name[:1]) + name[1:])
	cancel, has := of.Cancel()
	return of, has && cancel == k
}

// Describe returns what is to be known of a kind; false for one that this build does not know.
func Describe(k Kind) (d Descriptor, known bool) {
	for _, d := range descriptors {
		if d.Kind == k {
			return d, true
		}
	}
	if of, is := k.Cancels(); is {
		return Descriptor{k, CleanupLane, []Class{ClassCleanup}, of.Names()}, true
	}
	return Descriptor{}, false
}

// Names returns what the key of a kind's jobs names; 0 for a kind that this build does not know.
func (k Kind) Names() KeyOf {
	d, _ := Describe(k)
	return d.Key
}

// Lane is the lane of a kind's jobs. What only spends a number, and what this build does not know, is maintenance: it
// is seen through, and nothing new is sent for it.
func (k Kind) Lane() Lane {
	if d, known := Describe(k); known {
		return d.Lane
	}
	return MaintenanceLane
}
