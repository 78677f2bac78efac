package scanner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/test/rig"
)

// labelOf names a batch by what closes it: "EPOCH/0", "block 5/2", "REORG/1".
func labelOf(partition int, records []wire.Record) string {
	m, meta, err := wire.Decode(records[len(records)-1])
	if err != nil {
		panic(err)
	}
	switch m := m.(type) {
	case wire.BlockEnd:
		return fmt.Sprintf("block %d/%d", m.Block.Number, partition)
	case wire.Part:
		return fmt.Sprintf("part %d/%d", m.Block.Number, partition)
	case wire.Reorg:
		if m.Accepted {
			return fmt.Sprintf("ACCEPTED/%d", partition)
		}
	case wire.RangeEnd:
		return fmt.Sprintf("range %d/%d", m.Last.Number, partition)
	}
	return fmt.Sprintf("%s/%d", meta.Kind, partition)
}

// errKilled is what the tripwire kills with.
var errKilled = errors.New("killed")

// tripwire stops a scanner for good at a batch, before or after it is written: as a kill would. Batches of other
// partitions that are under way at that moment may get through or not.
type tripwire struct {
	label string
	nth   int // in place of a label: at the n-th batch, whatever it is
	after bool
	next  func(topic string) producer
	dead  atomic.Bool
	count atomic.Int64
}

func (w *tripwire) hit(partition int, records []wire.Record) bool {
	if w.nth > 0 {
		return w.count.Add(1) == int64(w.nth)
	}
	return labelOf(partition, records) == w.label
}

// on is a scanner's option.
func (w *tripwire) on(s *Scanner) {
	w.next = s.newProducer
	s.newProducer = func(topic string) producer { return tripped{w, w.next(topic)} }
}

type tripped struct {
	*tripwire
	producer
}

func (p tripped) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	hit := p.hit(partition, records)
	if p.dead.Load() || hit && !p.after {
		p.dead.Store(true)
		return 0, errKilled
	}
	base, err := p.producer.Produce(ctx, partition, records)
	if hit {
		p.dead.Store(true)
		return 0, errKilled
	}
	return base, err
}

// meanwhile is what happens while no scanner runs.
var meanwhile = []struct {
	what string
	do   func(*devnet)
}{
	{"nothing", func(*devnet) {}},
	{"blocks", func(d *devnet) { d.trade(40) }},
	{"a reorg", func(d *devnet) { d.reorg(2, evmnode.Replay) }},
	{"a shorter chain's way", func(d *devnet) { d.reorg(2, evmnode.Drop); d.mine(1) }},
}

// Killed anywhere, the next scanner goes on without a gap and without anything twice, whatever the chain did meanwhile
// (PIPE-2).
func TestKilledAnywhere(t *testing.T) {
	labels := []string{"REORG", "after the reorg"}
	for p := range partitions {
		for _, kind := range []string{"EPOCH", "block 1", "block 3", "FINALIZED"} {
			labels = append(labels, fmt.Sprintf("%s/%d", kind, p))
		}
	}
	turn := 0
	for _, label := range labels {
		for _, after := range []bool{false, true} {
			between := meanwhile[turn%len(meanwhile)]
			turn++
			t.Run(fmt.Sprintf("%s %s, then %s", map[bool]string{false: "before", true: "after"}[after], label,
				between.what), func(t *testing.T) {
				t.Parallel()
				killAt(t, label, after, between.do)
			})
		}
	}
}

func killAt(t *testing.T, label string, after bool, between func(*devnet)) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.trade(1)
	cfg := testConfig(d, k.Addr())
	wire := &tripwire{label: label, after: after}
	switch label { // these happen once the chain is forked under a scanner that has published it
	case "REORG":
		wire.label = "REORG/1"
	case "after the reorg":
		wire.label = "block 4/1"
	}
	if strings.Contains(label, "REORG") || strings.Contains(label, "reorg") {
		first := start(t, cfg, k)
		settle(t, k, tr)
		if err := first.stop(); !errors.Is(err, context.Canceled) {
			t.Fatalf("the first scanner ended with %v", err)
		}
		d.reorg(2, evmnode.Replay)
	}
	if err := start(t, cfg, k, wire.on).wait(); !errors.Is(err, errKilled) {
		t.Fatalf("the scanner ended with %v", err)
	}
	between(d)
	start(t, cfg, k)
	settle(t, k, tr)
	d.trade(50)
	for p, a := range settle(t, k, tr) {
		if a.stale > 0 {
			t.Errorf("partition %d holds %d stale records", p, a.stale)
		}
	}
}

