package scanner

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// finding is what became of a block that was published without proof: it is what its receipts prove, or something else.
type finding struct {
	doubt

	wrong     bool
	reason    string
	proven    found         // what the receipts prove
	published chan struct{} // closed once the topic says so
}

// doubt notes a block for proof if a partition holds it unverified.
func (t *tenure) doubt(ref chain.BlockRef) {
	d := doubt{block: ref}
	unverified := false
	for _, st := range t.streams {
		p, on := st.branch.at(ref.Number)
		if !on || p.Hash != ref.Hash {
			return
		}
		unverified = unverified || !p.verified
		d.attempt = p.attempt
		d.places = append(d.places, place{p.first, p.end, p.verified})
	}
	if unverified {
		t.doubts.add(d)
	}
}

// doubtAll notes every unverified block of the tails, at the beginning of a tenure.
func (t *tenure) doubtAll() {
	for _, p := range slices.Clone(t.streams[0].branch.blocks) {
		t.doubt(p.BlockRef)
	}
}

// verify proves in the background what was published without proof, until ctx ends. What it finds is handed to the
// publishing goroutine, which publishes that the block is proven, or corrects it.
func (t *tenure) verify(ctx context.Context) error {
	tries := retry.New(retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second})
	for tries.Next(ctx) {
		if err := t.doubts.await(ctx); err != nil {
			return err
		}
		settled, err := t.verifyOpen(ctx)
		if settled {
			tries.Reset()
		}
		tries.Failed(err)
	}
	return context.Cause(ctx)
}

// enoughRefusals is after how many blocks whose receipts every endpoint refuses nobody is asked for those of the others
// for now. One such block, whose receipts may be lost for good, keeps none above it from being proven.
const enoughRefusals = 8

// verifyOpen looks at every open block once. It reports whether any was settled, and why the last one that was not
// could not be.
func (t *tenure) verifyOpen(ctx context.Context) (settled bool, last error) {
	refused := 0
	for _, d := range t.doubts.all() {
		found, err := t.examine(ctx, d)
		switch {
		case ctx.Err() != nil:
			return settled, context.Cause(ctx)
		case err != nil:
			last = err
			t.log.Debug().Err(err).Uint64("block", d.block.Number).Msg("the block cannot be proven yet")
			if evm.Refused(err) {
				if refused++; refused == enoughRefusals {
					return settled, err
				}
			}
			continue
		}
		if err := t.hand(ctx, found); err != nil {
			return settled, err
		}
		settled = true
	}
	return settled, last
}

// settleOpen looks at every open block that can still be taken back, and publishes what it finds, up to the first that
// is wrong. It is for the publishing goroutine. Unproven is the oldest block that could not be proven, 0 if there is
// none.
func (t *tenure) settleOpen(ctx context.Context) (unproven uint64, wrong bool, err error) {
	refused := 0
	for _, d := range t.doubts.all() {
		if p, on := t.streams[0].branch.at(d.block.Number); !on || p.Hash != d.block.Hash || refused == enoughRefusals {
			continue
		}
		f, err := t.examine(ctx, d)
		switch {
		case ctx.Err() != nil:
			return 0, false, context.Cause(ctx)
		case err != nil:
			t.log.Debug().Err(err).Uint64("block", d.block.Number).Msg("the block cannot be proven yet")
			if unproven == 0 || d.block.Number < unproven {
				unproven = d.block.Number
			}
			if evm.Refused(err) {
				refused++
			}
			continue
		}
		f.published = make(chan struct{})
		if err := t.settle(ctx, f); err != nil || f.wrong {
			return unproven, true, err
		}
	}
	return unproven, false, nil
}

