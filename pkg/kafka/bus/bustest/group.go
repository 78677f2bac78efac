package bustest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/kafka/bus"
)

// watch records who holds which partition, over all members of a group.
type watch struct {
	mu     sync.Mutex
	holder map[int]string
	since  map[int]time.Time
	left   map[int]time.Time
	clash  []string
}

func newWatch() *watch {
	return &watch{holder: make(map[int]string), since: make(map[int]time.Time), left: make(map[int]time.Time)}
}

func (w *watch) enter(partition int, member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.holder[partition]; other != "" {
		w.clash = append(w.clash, fmt.Sprintf("%s got partition %d, which %s held", member, partition, other))
	}
	w.holder[partition], w.since[partition] = member, time.Now()
}

func (w *watch) leave(partition int, member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder[partition] == member {
		w.holder[partition] = ""
	}
	w.left[partition] = time.Now()
}

// held returns the partitions of a member, sorted.
func (w *watch) held(member string) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var partitions []int
	for p, m := range w.holder {
		if m == member {
			partitions = append(partitions, p)
		}
	}
	slices.Sort(partitions)
	return partitions
}

func (w *watch) clashes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.clash)
}

// member is one running member of a group.
type member struct {
	name    string
	network network
	leave   func()
	ended   sync.WaitGroup
	over    atomic.Bool // Join has returned, with err
	err     error
	assign  atomic.Pointer[[]int] // as told by OnAssign
}

