package exchange

import (
	"bufio"
	"compress/gzip"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
)

// emitted are the events this exchange knows.
var emitted = []string{
	"AdlStateUpdated", "ClaimableFeeAmountUpdated", "ClaimableUiFeeAmountUpdated", "CollateralSumUpdated",
	"DepositCancelled",
	"DepositCreated", "DepositExecuted", "ExecutionFeeRefund", "ExecutionFeeRefundCallback", "Funding", "GlvCreated",
	"GlvDepositCancelled",
	"GlvDepositCreated", "GlvDepositExecuted", "GlvMarketAdded", "GlvShiftCancelled", "GlvShiftCreated",
	"GlvShiftExecuted",
	"GlvValueUpdated", "GlvWithdrawalCancelled", "GlvWithdrawalCreated", "GlvWithdrawalExecuted",
	"InitOracleProviderForToken",
	"InsolventClose", "KeeperExecutionFee", "MarketCreated", "OpenInterestInTokensUpdated", "OpenInterestUpdated",
	"OraclePriceUpdate", "OrderCancelled", "OrderCollateralDeltaAmountAutoUpdated", "OrderCreated", "OrderExecuted",
	"OrderFrozen",
	"OrderSizeDeltaAutoUpdated", "OrderUpdated", "PoolAmountUpdated", "PositionDecrease", "PositionFeesCollected",
	"PositionFeesInfo", "PositionIncrease", "SetAddress", "SetBool", "SetUint", "ShiftCancelled", "ShiftCreated",
	"ShiftExecuted",
	"SwapFeesCollected", "SwapImpactPoolAmountUpdated", "SwapInfo", "VirtualSwapInventoryUpdated",
	"WithdrawalCancelled",
	"WithdrawalCreated", "WithdrawalExecuted",
}

// liveEveryEvent makes the exchange emit each of its events at least once.
func (v *venue) liveEveryEvent() {
	v.t.Helper()
	m, trader, provider := v.market("ETH/USD"), v.account(), v.account()
	for _, minimum := range []*big.Int{nil, coins(1_000_000)} {
		request := DepositRequest{Market: m, ShortAmount: big.NewInt(1_000e6), MinMarketTokens: minimum}
		deposit := v.deposit(v.must(v.client.CreateDeposit(v.ctx, provider, request)))
		v.run(v.keeper, v.executeDeposit(deposit, v.reports(m, v.now())))
		withdraw := WithdrawalRequest{Market: m, MarketTokens: coins(100), MinLong: minimum}
		withdrawal := v.withdrawal(v.must(v.client.CreateWithdrawal(v.ctx, provider, withdraw)))
		v.run(v.keeper, v.executeWithdrawal(withdrawal, v.reports(m, v.now())))
	}
	v.liveLiquidityEvents(provider)
	v.open(trader, m, true, 90_000, 2_000)
	v.open(provider, m, true, 10_000, 1_000)
	stop := closing(m, true)
	stop.Type, stop.TriggerPrice, stop.AutoCancel = LimitDecrease, USD30(4_000_000_000, 18), true
	order := v.order(trader, stop)
	v.must(v.client.UpdateOrder(v.ctx, trader, order, stop))
	shrinking := stop
	shrinking.TriggerPrice, shrinking.SizeUSD, shrinking.CollateralAmount = USD30(3_000_000_000, 18), usd(50_000),
		big.NewInt(5_000e6)
	v.fill(v.order(provider, shrinking), m)
	frozen := trade(m, LimitIncrease, true)
	frozen.TriggerPrice, frozen.AcceptablePrice = USD30(3_000_000_000, 18), big.NewInt(1)
	v.fill(v.order(trader, frozen), m)
	v.must(v.client.SetUint(v.ctx, v.deployer, "UI_FEE_FACTOR", factor(1, 1_000), addressOf(provider)))
	swap := OrderRequest{
		Type: MarketSwap, Collateral: m.Short, CollateralAmount: big.NewInt(1_000e6),
		SwapPath:      []common.Address{m.Address},
		UIFeeReceiver: addressOf(provider), Callback: Callback{v.d.Contracts.CallbackCounter, 100_000},
	}
	v.fill(v.order(trader, swap), m)
	v.setPrice("WETH", 2_900_000_000, 2_900_000_000)
	v.run(v.keeper, v.liquidate(addressOf(trader), m.Short, m, true))
}

