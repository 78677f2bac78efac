package tier

import (
	"fmt"
	"time"
)

// Freshness is what a keeper knows of its own knowledge at the moment of a send (TIER-8).
type Freshness struct {
	HeadAge     time.Duration // since the newest head arrived, by the monotonic clock
	HeadMs      uint64        // the newest head's own time
	WatermarkMs uint64        // time of the block the state stands at
	ReportMs    uint64        // the newest price report's own time; or a second endpoint's head where no price is needed
	PriceAge    time.Duration // of the oldest report the job would use, against the head's time; 0 where it uses none
	Reconciled  bool          // whether the signer's nonces have been compared with the chain since this process owns it
	Generation  int           // of the state that is active now
	JobState    int           // generation of the state the job was found in
	Halted      string        // why nobody may act on the state; empty = all is well
}

// Bounds are the limits of the freshness gate.
type Bounds struct {
	Head, Skew, Watermark, Price time.Duration
}

// DefaultBounds are those of the design: 3 s each, and the venue's 300 s for reports less what it takes to land.
func DefaultBounds() Bounds {
	return Bounds{Head: 3 * time.Second, Skew: 3 * time.Second, Watermark: 3 * time.Second, Price: 60 * time.Second}
}

// Closed returns why nothing may be sent, or nothing.
func (b Bounds) Closed(f Freshness) string {
	switch {
	case f.Halted != "":
		return "halted: " + f.Halted
	case f.HeadMs == 0:
		return "no head of the chain has come yet"
	case f.HeadAge > b.Head:
		return fmt.Sprintf("no new head for %s", f.HeadAge.Round(100*time.Millisecond))
	case apart(f.HeadMs, f.ReportMs) > b.Skew:
		return fmt.Sprintf("head and newest price report are %s apart", apart(f.HeadMs, f.ReportMs))
	case behind(f.WatermarkMs, f.HeadMs) > b.Watermark:
		return fmt.Sprintf("the state is %s behind the head", behind(f.WatermarkMs, f.HeadMs))
	case f.PriceAge > b.Price:
		return fmt.Sprintf("a price report is %s old", f.PriceAge)
	case !f.Reconciled:
		return "the signer's nonces have not been compared with the chain yet"
	case f.Generation != f.JobState:
		return fmt.Sprintf("the job was found in generation %d of the state, now %d is active", f.JobState, f.Generation)
	}
	return ""
}

func apart(a, b uint64) time.Duration { return max(behind(a, b), behind(b, a)) }

// behind is by how much a is older than b (Unix ms), or 0.
func behind(a, b uint64) time.Duration { return time.Duration(b-min(a, b)) * time.Millisecond }