// A batch whose request or reply is lost together with the connection may or may not be on the topic. Either way it
// comes once.
func TestUnknownOutcomes(t *testing.T) {
	for _, lost := range []string{"request", "reply"} {
		for _, label := range []string{"EPOCH/0", "EPOCH/2", "block 3/0", "block 3/1", "FINALIZED/1"} {
			t.Run("the "+lost+" of "+label, func(t *testing.T) {
				d, k := startDevnet(t), startKafka(t)
				tr := newTruth(d)
				d.trade(1)
				cut := &cutter{label: label, reply: lost == "reply"}
				cut.client = newCutBus(t, k.Addr(), cut)
				s := start(t, testConfig(d, k.Addr()), k, cut.on)
				if label != "FINALIZED/1" { // which is written where no block follows
					d.trade(2)
				}
				eventually(t, "the topic is claimed anew", func() error {
					epochs := settle(t, k, tr)[0].epochs
					neverWritten := label == "EPOCH/0" && !cut.reply // then its number is free
					if !cut.done.Load() || len(epochs) < 2 && !neverWritten {
						return fmt.Errorf("%w: %v", errNotYet, epochs)
					}
					return nil
				})
				if err := s.stop(); !errors.Is(err, context.Canceled) {
					t.Errorf("the scanner ended with %v", err)
				}
			})
		}
	}
}

// cutter loses the request or the reply of one batch, and lets the producer give up in the middle of it.
type cutter struct {
	label  string
	reply  bool
	client *bus.Client
	done   atomic.Bool
	alone  sync.RWMutex // held alone by the batch that is cut

	mu   sync.Mutex
	quit context.CancelFunc // set until the batch's request is on its way
}

func (c *cutter) on(s *Scanner) {
	s.newProducer = func(topic string) producer { return &cutProducer{c, c.client.Producer(topic)} }
}

type cutProducer struct {
	*cutter
	producer
}

func (p *cutProducer) Produce(ctx context.Context, partition int, records []wire.Record) (int64, error) {
	if labelOf(partition, records) != p.label || p.done.Swap(true) {
		p.alone.RLock()
		defer p.alone.RUnlock()
		return p.producer.Produce(ctx, partition, records)
	}
	p.alone.Lock() // what is cut next is this batch's and no other's
	defer p.alone.Unlock()
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	p.mu.Lock()
	p.quit = quit
	p.mu.Unlock()
	base, err := p.producer.Produce(ctx, partition, records)
	if !bus.OutcomeUnknown(err) {
		return 0, fmt.Errorf("the cut has left nothing uncertain: offset %d, %w", base, err)
	}
	return base, err
}

// cutConn is a connection of the client that serves the producers alone.
type cutConn struct {
	net.Conn
	cut  *cutter
	dead context.CancelFunc // not nil once this connection's next reply is to be lost
}

// Write loses a batch's request, or marks the connection its reply will come over.
func (c *cutConn) Write(b []byte) (int, error) {
	const produce = 0 // the key of the request, behind its size
	if len(b) < 6 || binary.BigEndian.Uint16(b[4:]) != produce {
		return c.Conn.Write(b)
	}
	c.cut.mu.Lock()
	quit := c.cut.quit
	c.cut.quit = nil
	c.cut.mu.Unlock()
	if quit != nil && !c.cut.reply {
		quit()
		_ = c.Close()
		return 0, io.ErrClosedPipe
	}
	n, err := c.Conn.Write(b)
	c.dead = quit
	return n, err
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.dead != nil {
		c.dead()
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

func newCutBus(t *testing.T, address string, cut *cutter) *bus.Client {
	t.Helper()
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{address}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &cutConn{Conn: conn, cut: cut}, err
	}
	return rig.Kafka(t, cfg)
}
