package e2e

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// sent is one transaction of a signer of the keeper.
type sent struct {
	chain.Tx
	gmx.Call // what it was for
}

// record is what the canonical chain says, read from the node itself and folded without Kafka or Postgres.
type record struct {
	book *perp.Book
	sent []sent
	// revived holds, per position, the places at which it was opened or grown, and per order those at which it was
	// created or changed: only after such a place is another transaction for the same key no repetition.
	revived map[chain.Hash][]chain.LogPos
}

// chainReader reads the canonical chain once, block by block, and from the beginning again after a reorg.
type chainReader struct {
	node *evm.Client
	record
	last chain.BlockRef // the last block read; zero = none
}

// read folds the canonical chain from the exchange's deployment up to a block. Its error is of the asking, and what was
// read by then stays good: ask again.
func (k *keeper) read(ctx context.Context, last uint64) (record, error) {
	k.t.Helper()
	r := k.reader(ctx)
	for {
		goesOn, err := r.continues(ctx, last)
		if err == nil && goesOn {
			goesOn, err = k.advance(ctx, r, last)
		}
		if err != nil || goesOn {
			return r.record, err
		}
		r.record = record{book: perp.NewBook(), revived: map[chain.Hash][]chain.LogPos{}}
		r.last = chain.BlockRef{Number: k.Devnet.Block - 1}
	}
}

// advance reads on up to a block. It reports false when it meets a reorg: what was read is of an abandoned branch then.
func (k *keeper) advance(ctx context.Context, r *chainReader, last uint64) (onBranch bool, err error) {
	k.t.Helper()
	decoder := gmx.NewDecoder(k.Devnet.Contracts["eventEmitter"])
	filter := evm.Filter{Addresses: []chain.Address{k.Devnet.Contracts["eventEmitter"]}, Topics: gmx.Topics()[0]}
	signers := k.signers()
	for n := r.last.Number + 1; n <= last; n++ {
		block, err := r.node.BlockAt(ctx, n)
		if err != nil {
			return false, err
		}
		if r.last.Hash != (chain.Hash{}) && !block.Follows(r.last) {
			return false, nil
		}
		receipts, err := r.node.Receipts(ctx, block)
		if err != nil {
			return false, err
		}
		sent, err := k.collect(ctx, r.node, block, signers)
		if err != nil {
			return false, err
		}
		if err := r.fold(decoder, block.BlockRef, filter.Choose(receipts...)); err != nil {
			k.failf("folding block %d: %v", n, err)
		}
		r.sent, r.last = append(r.sent, sent...), block.BlockRef
	}
	return true, nil
}

// reader is the keeper's one reader of the chain.
func (k *keeper) reader(ctx context.Context) *chainReader {
	k.t.Helper()
	if k.canonical == nil {
		node, err := evm.Dial(ctx, k.Devnet.ChainID, k.nodeConfig(), zerolog.Nop(),
			evm.NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			k.failf("a reader of the chain: %v", err)
		}
		k.t.Cleanup(node.Close)
		k.canonical = &chainReader{node: node}
	}
	return k.canonical
}

// continues reports whether what was read is the beginning of the canonical chain up to a block.
func (r *chainReader) continues(ctx context.Context, to uint64) (bool, error) {
	if r.book == nil || r.last.Number > to {
		return false, nil
	}
	if r.last.Hash == (chain.Hash{}) {
		return true, nil // nothing was read yet
	}
	hash, err := r.node.HashAt(ctx, r.last.Number)
	return hash == r.last.Hash, err
}

func (k *keeper) nodeConfig() evm.Config {
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(k.Devnet.RPC)}
	return cfg
}

func (k *keeper) signers() map[chain.Address]bool {
	signers := map[chain.Address]bool{}
	for _, a := range k.Devnet.Accounts {
		if a.Purpose == "keeper" {
			signers[a.Address] = true
		}
	}
	return signers
}

func (r *record) fold(decoder *gmx.Decoder, block chain.BlockRef, logs []chain.Log) error {
	if err := r.book.Begin(block.Number); err != nil {
		return err
	}
	for len(logs) > 0 {
		n := 1
		for n < len(logs) && logs[n].TxHash == logs[0].TxHash {
			n++
		}
		events, err := decoder.Transaction(logs[:n], block.TimeMs)
		if err != nil {
			return err
		}
		for _, handler := range gmx.Speakers(logs[:n]) {
			r.book.Put(perp.HandlerVersion(handler, perp.V22c))
		}
		for _, e := range events {
			if err := perp.Apply(r.book, e); err != nil {
				return err
			}
			r.revive(e)
		}
		logs = logs[n:]
	}
	return nil
}

