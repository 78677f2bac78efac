package scanner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// A node that is away, at the start or later, is waited for. Who has never reached one does not claim the topic:
// another scanner may.
func TestNodeDownAndUp(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.trade(1)
	away := func() {
		if err := d.Inject(evmnode.Fault{DropConnection: true}); err != nil {
			t.Fatal(err)
		}
	}
	away()
	s := start(t, testConfig(d, k.Addr()), k)
	eventually(t, "the scanner says that the node is away", func() error {
		if err := s.status.following(); s.chain.Health() == nil || err == nil ||
			!strings.Contains(err.Error(), "eth_") {
			return errNotYet
		}
		return nil
	})
	if _, end, err := k.client.Bounds(t.Context(), wire.LogTopic(evmnode.DefaultChainID), 0); err != nil || end != 0 {
		t.Errorf("%d records are on the log topic already, %v", end, err)
	}
	d.ClearFaults()
	settle(t, k, tr)

	away()
	d.DropConnections()
	for range 4 {
		d.mine(1)
	}
	d.ClearFaults()
	settle(t, k, tr)
	eventually(t, "the scanner follows again",
		func() error { return errors.Join(s.chain.Health(), s.status.following()) })
}

// Brokers that refuse this user its topic, at the start or later, are waited for, and readiness says so.
func TestTopicAuthorizationFailed(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.trade(1)
	refuse := func() (lift func()) { return k.Deny(wire.LogTopic(evmnode.DefaultChainID)) }
	says := func(s *running) {
		eventually(t, "the scanner says what is refused", func() error {
			if err := s.status.following(); err == nil || !strings.Contains(err.Error(), "Topic Authorization Failed") {
				return errNotYet
			}
			return nil
		})
	}
	lift := refuse()
	s := start(t, testConfig(d, k.Addr()), k)
	says(s)
	lift()
	settle(t, k, tr)

	lift = refuse()
	d.mine(1)
	says(s)
	lift()
	d.trade(2)
	settle(t, k, tr)
	eventually(t, "the scanner follows again", s.status.following)
}

// Brokers that are away are waited for.
func TestKafkaDownAndUp(t *testing.T) {
	d := startDevnet(t)
	dir := t.TempDir()
	run := func(listen ...string) *broker.Broker {
		b, err := broker.Start(broker.Config{DataDir: dir, Listen: listen})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := run()
	address := b.Addr()
	k := &kafka{Broker: b, client: newBus(t, address)}
	k.ensure(t, partitions)
	tr := newTruth(d)
	s := start(t, testConfig(d, address), k)
	d.trade(1)
	settle(t, k, tr)

	b.Close()
	d.trade(2)
	eventually(t, "the scanner says that the broker is away", func() error {
		if k.client.Health() == nil {
			return errNotYet
		}
		return nil
	})
	for range 3 { // the chain is not called silent for it
		d.mine(1)
		last := float64(d.Head().Number.Uint64())
		eventually(t, "heads are noted all the same", func() error {
			if testutil.ToFloat64(s.metrics.headNumber) < last {
				return errNotYet
			}
			return nil
		})
	}
	b = run(address)
	t.Cleanup(b.Close)
	all := settle(t, k, tr)
	if len(all[0].epochs) != 1 {
		t.Errorf("an outage alone takes no new claim: epochs %v", all[0].epochs)
	}
	if err := s.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the scanner ended with %v", err)
	}
}

// An event that names an order and no account is routed by the account in the DataStore, unless memory knows it; also
// after a restart.
func TestOwnersAreLookedUp(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node, asked := startLiar(t, d), map[chain.Hash]*atomic.Int32{lostOrder: {}, order(101): {}}
	node.tell("eth_call", func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		for key, n := range asked {
			if bytes.Contains(params[0], []byte(strings.TrimPrefix(accountKey(key).Hex(), "0x"))) {
				n.Add(1)
			}
		}
		return nil
	})
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	d.trade(1)
	d.emit(0, orderResized(lostOrder))
	d.mine(2)
	settle(t, k, tr)
	if n := asked[lostOrder].Load(); n != 1 {
		t.Errorf("%d look-ups, want 1", n)
	}
	_ = s.stop()

	start(t, through(testConfig(d, k.Addr()), node), k)
	const waiting = 101 // created by the trade, and not executed
	owners[order(waiting)] = accountOf(waiting).Hash()
	t.Cleanup(func() { delete(owners, order(waiting)) })
	d.emit(0, orderResized(order(waiting))) // created before the restart: the tail of the topic tells whose it is
	d.mine(2)
	settle(t, k, tr)
	if n := asked[order(waiting)].Load(); n != 0 {
		t.Errorf("%d look-ups, want none", n)
	}
}

// What the scanner cannot understand or recover from ends it, with a line that says what it is.
func TestWhatEndsAScanner(t *testing.T) {
	foreign := func(d *devnet, k *kafka) {
		record, err := wire.Encode(nil, wire.BlockEnd{
			Block: chain.BlockRef{Number: 2, Hash: chain.Hash{2}, Parent: chain.Hash{1}}, Digest: wire.Digest(nil),
		}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		epoch, err := wire.Encode(nil, wire.Epoch{Number: 1, Owner: "somebody"}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		for p := range partitions {
			if _, err := k.client.Producer(wire.LogTopic(1337)).
				Produce(t.Context(), p, []bus.Record{epoch, record}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		prepare func(d *devnet, k *kafka)
		spoil   func(*Config)
		want    string
	}{
		"another chain":   {foreign, nil, "was written for another chain"},
		"a missing topic": {nil, func(c *Config) { c.Keeper.ChainID = 1337 + 1 }, "does not exist"},
		"too many partitions": {nil, func(c *Config) { c.Keeper.LogPartitions = 5 },
			"has 3 partitions and must have 5"},
	} {
		t.Run(name, func(t *testing.T) {
			d, k := startDevnet(t), startKafka(t)
			d.mine(3)
			if tt.prepare != nil {
				tt.prepare(d, k)
			}
			cfg := testConfig(d, k.Addr())
			if tt.spoil != nil {
				tt.spoil(&cfg)
			}
			s := start(t, testConfig(d, k.Addr()), k, func(s *Scanner) {
				s.cfg, s.topic = cfg, wire.LogTopic(cfg.Keeper.ChainID)
			})
			if err := s.wait(); err == nil || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("the scanner ended with: %v; want …%s…", err, tt.want)
			}
		})
	}
}
