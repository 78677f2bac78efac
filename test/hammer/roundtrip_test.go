package hammer

import (
	"context"
	"slices"
	"sync"
	"testing"
)

// From the moment at which a transaction is signed to its broadcast there is one round trip to the database. It is
// counted on the wire. Whatever else the process asks at such a moment, for its lease or for what is in flight, is
// counted too: what counts is the fewest.
func TestOneRoundTripBeforeBroadcast(t *testing.T) {
	s := newSite(t)
	c := &roundTrips{claims: &s.claims}
	s.database.note, s.rpc.note = c.asked, c.called
	sender := s.senders(1)[0]
	const rounds = 20
	said := s.planner(rounds)
	said.window, s.handed = 1, true // one after the other
	s.await("the jobs", func(ctx context.Context) string {
		if err := sender.Check(); err != nil {
			t.Fatal(err)
		}
		return said.publishJobs(ctx)
	})
	s.await("the ends", s.settled(true))
	sender.Stop()
	counts := c.seen()
	t.Logf("requests to the database from each claim to its broadcast: %v", counts)
	if len(counts) < rounds/2 || slices.Min(counts) != 1 {
		t.Errorf("%d claims were counted, the fewest requests were %d; want one, and most of %d claims", len(counts),
			slices.Min(append(counts, 99)), rounds)
	}
}

// roundTrips counts what is asked of a database between a claim and the next broadcast. The driver writes each request
// at once, however many messages of the protocol it takes, and reads the answer to all of them.
type roundTrips struct {
	claims *claims

	mu     sync.Mutex
	open   bool
	asks   int
	counts []int
}

func (c *roundTrips) asked(piece []byte) {
	claim := c.claims.in(piece)
	c.mu.Lock()
	defer c.mu.Unlock()
	if claim {
		c.open, c.asks = true, 0
	}
	if c.open {
		c.asks++
	}
}

func (c *roundTrips) called(piece []byte) {
	if !broadcasts(piece) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		c.counts = append(c.counts, c.asks)
	}
	c.open = false
}

func (c *roundTrips) seen() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.counts)
}
