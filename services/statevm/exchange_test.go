package statevm

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

var emitter = chain.Address{0xee}

// failer is a test, be it rapid's or the standard library's.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// exchange plays the chain and a scanner: it makes blocks in which traders act, folds them into a book, and writes what
// a scanner would write of them to the log topic.
type exchange struct {
	t          failer
	random     *rand.Rand
	partitions int
	write      func(partition int, records []bus.Record) // atomically

	book   *perp.Book
	blocks []chain.BlockRef // canonical, ascending
	epoch  uint64
	serial uint64 // makes keys and hashes unique, on every branch
	final  chain.BlockRef
	unsaid bool           // the end of the next block says what is final
	floor  uint64         // blocks up to here cannot be taken back
	last   [][]bus.Record // the last batch of each partition
}

func newExchange(t failer, seed uint64, partitions int, write func(int, []bus.Record)) *exchange {
	return &exchange{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), partitions: partitions, write: write, book: perp.NewBook(),
		epoch: 1, floor: 500,
		last: make([][]bus.Record, partitions),
	}
}

// toTopic returns a writer over a producer.
func toTopic(t failer, producer *bus.Producer) func(int, []bus.Record) {
	return func(partition int, records []bus.Record) {
		if _, err := producer.Produce(context.Background(), partition, records); err != nil {
			t.Fatal(err)
		}
	}
}

func (x *exchange) tip() chain.BlockRef {
	if len(x.blocks) == 0 {
		return chain.BlockRef{Number: 500, Hash: chain.Hash{5}}
	}
	return x.blocks[len(x.blocks)-1]
}

func (x *exchange) unique() (h chain.Hash) {
	x.serial++
	return chain.Keccak256(binary.BigEndian.AppendUint64(nil, x.serial))
}

// routed is a message of a block and the key it goes by; parameters go everywhere.
type routed struct {
	key        chain.Hash
	message    wire.Message
	everywhere bool
}

// grow makes a block of some transactions on the tip and publishes it.
func (x *exchange) grow(transactions int) {
	x.t.Helper()
	ref := x.next()
	x.publish(wire.BlockEnd{Block: ref}, x.happen(ref, transactions))
}

// next is a child of the tip.
func (x *exchange) next() chain.BlockRef {
	tip := x.tip()
	return chain.BlockRef{Number: tip.Number + 1, Hash: x.unique(), Parent: tip.Hash,
		TimeMs: 1_700_000_000_000 + 450*tip.Number}
}

// happen lets a block happen: it becomes the tip, and what a scanner says about it is returned.
func (x *exchange) happen(ref chain.BlockRef, transactions int) []routed {
	x.t.Helper()
	if err := x.book.Begin(ref.Number); err != nil {
		x.t.Fatal(err)
	}
	var messages []routed
	var index uint32
	for i := range transactions {
		messages = append(messages, x.transaction(ref, uint32(i), &index)...)
	}
	if x.random.IntN(4) == 0 {
		messages = append(messages, x.parameter(ref))
	}
	x.blocks = append(x.blocks, ref)
	return messages
}

// span makes finalized blocks and publishes them as one range.
func (x *exchange) span(blocks, transactions int) {
	x.t.Helper()
	end := wire.RangeEnd{Before: chain.BlockRef{Number: x.tip().Number, Hash: x.tip().Hash}}
	var messages []routed
	for range blocks {
		ref := x.next()
		messages = append(messages, x.happen(ref, transactions)...)
		end.Blocks = append(end.Blocks, ref)
	}
	end.Last = x.tip()
	x.final, x.floor = x.tip(), x.tip().Number
	for p := range x.partitions {
		records := x.shareOf(p, messages)
		mine := end
		mine.Records, mine.Digest, mine.Blocks = uint32(len(records)), wire.Digest(records),
			withRecords(end.Blocks, records, x.t)
		x.send(p, append(records, x.encode(chain.Hash{}, mine)))
	}
}

// withRecords are the blocks that have records.
func withRecords(blocks []chain.BlockRef, records []bus.Record, t failer) (named []chain.BlockRef) {
	with := map[uint64]bool{}
	for _, r := range records {
		m, _, err := wire.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		with[blockOf(m).Number] = true
	}
	for _, b := range blocks {
		if with[b.Number] {
			named = append(named, b)
		}
	}
	return named
}

// breakPromise halts everybody and goes on from an ancestor, however final what it takes back was said to be.
func (x *exchange) breakPromise(depth int, look func()) {
	x.t.Helper()
	old := x.tip()
	x.everywhere(wire.Halt{Block: x.final, Reason: "the node says otherwise\x00"})
	look()
	x.everywhere(wire.Halt{Block: x.final, Reason: "it still does"})
	x.rewind(depth)
	x.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: x.tip(), OldTip: old}, Accepted: true})
	if x.final.Number > x.tip().Number {
		x.final = x.tip()
	}
}