// join starts a member. work runs inside each claim and may be nil.
func (s *site) join(w *watch, group bus.GroupConfig, name string,
	work func(ctx context.Context, claim bus.Claim) error) *member {
	m := &member{name: name}
	m.assign.Store(new([]int))
	group.OnAssign = func(partitions []int) { m.assign.Store(&partitions) }
	ctx, cancel := context.WithCancel(s.ctx)
	m.leave = func() { cancel(); m.ended.Wait() }
	s.Cleanup(m.leave)
	c := s.client(over(&m.network))
	m.ended.Go(func() {
		m.err = c.Join(ctx, group, func(ctx context.Context, claim bus.Claim) error {
			w.enter(claim.Partition, name)
			defer w.leave(claim.Partition, name)
			if work != nil {
				return work(ctx, claim)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		m.over.Store(true)
	})
	return m
}

// settled waits until each member holds as many partitions as wanted and its handler has been called with them.
func (s *site) settled(w *watch, want map[*member]int) {
	s.Helper()
	s.eventually(fmt.Sprintf("partitions settle as %v", sizes(want)), func() bool {
		for m, n := range want {
			if m.over.Load() && n > 0 {
				s.Fatalf("%s is no member any more: %v", m.name, m.err)
			}
			held := w.held(m.name)
			if len(held) != n || !slices.Equal(*m.assign.Load(), held) && n > 0 {
				return false
			}
		}
		return true
	})
}

func sizes(want map[*member]int) map[string]int {
	all := make(map[string]int)
	for m, n := range want {
		all[m.name] = n
	}
	return all
}

// Two members share, one leaves, the other has all. PIPE-7.
func partitionsAreShared(s *site) {
	group, w := bus.GroupConfig{ID: s.name(), Topic: s.topic(4)}, newWatch()
	a := s.join(w, group, "a", nil)
	s.settled(w, map[*member]int{a: 4})
	b := s.join(w, group, "b", nil)
	joined := time.Now()
	s.settled(w, map[*member]int{a: 2, b: 2})
	s.Logf("a second member had its share after %s", time.Since(joined))
	left := time.Now()
	a.leave()
	s.must(a.err)
	s.settled(w, map[*member]int{a: 0, b: 4})
	s.Logf("partitions of a member that left moved after %s", time.Since(left))
	if got := *a.assign.Load(); len(got) != 0 {
		s.Fatalf("the member that left was last told %v", got)
	}
	if clashes := w.clashes(); len(clashes) > 0 {
		s.Fatal(clashes)
	}
}

// A member dies or is cut off: its partitions move when its session ends, and its own handlers have ended before.
func killedMemberIsReplaced(s *site) {
	for how, kill := range map[string]func(*network){"died": (*network).sever, "was cut off": (*network).freeze} {
		group, w := bus.GroupConfig{ID: s.name(), Topic: s.topic(4)}, newWatch()
		a, b := s.join(w, group, "a", nil), s.join(w, group, "b", nil)
		s.settled(w, map[*member]int{a: 2, b: 2})
		gone := w.held("a")
		at := time.Now()
		kill(&a.network)
		s.settled(w, map[*member]int{a: 0, b: 4})
		for _, p := range gone {
			s.Logf("a member %s: partition %d was let go after %s, taken over after %s", how, p, w.left[p].Sub(at),
				w.since[p].Sub(at))
		}
		if clashes := w.clashes(); len(clashes) > 0 {
			s.Fatalf("a member %s: %v", how, clashes)
		}
		a.leave()
		b.leave()
	}
}

// Members come and go while records flow. Each claim reads on from where the work stands, as it would from a database;
// no record may be delivered to a claim that has been given up, or be worked on twice. PIPE-7.
func noStaleDeliveries(s *site) {
	const partitions, rounds = 4, 8
	topic := s.topic(partitions)
	group, w := bus.GroupConfig{ID: s.name(), Topic: topic}, newWatch()
	c := s.client()
	var done [partitions]atomic.Int64 // the database: the next offset of each partition
	work := func(ctx context.Context, claim bus.Claim) error {
		r := c.Reader(topic, claim.Partition, done[claim.Partition].Load())
		for {
			record, err := r.Next(ctx)
			if err != nil {
				return err
			}
			if !done[claim.Partition].CompareAndSwap(record.Offset, record.Offset+1) {
				return fmt.Errorf("partition %d: offset %d was delivered when the work stood at %d", claim.Partition,
					record.Offset, done[claim.Partition].Load())
			}
		}
	}
	stop, written := s.flow(c, topic, partitions)
	first := s.join(w, group, "first", work)
	s.settled(w, map[*member]int{first: partitions})
	for round := range rounds {
		next := s.join(w, group, fmt.Sprint("member ", round), work)
		s.settled(w, map[*member]int{first: partitions / 2, next: partitions / 2})
		next.leave()
		s.must(next.err)
		s.settled(w, map[*member]int{first: partitions})
	}
	stop()
	s.eventually("everything is worked on", func() bool {
		for p := range partitions {
			if done[p].Load() != written[p].Load() {
				return false
			}
		}
		return true
	})
	first.leave()
	s.must(first.err)
	if clashes := w.clashes(); len(clashes) > 0 {
		s.Fatal(clashes)
	}
	s.Logf("%d rebalances under load", 2*rounds)
}

// flow writes to every partition until stopped.
func (s *site) flow(c *bus.Client, topic string, partitions int) (stop func(), written []atomic.Int64) {
	written = make([]atomic.Int64, partitions)
	stopping := make(chan struct{})
	var writers sync.WaitGroup
	producer := c.Producer(topic)
	for p := range partitions {
		writers.Go(func() {
			ticker := time.NewTicker(2 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-stopping:
					return
				case <-ticker.C:
				}
				if _, err := producer.Produce(s.ctx, p, numbered(int(written[p].Load()), 1)); err != nil {
					s.Error(err)
					return
				}
				written[p].Add(1)
			}
		})
	}
	return func() { close(stopping); writers.Wait() }, written
}

// A handler's error ends the membership, as does a handler that just returns; the partitions go to others at once.
func handlerErrorEndsIt(s *site) {
	broken := errors.New("broken")
	for what, result := range map[string]error{"an error": broken, "an early return": nil} {
		group, w := bus.GroupConfig{ID: s.name(), Topic: s.topic(2)}, newWatch()
		fail := make(chan struct{})
		a := s.join(w, group, "a", func(ctx context.Context, claim bus.Claim) error {
			select {
			case <-fail:
				return result
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		b := s.join(w, group, "b", nil)
		s.settled(w, map[*member]int{a: 1, b: 1})
		close(fail)
		a.ended.Wait()
		if a.err == nil || result != nil && !errors.Is(a.err, result) {
			s.Fatalf("%s: Join returned %v", what, a.err)
		}
		s.settled(w, map[*member]int{b: 2})
		b.leave()
		s.must(b.err)
	}
}
