package tier

import (
	"fmt"
	"time"
)

// Freshness is how new a keeper's head, state, evidence and prices are at the moment of a send (TIER-8).
type Freshness struct {
	HeadAge     time.Duration // since the newest head arrived, by the monotonic clock
	HeadMs      uint64        // the newest head's own time; 0 = none has come
	WatermarkMs uint64        // time of the block the state stands at; 0 = it has none
	// time of the block up to which the chain's evidence was read; the head's where a keeper is alone, 0 = it is still
	// being read
	EvidenceMs uint64
	Reading    string // what else is still being read since the start; empty = nothing
	// the newest time that is known from elsewhere than the head: from all reports together, or from a second
	// endpoint's head
	ReportMs uint64
	Unquoted string        // a token of the job that has no price report; empty = none
	PriceAge time.Duration // of the oldest report the job would use, against the head's time; 0 where it uses none
	// by how much the newest report the job would use is ahead of the head's time; 0 where none is
	PriceLead  time.Duration
	Reconciled bool   // whether the signer's nonces have been compared with the chain in this lease term
	Generation int    // of the state that is active now
	JobState   int    // generation of the state the job was found in
	Halted     string // why nobody may act on the state; empty = all is well
}

// String formats the four ages, in milliseconds, for a keeper that has all of them.
func (f Freshness) String() string {
	return fmt.Sprintf("the head is %d ms old, the state %d ms behind it, the evidence %d ms, the prices %d ms",
		f.HeadAge.Milliseconds(), behind(f.WatermarkMs, f.HeadMs).Milliseconds(),
		behind(f.EvidenceMs, f.HeadMs).Milliseconds(), f.PriceAge.Milliseconds())
}

// Bounds are the limits of the freshness gate.
type Bounds struct {
	Head, Skew, Watermark, Price time.Duration
}

// DefaultBounds are those of the design: 3 s each, and for reports a fraction of the venue's 300 s.
func DefaultBounds() Bounds {
	return Bounds{Head: 3 * time.Second, Skew: 3 * time.Second, Watermark: 3 * time.Second, Price: 10 * time.Second}
}

// Scope is what the gate is closed for.
type Scope int

// The scopes.
const (
	Open   Scope = iota // for nothing
	OneJob              // for this job
	EveryJob
)

// Closed returns the scope that the gate is closed for, and why. Reasons name limits and not measures, so that a
// lasting one stays the same text.
func (b Bounds) Closed(f Freshness) (Scope, string) {
	if why := b.everyJob(f); why != "" {
		return EveryJob, why
	}
	switch {
	case f.Unquoted != "":
		return OneJob, "there is no price report of " + f.Unquoted
	case f.PriceAge > b.Price:
		return OneJob, fmt.Sprintf("a price report is more than %s old", b.Price)
	case f.PriceLead > b.Skew:
		return OneJob, fmt.Sprintf("a price report is more than %s ahead of the newest block", b.Skew)
	case f.Generation != f.JobState:
		return OneJob, fmt.Sprintf("the job was found in generation %d of the state, and %d is active", f.JobState,
			f.Generation)
	}
	return Open, ""
}

func (b Bounds) everyJob(f Freshness) string {
	switch {
	case f.Halted != "":
		return "the state is halted: " + f.Halted
	case f.HeadMs == 0:
		return "no new block has come yet"
	case f.HeadAge > b.Head:
		return fmt.Sprintf("no new block for more than %s", b.Head)
	case f.WatermarkMs == 0:
		return "the state has no block yet"
	case behind(f.WatermarkMs, f.HeadMs) > b.Watermark:
		return fmt.Sprintf("the state is more than %s behind the chain", b.Watermark)
	case f.EvidenceMs == 0:
		return "the chain's evidence is still being read"
	case behind(f.EvidenceMs, f.HeadMs) > b.Watermark:
		return fmt.Sprintf("the chain's evidence is more than %s behind the chain", b.Watermark)
	case f.Reading != "":
		return f.Reading + " are still being read"
	case apart(f.HeadMs, f.ReportMs) > b.Skew:
		return fmt.Sprintf("the newest block and the newest price report are more than %s apart", b.Skew)
	case !f.Reconciled:
		return "the signer's nonces have not been compared with the chain yet"
	}
	return ""
}

// TimeOfReports is what the newest reports of all tokens show of the time (Unix ms), for Freshness.ReportMs; 0 for
// none. They show a head to be old where more tokens are ahead of it than with it: the report of one token, however far
// ahead, shows nothing but for the jobs that would use it. Tokens that fell behind show nothing while others are with
// the head.
func (b Bounds) TimeOfReports(headMs uint64, newest []uint64) (ms uint64) {
	var early, with, old uint64
	more := 0 // tokens ahead of the head, less those with it
	for _, at := range newest {
		switch {
		case behind(headMs, at) > b.Skew:
			early, more = max(early, at), more+1
		case behind(at, headMs) > b.Skew:
			old = max(old, at)
		default:
			with, more = max(with, at), more-1
		}
	}
	switch {
	case more > 0:
		return early
	case with > 0:
		return with
	}
	return old
}

func apart(a, b uint64) time.Duration { return max(behind(a, b), behind(b, a)) }

// behind is by how much a is older than b (Unix ms), or 0.
func behind(a, b uint64) time.Duration { return time.Duration(b-min(a, b)) * time.Millisecond }