// liveLiquidityEvents makes the exchange emit the events of shifts, GLVs and deleveraging; the provider has market
// tokens.
func (v *venue) liveLiquidityEvents(provider *ecdsa.PrivateKey) {
	v.t.Helper()
	eth, sol, glv := v.market("ETH/USD"), v.market("SOL/USD"), v.d.Glvs[0]
	v.must(v.client.Approve(v.ctx, provider, glv.Address))
	for _, minimum := range []*big.Int{nil, coins(1_000_000)} {
		shift := ShiftRequest{From: eth, To: sol, MarketTokens: coins(100), MinMarketTokens: minimum}
		key := v.requestKey(v.must(v.client.CreateShift(v.ctx, provider, shift)), "ShiftCreated")
		v.run(v.keeper, v.executeShift(key, v.reportsOf(eth, sol)))
		deposit := GlvDepositRequest{Glv: glv, Market: eth, ShortAmount: big.NewInt(1_000e6), MinGlvTokens: minimum}
		key = v.requestKey(v.must(v.client.CreateGlvDeposit(v.ctx, provider, deposit)), "GlvDepositCreated")
		v.run(v.keeper, v.executeGlvDeposit(key))
		move := GlvShiftRequest{Glv: glv, From: eth, To: sol, MarketTokens: coins(100), MinMarketTokens: minimum}
		v.advance(6 * time.Second)
		key = v.requestKey(v.must(v.client.CreateGlvShift(v.ctx, v.keeper, move)), "GlvShiftCreated")
		v.run(v.keeper, v.executeGlvShift(key))
		withdrawal := GlvWithdrawalRequest{Glv: glv, Market: eth, GlvTokens: coins(100), MinLong: minimum}
		key = v.requestKey(v.must(v.client.CreateGlvWithdrawal(v.ctx, provider, withdrawal)), "GlvWithdrawalCreated")
		v.run(v.keeper, v.executeGlvWithdrawal(key))
	}
	v.run(v.keeper, v.updateAdl(sol, true))
}

// TestEvents lets one exchange emit each of its events, and reads its history in several ways.
func TestEvents(t *testing.T) {
	v := newVenue(t, nil)
	v.liveEveryEvent()
	events := v.history()
	t.Run("all are emitted", func(t *testing.T) {
		if got := slices.Compact(slices.Sorted(slices.Values(names(events)))); !slices.Equal(got, emitted) {
			t.Errorf("emitted %v\nwant    %v", got, emitted)
		}
	})
	t.Run("a keeper reads them", func(t *testing.T) { v.in(t).decodeAsKeeper() })
	t.Run("they look like the originals", func(t *testing.T) { compareWithOriginals(t, events) })
	t.Run("they have the listed items", func(t *testing.T) { compareWithList(t, events) })
}

// decodeAsKeeper decodes the whole history with the decoder of a keeper, which refuses what it does not know.
func (v *venue) decodeAsKeeper() {
	v.t.Helper()
	decoder := gmx.NewDecoder(chain.Address(v.d.Contracts.EventEmitter))
	byTx := map[common.Hash][]chain.Log{}
	for _, log := range v.logs() {
		byTx[log.TxHash] = append(byTx[log.TxHash], chainLog(log))
	}
	for hash, logs := range byTx {
		if _, err := decoder.Transaction(logs, 0); err != nil {
			v.t.Errorf("transaction %s: %v", hash, err)
		}
	}
}

func chainLog(log types.Log) chain.Log {
	c := chain.Log{
		Address: chain.Address(log.Address), Data: log.Data, Block: log.BlockNumber,
		BlockHash: chain.Hash(log.BlockHash),
		TxHash:    chain.Hash(log.TxHash), TxIndex: uint32(log.TxIndex), Index: uint32(log.Index),
	}
	for _, topic := range log.Topics {
		c.Topics = append(c.Topics, chain.Hash(topic))
	}
	return c
}

// shape is what a reader of an event depends on: its kind, the number of topics, and its items.
type shape struct {
	kind   string
	topics int
	// always are the items ("type key") of every sample, ever those of any.
	always, ever []string
}

