package aggregator

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
)

// ledger is a chain whose aggregators say what the test says.
type ledger struct {
	t *testing.T

	mu     sync.Mutex
	height uint64
	rounds map[chain.Address][]byte
	gone   map[chain.Address]bool // contracts that revert
	stable map[chain.Hash]chain.Uint
	broken error
}

// dataStore is where the exchange keeps its words.
var dataStore = chain.Address{19: 0x99}

// blockMs is the time of a block: half a second each, a day after the rounds of the tests were written.
func blockMs(height uint64) uint64 { return 1_700_086_400_000 + 500*height }

func (l *ledger) Head(context.Context) (chain.BlockRef, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.height++
	return chain.BlockRef{Number: l.height, Hash: chain.Hash{31: byte(l.height)}, TimeMs: blockMs(l.height)}, l.broken
}

func (l *ledger) Call(_ context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == dataStore {
		word := l.stable[chain.Hash(data[4:])].Bytes32()
		return word[:], l.broken
	}
	if hex.EncodeToString(data) != "feaf968c" || block[31] != byte(l.height) {
		l.t.Errorf("called %x at block %s, the head is %d", data, block, l.height)
	}
	if l.gone[to] {
		return nil, errors.New("execution reverted")
	}
	return l.rounds[to], l.broken
}

// round is what latestRoundData returns.
func round(answer chain.Uint, updated uint64) (out []byte) {
	for _, v := range []chain.Uint{chain.U64(110), answer, chain.U64(updated), chain.U64(updated), chain.U64(110)} {
		w := v.Bytes32()
		out = append(out, w[:]...)
	}
	return out
}

func TestAggregator(t *testing.T) {
	bnbFeed, usdcFeed := chain.Address{19: 0x77}, chain.Address{19: 0x78}
	l := &ledger{t: t, rounds: map[chain.Address][]byte{
		bnbFeed: round(chain.U64(61_234_567_890), 1_700_000_000), usdcFeed: round(chain.U64(99_990_001), 1_700_000_001),
	}}
	table := source.Table{Provider: sourcetest.Provider, Tokens: []source.Token{
		{Address: sourcetest.Wbnb, Feed: bnbFeed.Hex(), Decimals: 18},
		{Address: sourcetest.Usdc, Feed: usdcFeed.Hex(), Decimals: 6},
	}}
	r := sourcetest.Run(t, Plugin, table, l)
	g := r.Next(t)
	if len(g.Reports) != 2 {
		t.Fatalf("%+v", g)
	}
	bnb, dollar := g.Reports[0], g.Reports[1]
	if bnb.Min.String() != "612345678900000" || bnb.Max != bnb.Min || bnb.RoundMs != 1_700_000_000_000 ||
		bnb.Data != nil || bnb.Provider != sourcetest.Provider {
		t.Errorf("%+v", bnb)
	}
	// the oracle gives the price the time of the block it is read in, however old the round is
	if bnb.TimeMs != blockMs(1) || dollar.TimeMs != bnb.TimeMs || dollar.RoundMs != 1_700_000_001_000 ||
		!bnb.OnChain() {
		t.Errorf("read in block 1, at %d: %+v, %+v", blockMs(1), bnb, dollar)
	}
	if dollar.Min.String() != "999900010000000000000000" || dollar.Token != sourcetest.Usdc {
		t.Errorf("%+v", dollar)
	}
	l.mu.Lock()
	l.rounds[bnbFeed], l.rounds[usdcFeed] = round(chain.UintFromBytes(append([]byte{0xff}, make([]byte, 31)...)), 5),
		nil
	l.mu.Unlock()
	for g = r.Next(t); len(g.Unreadable) == 0; g = r.Next(t) {
	}
	if len(g.Reports) > 0 || !strings.Contains(g.Unreadable[0].Error(), "negative") ||
		!strings.Contains(g.Unreadable[1].Error(), "0 bytes") {
		t.Errorf("%+v", g)
	}
	if _, err := decodeRound(round(chain.U64(1), 0), source.Token{}); err == nil {
		t.Error("a round that was never finished is read")
	}
	l.mu.Lock()
	l.broken = errors.New("the node is away")
	l.mu.Unlock()
	broken := sourcetest.Source(t, Plugin, table, l)
	if err := broken.Run(t.Context(), nil); !errors.Is(err, l.broken) {
		t.Errorf("a node that is away: %v", err)
	}
}

