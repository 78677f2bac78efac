package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier/execution/ledger"
)

var (
	emitter, handler = chain.Address{0xee}, chain.Address{0x0a}
	master, backup   = chain.Address{1}, chain.Address{2}
	trader           = chain.Address{9}
)

// written is a chain that a test writes, and counts what is asked of it at the same time.
type written struct {
	blocks   []evm.Block
	receipts map[chain.Hash][]evm.Receipt
	calldata map[chain.Hash][]byte
	missing  map[uint64]error // why a block is not to be had
	unproven error

	mu             sync.Mutex
	asking, atOnce int
	wait           func(number uint64)
}

func write(times ...uint64) *written {
	w := &written{receipts: map[chain.Hash][]evm.Receipt{}, calldata: map[chain.Hash][]byte{},
		missing: map[uint64]error{}}
	var parent chain.Hash
	for n, ms := range times {
		hash := chain.Keccak256(binary.BigEndian.AppendUint64(nil, uint64(n)))
		b := evm.Block{Header: evm.Header{BlockRef: chain.BlockRef{Number: uint64(n), Hash: hash, Parent: parent,
			TimeMs: ms}}}
		w.blocks, parent = append(w.blocks, b), hash
	}
	return w
}

// evenly is n times half a second apart.
func evenly(n int) (times []uint64) {
	for i := range n {
		times = append(times, 1_000_000+uint64(i)*500)
	}
	return times
}

// add puts a transaction at the end of a block.
func (w *written) add(number uint64, tx chain.Tx, calldata []byte, logs ...chain.Log) chain.Hash {
	b := &w.blocks[number]
	tx.Block, tx.BlockHash, tx.Index = number, b.Hash, uint32(len(b.Txs))
	tx.Hash = chain.Keccak256(b.Hash[:], []byte{byte(tx.Index)})
	for i := range logs {
		logs[i].Block, logs[i].BlockHash, logs[i].TxHash, logs[i].TxIndex, logs[i].Index = number, b.Hash, tx.Hash,
			tx.Index, uint32(100*int(tx.Index)+i)
	}
	for i := range b.Bloom {
		if len(logs) > 0 {
			b.Bloom[i] = 0xff
		}
	}
	bare := tx
	bare.OK, bare.GasUsed, bare.GasPrice = false, 0, 0
	b.Txs = append(b.Txs, bare)
	w.receipts[b.Hash] = append(w.receipts[b.Hash], evm.Receipt{Tx: tx, Logs: logs})
	w.calldata[tx.Hash] = calldata
	return tx.Hash
}

