package bench

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

var emitter = chain.Address{0xee}

// venue makes the blocks of a busy exchange and publishes them as a scanner would. In each block one trader asks for a
// trade and a keeper executes the trade that was asked for in the block before: 21 logs in two transactions.
type venue struct {
	tb         testing.TB
	producer   *bus.Producer
	partitions int
	markets    uint64
	accounts   uint64

	tip    chain.BlockRef
	serial uint64
	asked  trade
	sizes  map[chain.Hash]chain.Uint // of positions, USD
	logs   int                       // published so far
}

// trade is an order somebody placed.
type trade struct {
	order           chain.Hash
	account, market chain.Address
}

func newVenue(tb testing.TB, producer *bus.Producer, partitions int) *venue {
	return &venue{tb: tb, producer: producer, partitions: partitions, markets: 20, accounts: 2000,
		tip:   chain.BlockRef{Number: 1_000_000, Hash: chain.Hash{1}, TimeMs: 1_760_000_000_000},
		sizes: map[chain.Hash]chain.Uint{}}
}

func (v *venue) unique() chain.Hash {
	v.serial++
	return chain.Keccak256(binary.BigEndian.AppendUint64(nil, v.serial))
}

// block is what happens next.
type block struct {
	ref     chain.BlockRef
	records [][]routed // by transaction
}

type routed struct {
	key     chain.Hash
	message wire.Message
}

// next lets a block happen.
func (v *venue) next() block {
	b := block{ref: chain.BlockRef{Number: v.tip.Number + 1, Parent: v.tip.Hash, Hash: v.unique(),
		TimeMs: v.tip.TimeMs + 450}}
	v.tip = b.ref
	var index uint32
	if v.asked.order != (chain.Hash{}) {
		b.records = append(b.records, v.transaction(b.ref, &index, 0, v.execute(v.asked)))
	}
	first, second := v.unique(), v.unique()
	v.asked = trade{
		order:   v.unique(),
		account: chain.Address{0xac, first[0] % byte(v.accounts/256+1), first[1]},
		market:  chain.Address{0x3a, second[0] % byte(v.markets)},
	}
	created := gmxtest.Event(emitter, "OrderCreated", perp.Fields{
		"key": v.asked.order, "account": v.asked.account, "market": v.asked.market,
		"orderType":    chain.U64(uint64(perp.MarketIncrease)),
		"sizeDeltaUsd": amount(5000, 30), "initialCollateralDeltaAmount": amount(500, 18),
		"executionFee": amount(1, 15),
	})
	b.records = append(b.records, v.transaction(b.ref, &index, 1, []owned{{v.asked.account.Hash(), created}}))
	return b
}

func amount(n, decimals uint64) chain.Uint { return chain.U64(n).Mul(chain.Pow10(decimals)) }

// owned is a log and the key it goes by.
type owned struct {
	key chain.Hash
	chain.Log
}