// A feed that was retired silences its own token and no other; a chain that answers nothing is a source that fails.
func TestOneFeedSilencesNoOther(t *testing.T) {
	bnbFeed, usdcFeed := chain.Address{19: 0x77}, chain.Address{19: 0x78}
	l := &ledger{t: t, gone: map[chain.Address]bool{bnbFeed: true}, rounds: map[chain.Address][]byte{
		usdcFeed: round(chain.U64(99_990_001), 1_700_000_001),
	}}
	table := source.Table{Provider: sourcetest.Provider, Tokens: []source.Token{
		{Address: sourcetest.Wbnb, Feed: bnbFeed.Hex(), Decimals: 18},
		{Address: sourcetest.Usdc, Feed: usdcFeed.Hex(), Decimals: 6},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), sourcetest.HangGuard)
	defer cancel()
	var g sourcetest.Given
	err := sourcetest.Source(t, Plugin, table, l).Run(ctx, func(reports []price.Report, unreadable []error) {
		g = sourcetest.Given{Reports: reports, Unreadable: unreadable}
		cancel()
	})
	if len(g.Reports) != 1 || g.Reports[0].Token != sourcetest.Usdc || len(g.Unreadable) != 1 ||
		!strings.Contains(g.Unreadable[0].Error(), sourcetest.Wbnb.String()) {
		t.Errorf("%+v, %v", g, err)
	}
	l.gone[usdcFeed] = true
	if err := sourcetest.Source(t, Plugin, table, l).Run(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "execution reverted") {
		t.Errorf("nothing answers: %v", err)
	}
}

// A token that the exchange takes to be stable is worth anything from there to what its feed says, however far that is.
// Sources are compared by what the feed says.
func TestStablePrice(t *testing.T) {
	bnbFeed, usdcFeed := chain.Address{19: 0x77}, chain.Address{19: 0x78}
	for answer, want := range map[uint64][2]string{
		94_000_000:  {"940000000000000000000000", "1000000000000000000000000"},
		100_000_000: {"1000000000000000000000000", "1000000000000000000000000"},
		102_000_000: {"1000000000000000000000000", "1020000000000000000000000"},
	} {
		l := &ledger{t: t, rounds: map[chain.Address][]byte{
			bnbFeed: round(chain.U64(61_234_567_890), 1_700_000_000), usdcFeed: round(chain.U64(answer), 1_700_000_001),
		}, stable: map[chain.Hash]chain.Uint{
			perp.DataStoreKey("STABLE_PRICE", sourcetest.Usdc.Hash()): chain.Pow10(24),
		}}
		one := Plugin.Source(source.Table{Provider: sourcetest.Provider, Interval: 10 * time.Millisecond,
			Tokens: []source.Token{{Address: sourcetest.Wbnb, Feed: bnbFeed.Hex(), Decimals: 18},
				{Address: sourcetest.Usdc, Feed: usdcFeed.Hex(), Decimals: 6}}},
			source.Env{Node: l, DataStore: dataStore, Timeout: sourcetest.HangGuard})
		ctx, cancel := context.WithTimeout(t.Context(), sourcetest.HangGuard)
		var g sourcetest.Given
		_ = one.Run(ctx, func(reports []price.Report, unreadable []error) {
			g = sourcetest.Given{Reports: reports, Unreadable: unreadable}
			cancel()
		})
		cancel()
		if len(g.Reports) != 2 || len(g.Unreadable) != 0 {
			t.Fatalf("%+v", g)
		}
		bnb, dollar := g.Reports[0], g.Reports[1]
		if bnb.Taken != (perp.Price{}) || dollar.Min != dollar.Max || dollar.Taken.Min.String() != want[0] ||
			dollar.Taken.Max.String() != want[1] {
			t.Errorf("at %d: %+v, %+v; want %v", answer, bnb, dollar, want)
		}
	}
}

// Whatever a contract answers, reading it neither panics nor makes up a price.
func FuzzDecodeRound(f *testing.F) {
	f.Add(round(chain.U64(61_234_567_890), 1_700_000_000), uint8(18), uint8(8))
	f.Add(round(chain.U64(1), 1), uint8(36), uint8(0))
	f.Fuzz(func(t *testing.T, output []byte, decimals, feedDecimals uint8) {
		r, err := decodeRound(output, source.Token{Address: sourcetest.Wbnb, Decimals: decimals,
			FeedDecimals: feedDecimals})
		if err == nil && (r.Max.Less(r.Min) || r.RoundMs == 0) {
			t.Fatalf("%+v", r)
		}
	})
}
