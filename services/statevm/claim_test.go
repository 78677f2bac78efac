package statevm

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// A topic that was made anew beneath a scanner begins with what that had on its way. No state begins there: nothing
// counts before the first claim, and nothing that stands under an epoch without one, however often the process starts.
func TestTopicThatBeginsWithoutAClaim(t *testing.T) {
	s := newSite(t)
	topic := s.create(t, s.client, s.chain.Add(1), 2)
	x := newExchange(t, 5, 2, toTopic(t, s.client.Producer(topic)))
	onItsWay := wire.BlockEnd{Block: chain.BlockRef{Number: 900, Hash: x.unique(), Parent: x.unique()},
		Digest: wire.Digest(nil)}
	stray := func() {
		for p := range x.partitions {
			x.write(p, []bus.Record{encodeRecord(t, chain.Hash{}, onItsWay, 7)})
		}
	}
	stray()
	var i *instance
	for range 2 {
		i = s.launch(s.config(2, s.dbURL))
		eventually(t, "both partitions say what they wait for", func() bool {
			return strings.Count(i.reason("partitions"), "no claim up to offset 1") == 2
		})
		if err := i.stop(); err != nil {
			t.Error(err)
		}
	}
	x.everywhere(wire.Epoch{Number: 1, Owner: "who does not know of the other"})
	x.grow(3)
	stray()
	x.grow(3)
	i = s.launch(s.config(2, s.dbURL))
	eventually(t, "it follows what was claimed", func() bool { return s.caughtUp(x) && i.reason("partitions") == "" })
	x.agree(s.db, 1)
	stray()
	x.succeed()
	x.grow(3)
	eventually(t, "it goes on", func() bool { return s.caughtUp(x) && i.reason("partitions") == "" })
	x.agree(s.db, 1)
}