// hand gives a finding to the publishing goroutine, and waits until it has been published.
func (t *tenure) hand(ctx context.Context, f finding) error {
	f.published = make(chan struct{})
	select {
	case t.findings <- f:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-f.published:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// examine compares a block on the topic with what its receipts prove. An error means that they could not be had, or
// prove nothing.
func (t *tenure) examine(ctx context.Context, d doubt) (finding, error) {
	block, err := t.chain.BlockWithReceipts(ctx, d.block.Hash)
	if err != nil {
		return finding{}, err
	}
	receipts, err := t.collector.proof(ctx, block)
	if err != nil {
		return finding{}, err
	}
	logs := chosen(receipts, t.collector.filter)
	txs, err := t.collector.transactions(ctx, block, receipts, logs)
	if err != nil {
		return finding{}, err
	}
	written, err := t.onTopic(ctx, d)
	if err != nil {
		return finding{}, err
	}
	if written.is(logs, txs) {
		return finding{doubt: d}, nil
	}
	proven := found{block: d.block, logs: logs, txs: txs, verified: true}
	return finding{doubt: d, wrong: true, proven: proven,
		reason: fmt.Sprintf("published with %d logs and %d transactions, the receipts prove %d and %d%s",
			written.count(), len(written.txs), len(logs), len(txs), likeCounts(written.count(), len(logs)))}, nil
}

func likeCounts(onTopic, proven int) string {
	if onTopic == proven {
		return " (others)"
	}
	return ""
}

// topicContent is what the topic holds of a block. A scanner that was killed between partitions may have left it in some
// as one node has it, and the next one in the others as another has it.
type topicContent struct {
	parameters [][]chain.Log // logs that set parameters, by partition: they stand in every one
	logs       []chain.Log   // all others, in the order of their index; each stands in one partition
	txs        []chain.Tx
}

// is reports whether the topic holds the same as a block's receipts.
func (c topicContent) is(logs []chain.Log, txs []chain.Tx) bool {
	var parameters, others []chain.Log
	for _, l := range logs {
		if gmx.IsParameter(l) {
			parameters = append(parameters, l)
		} else {
			others = append(others, l)
		}
	}
	differs := func(of []chain.Log) bool { return !slices.EqualFunc(of, parameters, sameLog) }
	return !slices.ContainsFunc(c.parameters, differs) && slices.EqualFunc(c.logs, others, sameLog) &&
		slices.EqualFunc(c.txs, txs, sameTx)
}

// count is how many logs the block has for whoever reads the partition that lacks most.
func (c topicContent) count() int {
	least := math.MaxInt
	for _, of := range c.parameters {
		least = min(least, len(of))
	}
	return len(c.logs) + least
}

// onTopic reads from the topic what it holds of a block.
func (t *tenure) onTopic(ctx context.Context, d doubt) (c topicContent, err error) {
	c.parameters = make([][]chain.Log, len(d.places))
	for p, at := range d.places {
		messages, err := t.reread(ctx, p, at)
		if err != nil {
			return topicContent{}, err
		}
		for _, m := range messages {
			switch m := m.(type) {
			case wire.Log:
				if gmx.IsParameter(m.Log) {
					c.parameters[p] = append(c.parameters[p], m.Log)
				} else {
					c.logs = append(c.logs, m.Log)
				}
			case wire.Tx:
				c.txs = append(c.txs, m.Tx)
			}
		}
	}
	slices.SortStableFunc(c.logs, func(a, b chain.Log) int { return int(a.Index) - int(b.Index) })
	return c, nil
}

// reread reads the records of a block in a partition. What a scanner that had been replaced has written between its
// batches is left out; what is not all that the block's end counts is an error.
func (t *tenure) reread(ctx context.Context, partition int, at place) (messages []wire.Message, err error) {
	reader := t.kafka.Reader(t.topic, partition, at.first)
	var records []wire.Record
	for epoch := uint64(0); reader.Offset() <= at.end; {
		r, err := reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		m, meta, err := wire.Decode(r)
		if err != nil {
			return nil, err
		}
		if meta.Epoch < epoch {
			continue
		}
		epoch = meta.Epoch
		switch m := m.(type) {
		case wire.Part:
		case wire.BlockEnd:
			if int(m.Records) != len(records) || m.Digest != wire.Digest(records) {
				return nil, fmt.Errorf("%s/%d does not hold block %d from offset %d to %d", t.topic, partition,
					m.Block.Number, at.first, at.end)
			}
		default:
			records, messages = append(records, r), append(messages, m)
		}
	}
	return messages, nil
}

func sameLog(a, b chain.Log) bool {
	return a.Address == b.Address && slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data) &&
		a.Block == b.Block &&
		a.BlockHash == b.BlockHash && a.TxHash == b.TxHash && a.TxIndex == b.TxIndex && a.Index == b.Index
}

// sameTx compares what body and receipts prove of a transaction, and its sender.
func sameTx(a, b chain.Tx) bool {
	return a.Hash == b.Hash && a.From == b.From && a.Index == b.Index && a.OK == b.OK && a.GasUsed == b.GasUsed
}
