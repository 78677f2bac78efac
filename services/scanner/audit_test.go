package scanner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/wire"
)

// audited is what a reader makes of one partition, by the rules of the design and nothing of the scanner's own code.
type audited struct {
	blocks    []auditedBlock // the branch as it stands
	finalized chain.BlockRef
	epochs    []uint64
	stale     int // records of an epoch that was over
	reorgs    []chain.Reorg
}

type auditedBlock struct {
	end    wire.BlockEnd
	params []wire.Param
	logs   []chain.Log
	txs    []chain.Tx
}

// audit reads a partition from its first record on.
func audit(ctx context.Context, client *bus.Client, partition int) (audited, error) {
	var a audited
	topic := wire.LogTopic(1337)
	first, end, err := client.Bounds(ctx, topic, partition)
	if err != nil || first != 0 {
		return a, fmt.Errorf("the partition begins at %d: %w", first, err)
	}
	reader := client.Reader(topic, partition, 0)
	var open auditedBlock
	var records []wire.Record
	epoch := uint64(0)
	for reader.Offset() < end {
		r, err := reader.Next(ctx)
		if err != nil {
			return a, err
		}
		m, meta, err := wire.Decode(r)
		if err != nil {
			return a, err
		}
		if meta.Epoch < epoch {
			a.stale++
			continue
		}
		epoch = meta.Epoch
		if err := a.take(m, r, &open, &records); err != nil {
			return a, fmt.Errorf("partition %d, offset %d: %w", partition, r.Offset, err)
		}
	}
	if len(records) > 0 {
		return a, fmt.Errorf("partition %d ends inside a block", partition)
	}
	return a, nil
}

func (a *audited) take(m wire.Message, r wire.Record, open *auditedBlock, records *[]wire.Record) error {
	switch m := m.(type) {
	case wire.Param:
		if len(open.logs)+len(open.txs) > 0 {
			return errors.New("a PARAM after logs or transactions")
		}
		open.params = append(open.params, m)
	case wire.Log:
		if len(open.txs) > 0 || len(open.logs) > 0 && open.logs[len(open.logs)-1].Index >= m.Index {
			return errors.New("a LOG out of order")
		}
		open.logs = append(open.logs, m.Log)
	case wire.Tx:
		if len(open.txs) > 0 && open.txs[len(open.txs)-1].Index >= m.Index {
			return errors.New("a TX out of order")
		}
		open.txs = append(open.txs, m.Tx)
	case wire.BlockEnd:
		open.end = m
		err := a.end(*open, *records)
		*open, *records = auditedBlock{}, nil
		return err
	default:
		if len(*records) > 0 {
			return fmt.Errorf("a %T inside a block", m)
		}
		return a.control(m)
	}
	*records = append(*records, r)
	return nil
}

// end is the apply rule: n = last+1 and parent = last hash. A block that comes twice is an error here: nothing may come twice from one scanner.
func (a *audited) end(b auditedBlock, records []wire.Record) error {
	ref := b.end.Block
	if int(b.end.Records) != len(records) || b.end.Digest != wire.Digest(records) {
		return fmt.Errorf("block %d does not hold what its end says", ref.Number)
	}
	if len(a.blocks) > 0 {
		if last := a.blocks[len(a.blocks)-1].end.Block; ref.Number != last.Number+1 || ref.Parent != last.Hash {
			return fmt.Errorf("block %d %s does not follow block %d %s", ref.Number, ref.Hash, last.Number, last.Hash)
		}
	}
	for _, l := range b.logs {
		if l.Block != ref.Number || l.BlockHash != ref.Hash {
			return fmt.Errorf("a log of block %d stands in block %d", l.Block, ref.Number)
		}
	}
	a.blocks = append(a.blocks, b)
	return nil
}

func (a *audited) control(m wire.Message) error {
	switch m := m.(type) {
	case wire.Epoch:
		a.epochs = append(a.epochs, m.Number)
	case wire.Reorg:
		at := slices.IndexFunc(a.blocks, func(b auditedBlock) bool { return b.end.Block == m.Ancestor })
		if at < 0 || at == len(a.blocks)-1 || a.blocks[len(a.blocks)-1].end.Block != m.OldTip {
			return fmt.Errorf("a reorg from %+v to %+v does not fit", m.OldTip, m.Ancestor)
		}
		a.blocks = a.blocks[:at+1]
		a.reorgs = append(a.reorgs, m.Reorg)
	case wire.Finalized:
		known := slices.ContainsFunc(a.blocks, func(b auditedBlock) bool { return b.end.Block.Hash == m.Block.Hash })
		if m.Block.Number <= a.finalized.Number || !known && m.Block.Number > 0 {
			return fmt.Errorf("block %d is final after block %d, known %t", m.Block.Number, a.finalized.Number, known)
		}
		a.finalized = m.Block
	default:
		return fmt.Errorf("a %T has no place here", m)
	}
	return nil
}

