package scanner

import (
	"slices"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

// Two handlers, and a library that one of them links, which has what is new in v2.2c.
var (
	library, oldHandler, newHandler = chain.Address{0x11}, chain.Address{0x0b}, chain.Address{0x0c}
	handlerCodes                    = func() map[chain.Address][]byte {
		floor := perp.BaseKey("MIN_FUNDING_INCREASE_RATE_PER_SECOND")
		return map[chain.Address][]byte{
			library: append([]byte{0x7f}, floor[:]...), oldHandler: {0x60, 0x01},
			newHandler: slices.Concat([]byte{0x73}, library[:], []byte{0x50}),
		}
	}()
)

// spoken is a log of funding by a handler.
func spoken(handler chain.Address) chain.Log {
	l := gmxtest.Event(emitter, "Funding", perp.Fields{"market": marketOf(1)})
	word := handler.Hash()
	copy(l.Data, word[:])
	return l
}

// The version of each handler stands in every partition in the block in which it first speaks, and again in the block
// that takes its place after a reorg; the code of its libraries shows it.
func TestVersionsOfHandlersAreSaid(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	start(t, testConfig(d, k.Addr()), k)
	tr := newTruth(d)
	d.emit(0, spoken(oldHandler))
	d.mine(1)
	d.emit(0, spoken(newHandler), spoken(oldHandler))
	d.mine(1)
	first := d.Head().Number.Uint64()
	settle(t, k, tr)
	saysVersion(t, k, oldHandler, perp.V22b, first-1)
	saysVersion(t, k, newHandler, perp.V22c, first)
	saysVersion(t, k, chain.Address{}, perp.V22c, first) // of the newest that has spoken, where no other is known
	d.reorg(1, evmnode.Replay)
	d.mine(3)
	settle(t, k, tr)
	saysVersion(t, k, oldHandler, perp.V22b, first-1)
	if _, in := saidOf(t, k, perp.HandlerVersion(newHandler, 0).Key); in < first {
		t.Errorf("of a branch that is gone: block %d", in)
	}
}

func saysVersion(t *testing.T, k *kafka, handler chain.Address, want perp.Version, in uint64) {
	t.Helper()
	p := perp.HandlerVersion(handler, want)
	said, block := saidOf(t, k, p.Key)
	if said.Value != p.Value || block != in {
		t.Errorf("handler %s: %s is said in block %d (%s), want %s in block %d", handler, said.Value, block, said.Name,
			p.Value, in)
	}
}
