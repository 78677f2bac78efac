package statevm

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// teleported is an event of an account's position that no build knows.
func teleported(account chain.Address) chain.Log {
	return gmxtest.Log(emitter, "PositionTeleported", nil, perp.Fields{"account": account})
}

// strange publishes a block with a log that its scanner did not know: it stands in every partition, under a key.
func (x *exchange) strange(l chain.Log, key chain.Hash) {
	ref := x.next()
	messages := x.happen(ref, 2)
	l.Block, l.BlockHash, l.Index, l.TxHash = ref.Number, ref.Hash, 1000, x.unique()
	x.publish(wire.BlockEnd{Block: ref}, append(messages, routed{key, wire.Log{Log: l}, true}))
}

// accountIn is an account of a partition.
func accountIn(partition, partitions int) chain.Address {
	for i := byte(1); ; i++ {
		if a := (chain.Address{0xac, i}); wire.Partition(a.Hash(), partitions) == partition {
			return a
		}
	}
}

// PIPE-12: an event of administration that no build knows is passed over in every partition, counted once, and named.
// One of an account's position stops the account's partition alone, which says so; named in venue.ignore_events it is
// passed over too, without a new build.
func TestUnknownEvents(t *testing.T) {
	const partitions, its = 4, 2
	s := newSite(t)
	x, topic, _ := s.play(t, 61, partitions)
	cfg := s.config(partitions, s.dbURL)
	i := s.launch(cfg)
	x.grow(3)
	x.strange(gmxtest.Log(emitter, "Some Workflow Executed", []chain.Hash{{1}, {11: 0, 12: 0xac}},
		perp.Fields{"report": perp.Bytes{1}}), chain.Hash{})
	x.grow(3)
	eventually(t, "all partitions go on", func() bool { return s.caughtUp(x) })
	if n := testutil.ToFloat64(i.metrics.events.WithLabelValues("unknown Some Workflow Executed")); n != 1 {
		t.Errorf("it is counted %v times", n)
	}

	account := accountIn(its, partitions)
	x.strange(teleported(account), account.Hash())
	for range 3 {
		x.grow(3)
	}
	eventually(t, "the account's partition says why it stopped", func() bool {
		return strings.Contains(i.reason("partitions"), "partition 2: halted") &&
			strings.Contains(i.reason("partitions"), "PositionTeleported")
	})
	for p := range partitions {
		_, last, err := s.client.Bounds(t.Context(), topic, p)
		if err != nil {
			t.Fatal(err)
		}
		stopped := func() bool { return s.next(t, p) < last }
		if p == its {
			if !stopped() {
				t.Error("the partition went on")
			}
			continue
		}
		eventually(t, "the others go on", func() bool { return !stopped() })
	}
	_ = i.stop()

	cfg.Venue.IgnoreEvents = []string{"PositionTeleported"}
	s.launch(cfg)
	eventually(t, "it is passed over", func() bool { return s.caughtUp(x) })
	x.agree(s.db, 1)
}

// A build that knows an event makes the same rows of a topic that was written by one that did not, as if it had always
// been known: each partition takes of what stands in all of them what is its own.
func TestEventsThatBecameKnown(t *testing.T) {
	s := newSite(t)
	x, topic, generation := s.play(t, 67, 4)
	for range 8 {
		ref := x.next()
		messages := x.happen(ref, 4)
		for i, m := range messages {
			if _, is := m.message.(wire.Log); is {
				messages[i].everywhere = true
			}
		}
		x.publish(wire.BlockEnd{Block: ref}, messages)
	}
	for p := range 4 {
		claimed := claim(t, s.db, generation, p, 4)
		f := s.newFollower(claimed, topic)
		f.own = func(key chain.Hash) bool { return wire.Partition(key, 4) == p }
		if err := s.drive(t, f, topic); err != nil {
			t.Fatal(err)
		}
	}
	x.agree(s.db, generation)
}
