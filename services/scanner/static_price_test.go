package scanner

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// settableCode is a DataStore with one function more: two words are a key and its new value.
var settableCode = common.FromHex("6024361160135760043554600052602060" + "00f35b6024356004355500")

// exchanged is a provider's answer: min stands where the maximum belongs, and the other way round.
func exchanged(low, high byte) []byte {
	code := append(common.FromHex("60"), high, 0x60, 0x20, 0x52, 0x60, low, 0x60, 0x40, 0x52)
	return append(code, common.FromHex("60a06000f3")...)
}

// What managers fix a token's price to, with the events that v2.2c emits for it, is published with the static provider
// and no data, as of now, from the block of the event on, and feeds say nothing of that token meanwhile. Another
// provider ends it in its block. A start finds out by itself.
func TestStaticPrices(t *testing.T) {
	oracle, token, other := chain.Address{0x0a}, chain.Address{0x70}, chain.Address{0x71}
	static, feeds := chain.Address{0x57}, chain.Address{0xfe}
	d := withKeys(t)
	d.run(evmnode.Config{Manual: true, Alloc: types.GenesisAlloc{
		common.Address(store):        {Code: settableCode, Balance: new(big.Int)},
		common.Address(static):       {Code: exchanged(40, 50), Balance: new(big.Int)},
		common.Address(feeds):        {Code: exchanged(60, 60), Balance: new(big.Int)},
		common.Address(d.account(0)): {Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)},
	}})
	set := func(key, value chain.Hash) {
		d.send(0, store, append(append([]byte{1, 2, 3, 4}, key[:]...), value[:]...))
	}
	provider := perp.DataStoreKey("ORACLE_PROVIDER_FOR_TOKEN", oracle.Hash(), token.Hash())
	set(provider, feeds.Hash())
	d.mine(2)

	cfg := testConfig(d, "")
	node, err := evm.Dial(t.Context(), cfg.Keeper.ChainID, cfg.Chain, zerolog.Nop(),
		evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	given := make(chan []price.Report, 1000)
	begin := func() (s *staticPrices, end func()) {
		clock := newChainClock()
		s = newStaticPrices(nil, dataStore{store, node, func() uint64 { return 0 }}, node.Head, clock.now,
			zerolog.Nop())
		s.clock = func(now time.Time) uint64 { return uint64(now.UnixMilli()) }
		s.oracles = func() []chain.Address { return []chain.Address{oracle} }
		s.asked = func(context.Context, chain.BlockRef) ([]chain.Address, error) {
			return []chain.Address{token, other}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.run(ctx, func(_ context.Context, r []price.Report) error { given <- r; return nil })
		}()
		return s, func() { cancel(); <-done }
	}
	s, end := begin()
	event := func(name string, items perp.Fields) {
		l := gmxtest.Event(emitter, name, items)
		l.Block = d.Head().Number.Uint64()
		s.observe(wire.Log{Log: l})
	}
	set(perp.StaticPriceKey(token, false), chain.Hash{31: 40})
	set(perp.StaticPriceKey(token, true), chain.Hash{31: 50})
	set(provider, static.Hash())
	d.mine(2)
	event("SetOracleProviderForToken", perp.Fields{"oracle": oracle, "token": token, "provider": static})
	event("SetStaticPriceForToken", perp.Fields{"token": token, "provider": static, "priceMin": chain.U64(40),
		"priceMax": chain.U64(50)})
	for _, when := range []string{"after the event", "after a start"} {
		reports := <-given
		if len(reports) != 1 || reports[0].Token != token || reports[0].Provider != static ||
			len(reports[0].Data) > 0 ||
			reports[0].Min != chain.U64(40) || reports[0].Max != chain.U64(50) || !reports[0].OnChain() {
			t.Fatalf("%s: %+v", when, reports)
		}
		if !s.fixed(token) || s.fixed(other) {
			t.Errorf("%s: of feeds are taken: the token's %v, another's %v", when, !s.fixed(token), !s.fixed(other))
		}
		end()
		for len(given) > 0 {
			<-given
		}
		s, end = begin()
	}
	<-given
	set(provider, feeds.Hash())
	d.mine(2)
	event("SetOracleProviderForToken", perp.Fields{"oracle": oracle, "token": token, "provider": feeds})
	eventually(t, "feeds serve it again", func() error {
		if s.fixed(token) {
			return errNotYet
		}
		return nil
	})
	end()
}