// execute is what an execution says, as the exchange says it: what accrued, the pools, the position, its fees, and the
// end of the order.
func (v *venue) execute(t trade) []owned {
	var logs []owned
	market := func(name string, fields perp.Fields) {
		fields["market"] = t.market
		logs = append(logs, owned{t.market.Hash(), gmxtest.Event(emitter, name, fields)})
	}
	long, short := chain.Address{0x10, t.market[1]}, chain.Address{0x05}
	for _, token := range []chain.Address{long, short} {
		for _, isLong := range []bool{true, false} {
			market("FundingFeeAmountPerSizeUpdated", perp.Fields{"collateralToken": token, "isLong": isLong,
				"value": v.measure()})
			market("ClaimableFundingAmountPerSizeUpdated", perp.Fields{"collateralToken": token, "isLong": isLong,
				"value": v.measure()})
		}
	}
	market("CumulativeBorrowingFactorUpdated", perp.Fields{"isLong": true, "nextValue": v.measure()})
	market("OpenInterestUpdated", perp.Fields{"collateralToken": short, "isLong": true, "nextValue": v.measure()})
	market("OpenInterestInTokensUpdated", perp.Fields{"collateralToken": short, "isLong": true,
		"nextValue": v.measure()})
	market("CollateralSumUpdated", perp.Fields{"collateralToken": short, "isLong": true, "nextValue": v.measure()})
	market("PositionImpactPoolAmountUpdated", perp.Fields{"nextValue": v.measure()})
	market("PoolAmountUpdated", perp.Fields{"token": long, "nextValue": v.measure()})
	market("PoolAmountUpdated", perp.Fields{"token": short, "nextValue": v.measure()})

	key := perp.PositionKey(t.account, t.market, short, true)
	v.sizes[key] = v.sizes[key].Add(amount(5000, 30))
	account := func(name string, fields perp.Fields) {
		logs = append(logs, owned{t.account.Hash(), gmxtest.Event(emitter, name, fields)})
	}
	account("PositionFeesCollected", perp.Fields{
		"orderKey": t.order, "positionKey": key, "market": t.market, "collateralToken": short, "trader": t.account,
		"isIncrease": true,
	})
	account("PositionIncrease", perp.Fields{
		"orderKey": t.order, "positionKey": key, "account": t.account, "market": t.market, "collateralToken": short,
		"isLong":    true,
		"sizeInUsd": v.sizes[key], "sizeDeltaUsd": amount(5000, 30), "sizeInTokens": amount(3, 18),
		"collateralAmount": amount(500, 18),
		"borrowingFactor":  v.measure(), "fundingFeeAmountPerSize": v.measure(),
	})
	account("OrderExecuted", perp.Fields{"key": t.order, "account": t.account})
	account("KeeperExecutionFee", perp.Fields{"keeper": chain.Address{0xee, 1}, "executionFeeAmount": amount(1, 15)})
	return logs
}

// measure is a number as long as those of real measures.
func (v *venue) measure() chain.Uint {
	h := v.unique()
	return chain.UintFromBytes(h[:13])
}

// transaction makes records of logs and of who sent them.
func (v *venue) transaction(ref chain.BlockRef, index *uint32, position uint32, logs []owned) (records []routed) {
	hash := v.unique()
	for _, l := range logs {
		l.Block, l.BlockHash, l.TxHash, l.TxIndex, l.Index = ref.Number, ref.Hash, hash, position, *index
		*index++
		records = append(records, routed{l.key, wire.Log{Log: l.Log}})
	}
	v.logs += len(logs)
	return append(records, routed{logs[len(logs)-1].key, wire.Tx{Tx: chain.Tx{
		Hash: hash, From: chain.Address{1}, To: chain.Address{2}, Block: ref.Number, BlockHash: ref.Hash,
		Index: position, OK: true,
		GasUsed: 3_000_000, GasPrice: 100_000_000,
	}}})
}

// publish writes a block to every partition.
func (v *venue) publish(b block) {
	for p := range v.partitions {
		records := v.share(p, b)
		v.send(p, append(records, v.encode(chain.Hash{}, wire.BlockEnd{
			Block: b.ref, Records: uint32(len(records)), Digest: wire.Digest(records),
		})))
	}
}

// publishRange writes blocks to every partition as one range.
func (v *venue) publishRange(before chain.BlockRef, blocks []block) {
	for p := range v.partitions {
		end := wire.RangeEnd{Before: before, Last: blocks[len(blocks)-1].ref}
		var all []bus.Record
		for _, b := range blocks {
			if records := v.share(p, b); len(records) > 0 {
				all, end.Blocks = append(all, records...), append(end.Blocks, b.ref)
			}
		}
		end.Records, end.Digest = uint32(len(all)), wire.Digest(all)
		v.send(p, append(all, v.encode(chain.Hash{}, end)))
	}
}

func (v *venue) share(p int, b block) (records []bus.Record) {
	for _, r := range slices.Concat(b.records...) {
		if wire.Partition(r.key, v.partitions) == p {
			records = append(records, v.encode(r.key, r.message))
		}
	}
	return records
}

func (v *venue) everywhere(m wire.Message) {
	for p := range v.partitions {
		v.send(p, []bus.Record{v.encode(chain.Hash{}, m)})
	}
}

func (v *venue) encode(key chain.Hash, m wire.Message) bus.Record {
	r, err := wire.Encode(key[:], m, 1, 1)
	if err != nil {
		v.tb.Fatal(err)
	}
	return r
}

func (v *venue) send(partition int, records []bus.Record) {
	if _, err := v.producer.Produce(context.Background(), partition, records); err != nil {
		v.tb.Fatal(err)
	}
}