func (r *record) revive(e perp.Event) {
	at := func(key chain.Hash, s perp.Stamp) {
		r.revived[key] = append(r.revived[key], chain.LogPos{Block: s.Block, Index: s.Log})
	}
	switch e := e.(type) {
	case perp.PositionIncreased:
		at(e.Position.PositionKey, e.Position.Stamp)
	case perp.OrderCreated:
		at(e.Order.Key, e.Order.Stamp)
	case perp.OrderChanged:
		at(e.Key, e.Stamp)
	}
}

// collect returns the signers' transactions of a block with what they were for. One that spends a nonce only, as after
// a reorg that made its job needless, is for nothing.
func (k *keeper) collect(ctx context.Context, node *evm.Client, block evm.Block,
	signers map[chain.Address]bool) (found []sent, err error) {
	for _, tx := range block.Txs {
		if !signers[tx.From] {
			continue
		}
		receipt, err := node.Receipt(ctx, tx.Hash)
		if err != nil {
			return nil, err
		}
		if receipt == nil {
			return nil, fmt.Errorf("transaction %s of block %d has no receipt", tx.Hash, block.Number)
		}
		var body struct {
			To    chain.Address
			Input hexutil.Bytes
		}
		if err := k.chain.CallContext(ctx, &body, "eth_getTransactionByHash", tx.Hash.Hex()); err != nil {
			return nil, err
		}
		if body.To == tx.From && len(body.Input) == 0 {
			k.t.Logf("transaction %s of block %d cancels a call, or fills a gap", tx.Hash, block.Number)
			continue
		}
		call, is := gmx.ReadCall(body.Input)
		if !is {
			k.failf("transaction %s of block %d is no call of a keeper", tx.Hash, block.Number)
		}
		found = append(found, sent{receipt.Tx, call})
	}
	return found, nil
}

// checkOnce fails for every transaction of the keeper that came after its order or request was done, or its position
// liquidated, by an earlier one: a job sent twice. A deleveraging, and its state, may be needed again at any time: the
// venue refuses what is too much.
func (r record) checkOnce(k *keeper) {
	k.t.Helper()
	done := map[gmx.Call]sent{}
	for _, tx := range r.sent {
		if tx.Kind == job.Adl || tx.Kind == job.AdlState {
			continue
		}
		if before, repeated := done[tx.Call]; repeated && !r.revivedBetween(tx.Key, before.Tx, tx.Tx) {
			k.errorf("%s %s was sent twice: %s in block %d (ok %v), and again %s in block %d (ok %v)", tx.Kind, tx.Key,
				before.Hash, before.Block, before.OK,
				tx.Hash, tx.Block, tx.OK)
		}
		if tx.OK {
			done[tx.Call] = tx
		}
	}
}

func (r record) revivedBetween(key chain.Hash, first, second chain.Tx) bool {
	for _, p := range r.revived[key] {
		if p.Block >= first.Block && p.Block <= second.Block {
			return true
		}
	}
	return false
}

// unfinished names an order or request that a keeper has to execute and nobody did.
func (r record) unfinished() error {
	for _, row := range r.book.Rows(perp.Orders) {
		if o, ok := row.(perp.Order); ok && o.OrderType.IsMarket() && !o.Status.Final() {
			return fmt.Errorf("market order %s of block %d is %s", o.Key, o.Birth.Block, o.Status)
		}
	}
	for _, row := range r.book.Rows(perp.Requests) {
		if q, ok := row.(perp.Request); ok && !q.Status.Final() {
			return fmt.Errorf("%s %s of block %d is %s", q.Kind, q.Key, q.Birth.Block, q.Status)
		}
	}
	return nil
}

// compare holds the tables, where they stand level, against the fold of the canonical chain up to there.
func (k *keeper) compare(ctx context.Context) (r record, err error) {
	active, err := k.db.ActiveGeneration(ctx)
	if err != nil {
		return r, err
	}
	got, at, err := k.db.Checksums(ctx, active)
	if err != nil {
		return r, err
	}
	if !at.Level() {
		return r, fmt.Errorf("partitions stand apart by %d blocks", at.Skew())
	}
	if r, err = k.read(ctx, at.Watermark.Number); err != nil {
		return r, err
	}
	rows, err := pgtest.WithAudits(ctx, k.db, r.book)
	if err != nil {
		return r, err
	}
	want, err := pg.ChecksumsOf(rows)
	if err != nil {
		return r, err
	}
	return r, differing(got, want, at.Watermark.Number)
}

// differing names a table whose rows are not those of the fold. Parameters and transactions are left out: PARAM and TX
// records say more than logs do.
func differing(got, want pg.Checksums, block uint64) error {
	for _, table := range perp.Tables() {
		if table != perp.Parameters && table != perp.Transactions && got[table] != want[table] {
			return fmt.Errorf("table %s differs from the fold of the chain at block %d", table, block)
		}
	}
	return nil
}