func shapes(events []event) map[string]shape {
	all := map[string]shape{}
	for _, e := range events {
		items := e.itemNames()
		s, seen := all[e.name]
		if !seen {
			s = shape{kind: e.kind, topics: len(e.topics), always: items}
		}
		s.always = slices.DeleteFunc(slices.Clone(s.always),
			func(item string) bool { return !slices.Contains(items, item) })
		s.ever = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.ever, items))))
		all[e.name] = s
	}
	return all
}

// compareWithOriginals compares with recordings of the original contracts: the same kind and topics, every item the
// original always has, and no item it never has.
func compareWithOriginals(t *testing.T, events []event) {
	originals := shapes(recordings(t))
	compared := 0
	for name, own := range shapes(events) {
		original, recorded := originals[name]
		if !recorded {
			continue
		}
		compared++
		if own.kind != original.kind || own.topics != original.topics {
			t.Errorf("%s is an %s with %d topics, the original an %s with %d", name, own.kind, own.topics,
				original.kind, original.topics)
		}
		for _, item := range original.always {
			if !slices.Contains(own.always, item) {
				t.Errorf("%s has no %q, the original always has", name, item)
			}
		}
		for _, item := range own.ever {
			// Only liquidations charge a liquidation fee, and none of the recorded ones did.
			if !slices.Contains(original.ever, item) && !strings.Contains(item, "liquidationFee") {
				t.Errorf("%s has %q, the original never has", name, item)
			}
		}
	}
	t.Logf("compared %d kinds of events", compared)
	if compared < 18 {
		t.Errorf("only %d kinds of events could be compared", compared)
	}
}

// compareWithList compares with the list of the original's events: the same kind, and exactly its items. The list gives
// fees under a placeholder, with the items that only some of them have.
func compareWithList(t *testing.T, events []event) {
	listed := listedEvents(t)
	for name, own := range shapes(events) {
		fees := strings.HasPrefix(name, "PositionFees")
		original, ok := listed[name]
		if fees {
			original, ok = listed["<eventName>"]
		}
		if !ok || own.kind != original.kind {
			t.Errorf("%s is an %s, listed as %q", name, own.kind, original.kind)
		}
		var keys []string
		for _, item := range own.ever {
			keys = append(keys, item[strings.LastIndex(item, " ")+1:])
		}
		slices.Sort(keys)
		if fees {
			original.ever = slices.DeleteFunc(slices.Clone(original.ever),
				func(key string) bool { return !slices.Contains(keys, key) })
		}
		if !slices.Equal(keys, original.ever) {
			t.Errorf("%s has   %v\nlisted %v", name, keys, original.ever)
		}
	}
}

// listedEvents reads the list of the original's events, with the keys of their items in ever, or skips the test where
// it is not.
func listedEvents(t *testing.T) map[string]shape {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "reference", "gmx", "events.md")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no list of the original's events at %s", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]shape{}
	var current string
	for line := range strings.Lines(string(text)) {
		if head, ok := strings.CutPrefix(line, "- **"); ok {
			name, rest, _ := strings.Cut(head, "** ")
			kind, _, _ := strings.Cut(rest, " ")
			current, listed[name] = name, shape{kind: kind}
			continue
		}
		if _, keys, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(line, "  - ") {
			s := listed[current]
			s.ever = slices.Sorted(slices.Values(append(s.ever, strings.Split(strings.TrimSpace(keys), ", ")...)))
			listed[current] = s
		}
	}
	return listed
}

// recordings reads the events of the original contracts, or skips the test where they are not.
func recordings(t *testing.T) []event {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "fixtures", "gmx")
	var events []event
	for _, name := range []string{"trading-and-liquidation", "risk-parity", "toggles"} {
		file, err := os.Open(filepath.Join(dir, name+".jsonl.gz"))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("no recordings of the original contracts in %s", dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(unzipped)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var log struct {
				Topics []common.Hash
				Data   hexutil.Bytes
			}
			if err := json.Unmarshal(lines.Bytes(), &log); err != nil {
				t.Fatal(err)
			}
			e, err := decodeEvent(log.Topics, log.Data)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return events
}