func (w *written) BlockAt(ctx context.Context, number uint64) (evm.Block, error) {
	w.mu.Lock()
	w.asking++
	w.atOnce = max(w.atOnce, w.asking)
	w.mu.Unlock()
	if w.wait != nil {
		w.wait(number)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking--
	if err := w.missing[number]; err != nil || number >= uint64(len(w.blocks)) {
		return evm.Block{}, errors.Join(err, ctx.Err())
	}
	return w.blocks[number], ctx.Err()
}

func (w *written) Receipts(_ context.Context, b evm.Block) ([]evm.Receipt, error) {
	return w.receipts[b.Hash], w.unproven
}

func (w *written) Verified(_ evm.Block, r evm.Receipt) (chain.Tx, error) { return r.Tx, nil }

func (w *written) Calldata(_ context.Context, tx chain.Tx) ([]byte, error) {
	return w.calldata[tx.Hash], nil
}

var venue = gmx.VenueOf(emitter, map[job.Kind]chain.Address{job.Order: handler})

func config() Config {
	return Config{Venue: venue, Roster: map[chain.Address]int{master: 1, backup: 2}}
}

func gather(t *testing.T, node Chain, c Config, from, to uint64) ([]ledger.Row, Result) {
	t.Helper()
	var rows []ledger.Row
	result, err := Run(t.Context(), node, c, from, to,
		func(r ledger.Row) error { rows = append(rows, r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return rows, result
}

var order = chain.Hash{7}

// raced is a chain on which a trader asks in block 5 and two keepers execute, in blocks 7 and 8.
func raced() *written {
	w := write(evenly(40)...)
	w.add(5, chain.Tx{From: trader, OK: true}, nil, gmxtest.Event(emitter, "OrderCreated", perp.Fields{
		"key": order, "account": trader, "orderType": chain.U64(uint64(perp.MarketIncrease)),
	}))
	_, call, err := venue.Call(job.Job{Kind: job.Order, Key: order}, gmx.SetPrices{})
	if err != nil {
		panic(err)
	}
	w.add(7, chain.Tx{From: master, To: handler, OK: true, GasUsed: 1000, GasPrice: 5}, call,
		gmxtest.Event(emitter, "OraclePriceUpdate", perp.Fields{"timestamp": chain.U64(1002)}),
		gmxtest.Event(emitter, "OrderExecuted", perp.Fields{"key": order, "account": trader}))
	w.add(8, chain.Tx{From: backup, To: handler, GasUsed: 400, GasPrice: 5}, call)
	w.add(9, chain.Tx{From: chain.Address{8}, To: handler, GasUsed: 400, GasPrice: 5}, call) // a keeper nobody named
	w.add(9, chain.Tx{From: chain.Address{8}, To: trader, OK: true}, nil)                    // a payment of somebody's
	return w
}

// TIER-17: the chain's word becomes the books', and a keeper that reverts, which leaves no log, is seen by its
// calldata.
func TestRun(t *testing.T) {
	rows, result := gather(t, raced(), config(), 0, 39)
	if len(rows) != 1 || rows[0].Kind != job.Order || rows[0].Key != order || rows[0].Winner.Tier != 1 ||
		rows[0].AgeMs != 1000 || len(rows[0].Losers) != 2 {
		t.Fatalf("%+v", rows)
	}
	if l := rows[0].Losers; l[0].Tier != 2 || !l[0].Late || l[1].Tier != 0 || !l[1].Reverted {
		t.Errorf("losers %+v", l)
	}
	if all := result.All(); all.Won.Gas != 1000 || all.Late.Gas != 800 || result.Other.Count != 0 ||
		result.To.Number != 39 {
		t.Errorf("%+v %+v", all, result)
	}
}

// The lead gives the age of what was asked for before the range.
func TestLead(t *testing.T) {
	c := config()
	if rows, _ := gather(t, raced(), c, 6, 39); len(rows) != 1 || rows[0].AgeBy != ledger.ByRequest ||
		rows[0].AgeMs != 1000 {
		t.Errorf("%+v", rows)
	}
	if rows, result := gather(t, raced(), c, 8, 8); len(rows) != 1 || rows[0].Late() != 1 || result.All().
		Won.Count != 0 {
		t.Errorf("the loser's block alone: %+v", rows)
	}
}

// Receipts that do not hash to their block's root are nobody's word.
func TestUnprovenReceiptsAreRefused(t *testing.T) {
	w := raced()
	w.unproven = errors.New("they hash to another root")
	_, err := Run(t.Context(), w, config(), 0, 39, func(ledger.Row) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "another root") {
		t.Error(err)
	}
}

// Several blocks are read at the same time, never more than so many, and come in order however long each takes.
func TestReadingIsBounded(t *testing.T) {
	w := raced()
	gate := make(chan struct{})
	go func() { // lets answers out one by one, in whatever order the scheduler likes
		for {
			select {
			case gate <- struct{}{}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	w.wait = func(uint64) { <-gate }
	if rows, _ := gather(t, w, config(), 0, 39); len(rows) != 1 || w.atOnce > workers {
		t.Errorf("%d blocks were asked for at the same time, %d rows", w.atOnce, len(rows))
	}
}

// notFound is what a node's client says of a block that the node does not have.
func notFound(t *testing.T) error {
	t.Helper()
	node, err := evmnode.New(evmnode.Config{Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = node.Run(ctx) })
	defer running.Wait()
	defer stop()
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(node.HTTPURL())}
	client, err := evm.Dial(ctx, node.ChainID().Uint64(), cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.BlockAt(ctx, 1<<40)
	if !evm.NotFound(err) {
		t.Fatalf("a block to come: %v", err)
	}
	return err
}

// What cannot be audited is said in one line that names the block and what to do.
func TestRunRefuses(t *testing.T) {
	gone := notFound(t)
	for name, c := range map[string]struct {
		change   func(*written)
		from, to uint64
		want     string
	}{
		"backwards":     {nil, 9, 5, "from block 9 to block 5 is no range"},
		"not there yet": {func(w *written) { w.missing[39] = gone }, 0, 39, "block 39 is not there (yet)"},
		"pruned": {func(w *written) { w.missing[0] = gone }, 0, 39,
			"block 0 is not to be had: the node has thrown its history away"},
		"pruned inside": {func(w *written) { w.missing[12] = gone }, 0, 39, "block 12 is not to be had"},
		"changed": {func(w *written) { w.blocks[20].Parent = chain.Hash{1} }, 0, 39,
			"the chain changed while it was read (end at its finalized block)"},
		"an event nobody knows": {func(w *written) {
			l := gmxtest.Event(emitter, "OrderExecuted", perp.Fields{})
			l.Topics = slices.Clone(l.Topics)
			l.Topics[1] = chain.Hash{1}
			w.add(30, chain.Tx{From: trader, OK: true}, nil, l)
		}, 0, 39, "block 30"},
	} {
		t.Run(name, func(t *testing.T) {
			w := raced()
			if c.change != nil {
				c.change(w)
			}
			_, err := Run(t.Context(), w, config(), c.from, c.to, func(ledger.Row) error { return nil })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// A caller that has seen enough, or is told to stop, is not kept waiting, and its error is the answer.
func TestRunStops(t *testing.T) {
	enough := errors.New("enough")
	if _, err := Run(t.Context(), raced(), config(), 0, 39,
		func(ledger.Row) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := raced()
	w.wait = func(number uint64) {
		if number == 10 {
			cancel()
		}
	}
	_, err := Run(ctx, w, config(), 0, 39, func(ledger.Row) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFirstSince finds what looking at every block finds.
func TestFirstSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var times []uint64
		for range rapid.IntRange(1, 400).Draw(t, "blocks") {
			last := uint64(1000)
			if len(times) > 0 {
				last = times[len(times)-1]
			}
			times = append(times, last+uint64(rapid.IntRange(0, 3).Draw(t, "step")))
		}
		w := write(times...)
		head := w.blocks[len(times)-1].BlockRef
		since := uint64(rapid.IntRange(990, int(head.TimeMs)+5).Draw(t, "since"))
		want := slices.IndexFunc(times, func(ms uint64) bool { return ms >= since })
		if want < 0 {
			want = len(times) - 1
		}
		got, err := FirstSince(t.Context(), w, head, since)
		if err != nil || times[got] != times[want] || since < head.TimeMs && got != uint64(want) {
			t.Fatalf("block %d at %d, want block %d at %d, %v", got, times[got], want, times[want], err)
		}
	})
}