// transaction lets a trader act, applies it to the book and returns what a scanner says about it.
func (x *exchange) transaction(ref chain.BlockRef, position uint32, index *uint32) []routed {
	key, logs := x.act()
	hash := x.unique()
	var messages []routed
	for i := range logs {
		l := &logs[i]
		l.Block, l.BlockHash, l.TxHash, l.TxIndex, l.Index = ref.Number, ref.Hash, hash, position, *index
		*index++
		messages = append(messages, routed{key, wire.Log{Log: *l}, key.IsZero()})
	}
	tx := chain.Tx{Hash: hash, From: chain.Address{1}, Block: ref.Number, BlockHash: ref.Hash, Index: position,
		OK: true, GasUsed: 1, GasPrice: 50_000_000}
	events, err := gmx.NewDecoder(emitter).Transaction(logs, ref.TimeMs)
	if err != nil {
		x.t.Fatal(err)
	}
	events = append(events, perp.TransactionSeen{Transaction: perp.Transaction{Tx: tx,
		Stamp: perp.Stamp{Block: ref.Number, TxHash: hash, TimeMs: ref.TimeMs}}})
	x.apply(events...)
	return append(messages, routed{key: key, message: wire.Tx{Tx: tx}})
}

func (x *exchange) apply(events ...perp.Event) {
	for _, e := range events {
		if err := perp.Apply(x.book, e); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *exchange) parameter(ref chain.BlockRef) routed {
	p := wire.Param{Block: ref, Key: perp.DataStoreKey(fmt.Sprint("PARAMETER_", x.random.IntN(3))), Value: x.unique()}
	x.apply(perp.ParameterSet{Parameter: perp.Parameter{
		Key: p.Key, Value: p.Value, Source: perp.FromCall, Stamp: perp.Stamp{Block: ref.Number, TimeMs: ref.TimeMs},
	}})
	return routed{message: p, everywhere: true}
}

// act is one of the things that happen on an exchange, such as the present state allows.
func (x *exchange) act() (key chain.Hash, logs []chain.Log) {
	account := chain.Address{0xac, byte(x.random.IntN(5))}
	switch x.random.IntN(7) {
	case 0:
		return x.createOrder(account)
	case 1:
		return x.endOrder(account)
	case 2:
		return x.trade(account)
	case 3:
		return x.deposit(account)
	case 4:
		market := chain.Address{0x3a, byte(x.random.IntN(3))}
		return market.Hash(), []chain.Log{gmxtest.Event(emitter, "PoolAmountUpdated", perp.Fields{
			"market": market, "token": chain.Address{7}, "delta": chain.I64(-1),
			"nextValue": chain.U64(x.random.Uint64()),
		})}
	case 5: // a parameter that starts a measure: every partition keeps the one, and partition 0 the other
		return chain.Hash{}, []chain.Log{gmxtest.Event(emitter, "SetInt", perp.Fields{
			"baseKey": perp.BaseKey("VIRTUAL_INVENTORY_FOR_POSITIONS"), "data": perp.Bytes{31: 7},
			"value": chain.I64(-x.random.Int64()),
		})}
	default:
		return chain.Hash{}, []chain.Log{gmxtest.Event(emitter, "SetUint", perp.Fields{
			"baseKey": perp.BaseKey(fmt.Sprint("PARAMETER_", x.random.IntN(3))), "data": perp.Bytes(nil),
			"value": chain.U64(x.random.Uint64()),
		})}
	}
}

func (x *exchange) createOrder(account chain.Address) (chain.Hash, []chain.Log) {
	return account.Hash(), []chain.Log{gmxtest.Event(emitter, "OrderCreated", perp.Fields{
		"key": x.unique(), "account": account, "orderType": chain.U64(uint64(x.random.IntN(9))),
		"sizeDeltaUsd": chain.U64(x.random.Uint64()),
	})}
}

// endOrder changes or ends an order of the account; where there is none, one is created.
func (x *exchange) endOrder(account chain.Address) (chain.Hash, []chain.Log) {
	for _, r := range x.book.Rows(perp.Orders) {
		if o := r.(perp.Order); o.Account == account && !o.Status.Final() {
			name := []string{"OrderUpdated", "OrderFrozen", "OrderCancelled", "OrderExecuted"}[x.random.IntN(4)]
			return account.Hash(), []chain.Log{gmxtest.Event(emitter, name, perp.Fields{
				"key": o.Key, "account": account, "reason": "a\x00\xffb\\", "reasonBytes": perp.Bytes{0, 1, 2},
				"sizeDeltaUsd": chain.U64(x.random.Uint64()),
			})}
		}
	}
	return x.createOrder(account)
}

// trade grows, shrinks or closes a position.
func (x *exchange) trade(account chain.Address) (chain.Hash, []chain.Log) {
	given := perp.Fields{
		"account": account, "market": chain.Address{0x3a, byte(x.random.IntN(3))}, "collateralToken": chain.Address{7},
		"isLong": x.random.IntN(2) == 0,
	}
	key := perp.PositionKey(account, given["market"].(chain.Address), chain.Address{7}, given["isLong"].(bool))
	known, _ := x.book.Get(perp.RowKey{Table: perp.Positions, Key: key}).(perp.Position)
	delta := chain.U64(1 + x.random.Uint64N(1000))
	if known.Status == perp.Active && x.random.IntN(2) == 0 {
		delta = delta.Min(known.SizeInUsd)
		given["sizeInUsd"], given["sizeDeltaUsd"], given["orderKey"] = known.SizeInUsd.Sub(delta), delta, x.unique()
		return account.Hash(), gmxtest.Decrease(emitter, given)
	}
	given["sizeInUsd"], given["sizeDeltaUsd"] = known.SizeInUsd.Add(delta), delta
	return account.Hash(), []chain.Log{gmxtest.Event(emitter, "PositionIncrease", given)}
}

// deposit creates a deposit and, as often as not, executes it in the same transaction.
func (x *exchange) deposit(account chain.Address) (chain.Hash, []chain.Log) {
	key := x.unique()
	logs := []chain.Log{gmxtest.Event(emitter, "DepositCreated", perp.Fields{"key": key, "account": account})}
	if x.random.IntN(2) == 0 {
		logs = append(logs, gmxtest.Event(emitter, "DepositExecuted", perp.Fields{"key": key, "account": account}))
	}
	return account.Hash(), logs
}

// encode makes a record of the present epoch.
func (x *exchange) encode(key chain.Hash, m wire.Message) bus.Record {
	return encodeRecord(x.t, key, m, x.epoch)
}

func encodeRecord(t failer, key chain.Hash, m wire.Message, epoch uint64) bus.Record {
	t.Helper()
	r, err := wire.Encode(key[:], m, epoch, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// publish writes a block's part to each partition, every partition its own batch.
func (x *exchange) publish(end wire.BlockEnd, messages []routed) {
	if x.unsaid && end.Block.Number > x.final.Number {
		end.FinalDepth, x.unsaid = uint32(end.Block.Number-x.final.Number), false
	}
	for p := range x.partitions {
		x.send(p, closed(x, end, x.shareOf(p, messages)))
	}
}

// shareOf is what of messages goes to a partition.
func (x *exchange) shareOf(p int, messages []routed) (records []bus.Record) {
	for _, m := range messages {
		if m.everywhere || wire.Partition(m.key, x.partitions) == p {
			records = append(records, x.encode(m.key, m.message))
		}
	}
	return records
}

// closed appends the BLOCK_END.
func closed(x *exchange, end wire.BlockEnd, records []bus.Record) []bus.Record {
	end.Records, end.Digest = uint32(len(records)), wire.Digest(records)
	return append(slices.Clone(records), x.encode(chain.Hash{}, end))
}

func (x *exchange) send(partition int, records []bus.Record) {
	x.write(partition, records)
	x.last[partition] = records
}

func (x *exchange) everywhere(m wire.Message) {
	for p := range x.partitions {
		x.send(p, []bus.Record{x.encode(chain.Hash{}, m)})
	}
}

// reorg takes blocks back; the exchange must have more of them.
func (x *exchange) reorg(depth int) {
	x.t.Helper()
	old := x.tip()
	x.rewind(depth)
	x.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: x.tip(), OldTip: old}})
}