// owners are the accounts of events that name none.
var owners = map[chain.Hash]chain.Hash{lostOrder: accountOf(7).Hash()}

// wantedPartition is where a log belongs, in the words of the design.
func wantedPartition(l chain.Log) int {
	name := func(event string) bool { return l.Topics[1] == chain.Keccak256([]byte(event)) }
	switch {
	case name("SetUint"):
		return 0
	case name("PoolAmountUpdated"):
		return wire.Partition(l.Topics[2], partitions)
	case name("OrderSizeDeltaAutoUpdated"):
		return wire.Partition(owners[l.Topics[2]], partitions)
	default:
		return wire.Partition(l.Topics[3], partitions)
	}
}

// truth is what the node itself says of its chain, asked through an unrelated client.
type truth struct {
	client *ethclient.Client
	signer chain.Address
	known  map[chain.Hash][]auditedBlock
}

func newTruth(d *devnet) *truth {
	return &truth{d.client, d.account(2), map[chain.Hash][]auditedBlock{}}
}

// block returns what each partition must hold of a block.
func (tr *truth) block(ctx context.Context, hash chain.Hash) ([]auditedBlock, error) {
	if want, known := tr.known[hash]; known {
		return want, nil
	}
	block, err := tr.client.BlockByHash(ctx, common.Hash(hash))
	if err != nil {
		return nil, err
	}
	receipts, err := tr.client.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(block.Hash(), false))
	if err != nil {
		return nil, err
	}
	want := make([]auditedBlock, partitions)
	for i, receipt := range receipts {
		tx, ours := block.Transactions()[i], 0
		for _, l := range receipt.Logs {
			if l.Address != common.Address(emitter) || !slices.Contains(gmxtest.Topic0[:], l.Topics[0].Hex()) {
				continue
			}
			log := logOf(l)
			p := wantedPartition(log)
			want[p].logs = append(want[p].logs, log)
			ours++
		}
		from, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		if err != nil {
			return nil, err
		}
		if ours > 0 || chain.Address(from) == tr.signer {
			want[0].txs = append(want[0].txs, chain.Tx{
				Hash: chain.Hash(tx.Hash()), From: chain.Address(from), To: chain.Address(*tx.To()), Nonce: tx.Nonce(), Block: block.NumberU64(),
				BlockHash: chain.Hash(block.Hash()), Index: uint32(i), OK: receipt.Status == 1, GasUsed: receipt.GasUsed,
				GasPrice: receipt.EffectiveGasPrice.Uint64(),
			})
		}
	}
	tr.known[hash] = want
	return want, nil
}

func logOf(l *types.Log) chain.Log {
	log := chain.Log{
		Address: chain.Address(l.Address), Data: l.Data, Block: l.BlockNumber, BlockHash: chain.Hash(l.BlockHash), TxHash: chain.Hash(l.TxHash),
		TxIndex: uint32(l.TxIndex), Index: uint32(l.Index),
	}
	for _, t := range l.Topics {
		log.Topics = append(log.Topics, chain.Hash(t))
	}
	return log
}

// compare says what is different between the topic and the chain: nil if every partition holds exactly the canonical blocks from the first one on.
func compare(ctx context.Context, k *kafka, tr *truth, first uint64) ([]audited, error) {
	header, err := tr.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, err
	}
	count := int(header.Number.Uint64() - first + 1)
	all := make([]audited, partitions)
	for p := range all {
		if all[p], err = audit(ctx, k.client, p); err != nil {
			return all, &wrongError{err}
		}
		blocks := all[p].blocks
		if len(blocks) != count || blocks[len(blocks)-1].end.Block.Hash != chain.Hash(header.Hash()) {
			return all, fmt.Errorf("partition %d holds %d blocks, the chain %d", p, len(blocks), count)
		}
	}
	for i := range all[0].blocks { // linked by parents up to the head, so canonical
		hash := all[0].blocks[i].end.Block.Hash
		want, err := tr.block(ctx, hash)
		if err != nil {
			return all, err
		}
		for p, w := range want {
			got := all[p].blocks[i]
			if got.end.Block.Hash != hash || !reflect.DeepEqual(got.logs, w.logs) || !reflect.DeepEqual(got.txs, w.txs) {
				return all, &wrongError{fmt.Errorf("partition %d: block %+v holds\n%+v\n%+v, want\n%+v\n%+v", p, got.end.Block, got.logs, got.txs, w.logs, w.txs)}
			}
		}
	}
	return all, nil
}

// wrongError is something no waiting mends.
type wrongError struct{ error }

// settle waits until the topic holds the chain, and returns what readers make of it.
func settle(t *testing.T, k *kafka, tr *truth) (all []audited) {
	t.Helper()
	eventually(t, "the topic holds the chain", func() (err error) {
		all, err = compare(t.Context(), k, tr, 1)
		if wrong, is := errors.AsType[*wrongError](err); is {
			t.Fatal(wrong)
		}
		return err
	})
	return all
}
