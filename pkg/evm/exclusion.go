package evm

import (
	"cmp"
	"slices"
	"time"
)

// Purpose is what an endpoint may be excluded for.
type Purpose string

// The purposes. What is no longer asked of an endpoint for Everything is asked for nothing at all.
const (
	Everything  Purpose = "everything"
	ForBodies   Purpose = "bodies"   // the transactions of blocks
	ForReceipts Purpose = "receipts" // eth_getBlockReceipts
	ForCalls    Purpose = "calls"    // eth_call
	ForHeads    Purpose = "heads"    // which block is the newest
	ForFinality Purpose = "finality" // which block is final
	ForNonces   Purpose = "nonces"   // how many transactions an account has sent
	ForPrices   Purpose = "prices"   // what gas is paid
	// AfterFork is whatever will be asked once a fork has come of which the node's software does not know.
	AfterFork Purpose = "after_fork"
)

// purposeOf is what a method belongs to. Blocks belong to everything, for their headers do: see ForBodies.
func purposeOf(method string) Purpose {
	switch method {
	case methodReceipts:
		return ForReceipts
	case methodCall, methodCode:
		return ForCalls
	case methodSubscribe:
		return ForHeads
	case methodNonce:
		return ForNonces
	case methodGasPrice, methodTips:
		return ForPrices
	default:
		return Everything
	}
}

// Reason is why an endpoint is excluded, as the label of evm_endpoint_excluded.
type Reason string

// The reasons. An endpoint that was caught (lied, contradicted, ahead, suspected) is asked only while every other one
// was caught as well, and one of another chain never. The others only come last: where nobody better is left they are
// asked.
const (
	ReasonWrongChain   Reason = "wrong_chain"  // it belongs to another chain
	ReasonLied         Reason = "lied"         // its answer contradicts what was asked, or itself
	ReasonContradicted Reason = "contradicted" // most others agree on something else than it says
	ReasonAhead        Reason = "ahead"        // it named a newest block that cannot be the chain's yet
	ReasonSuspected    Reason = "suspected"    // what it served was found wrong later; see Client.Suspect
	ReasonUndecided    Reason = "undecided"    // nobody can tell who is wrong, so that nobody is excluded
	ReasonStale        Reason = "stale"        // its head is too far behind
	ReasonSlow         Reason = "slow"         // its answers take too long
	ReasonUnreachable  Reason = "unreachable"  // several requests in a row had no answer
	ReasonRefusing     Reason = "refusing"     // all that it answers for seconds are errors of its own
	ReasonUnserved     Reason = "unserved"     // all that it answers for one purpose are errors of its own
	ReasonUnreadable   Reason = "unreadable"   // it shows transactions that cannot be read, or fit no receipts
	ReasonMissesFork   Reason = "misses_fork"  // its software does not know a fork that comes, or has come
)

// distrusts reports whether a reason puts an endpoint's honesty in question.
func (r Reason) distrusts() bool {
	return r == ReasonWrongChain || r == ReasonLied || r == ReasonContradicted || r == ReasonAhead ||
		r == ReasonSuspected
}

// passes reports whether the endpoint's vitals, or its software, alone decide when it is over.
func (r Reason) passes() bool {
	return r == ReasonStale || r == ReasonSlow || r == ReasonUnreachable || r == ReasonMissesFork
}

// Exclusion is what an endpoint is not used for, and why.
type Exclusion struct {
	Purpose Purpose
	Reason  Reason
	Detail  string // what was seen, without secrets
	Since   time.Time
	// Until is the end of the cool-down, after which the endpoint is probed and taken back; zero where it lasts until
	// the cause is gone.
	Until time.Time
}

// exclusions are those of one endpoint. They are pure: every time comes from outside.
type exclusions struct {
	list    []Exclusion
	strikes int // times it was caught
}

// add excludes for a while that doubles each time an endpoint is caught. It reports whether it was not excluded before.
func (x *exclusions) add(p Purpose, r Reason, detail string, now time.Time, cooldown time.Duration) bool {
	fresh := Exclusion{Purpose: p, Reason: r, Detail: detail, Since: now}
	at := slices.IndexFunc(x.list, func(e Exclusion) bool { return e.Purpose == p && e.Reason == r })
	if r.distrusts() && (at < 0 || now.After(x.list[at].Until)) {
		x.strikes++
	}
	if !r.passes() {
		fresh.Until = now.Add(cooldown << min(max(x.strikes-1, 0), longestDoubling))
	}
	if at < 0 {
		x.list = append(x.list, fresh)
		return true
	}
	fresh.Since = x.list[at].Since
	x.list[at] = fresh
	return false
}

// has reports whether there is one for a purpose and a reason.
func (x *exclusions) has(p Purpose, r Reason) bool {
	return slices.ContainsFunc(x.list, func(e Exclusion) bool { return e.Purpose == p && e.Reason == r })
}

// longestDoubling bounds the cool-down of an endpoint that is caught again and again: 64 times the first.
const longestDoubling = 6

// lift ends exclusions and returns them.
func (x *exclusions) lift(which func(Exclusion) bool) []Exclusion {
	var lifted []Exclusion
	x.list = slices.DeleteFunc(x.list, func(e Exclusion) bool {
		if !which(e) {
			return false
		}
		lifted = append(lifted, e)
		return true
	})
	return lifted
}

// served reports whether an exclusion has cooled down.
func (e Exclusion) served(now time.Time) bool { return !e.Reason.passes() && !now.Before(e.Until) }

// usability is how far an endpoint can be used.
type usability int

const (
	good       usability = iota
	last                 // when nobody good is left
	distrusted           // when everybody is
	foreign              // never
)

// usability returns how far the endpoint can be used for a purpose.
func (x *exclusions) usability(p Purpose) usability {
	worst := good
	for _, e := range x.list {
		if e.Purpose != p && e.Purpose != Everything {
			continue
		}
		switch {
		case e.Reason == ReasonWrongChain:
			worst = max(worst, foreign)
		case e.Reason.distrusts():
			worst = max(worst, distrusted)
		default:
			worst = max(worst, last)
		}
	}
	return worst
}

// sorted returns the exclusions in a stable order.
func (x *exclusions) sorted() []Exclusion {
	return slices.SortedFunc(slices.Values(x.list), func(a, b Exclusion) int {
		return cmp.Or(cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Reason, b.Reason))
	})
}