// rewind forgets the last blocks.
func (x *exchange) rewind(depth int) {
	x.t.Helper()
	x.blocks = x.blocks[:len(x.blocks)-depth]
	if err := x.book.Undo(x.tip().Number); err != nil {
		x.t.Fatal(err)
	}
}

// finalize announces a block some way below the tip.
func (x *exchange) finalize(below int) {
	if i := len(x.blocks) - 1 - below; i >= 0 && x.blocks[i].Number > x.final.Number {
		x.final = x.blocks[i]
		x.everywhere(wire.Finalized{Block: x.final})
	}
}

// finalizeByNext has the end of the next block announce a block some way below the tip.
func (x *exchange) finalizeByNext(below int) {
	if i := len(x.blocks) - 1 - below; i >= 0 && x.blocks[i].Number > x.final.Number {
		x.final, x.unsaid = x.blocks[i], true
	}
}

// repeat writes the last batch of every partition again, as a scanner does that does not know whether it was written.
func (x *exchange) repeat() {
	for p, records := range x.last {
		if records != nil {
			x.write(p, records)
		}
	}
}

// succeed replaces the scanner; the old one goes on writing for a while.
func (x *exchange) succeed() {
	x.epoch++
	x.everywhere(wire.Epoch{Number: x.epoch, Owner: fmt.Sprint("scanner ", x.epoch)})
	stale := wire.BlockEnd{Block: chain.BlockRef{Number: x.tip().Number + 1, Hash: x.unique(), Parent: x.tip().Hash},
		Digest: wire.Digest(nil)}
	for p := range x.partitions {
		x.write(p, []bus.Record{encodeRecord(x.t, chain.Hash{}, stale, x.epoch-1)})
	}
}

// countRows is how many rows the book has, by table, for log lines.
func (x *exchange) countRows() map[perp.Table]int {
	count := map[perp.Table]int{}
	for _, t := range perp.Tables() {
		count[t] = len(x.book.Rows(t))
	}
	maps.DeleteFunc(count, func(_ perp.Table, n int) bool { return n == 0 })
	return count
}
