package scanner

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/wire"
)

// owners are the accounts of events that name none.
var owners = map[chain.Hash]chain.Hash{lostOrder: accountOf(7).Hash()}

// wantedPartitions are where a log belongs, in the words of the design.
func wantedPartitions(l chain.Log) []int {
	if everywhere := []string{"SetUint", workflow, launched}; slices.ContainsFunc(everywhere,
		func(name string) bool { return l.Topics[1] == chain.Keccak256([]byte(name)) }) {
		all := make([]int, partitions)
		for p := range all {
			all[p] = p
		}
		return all
	}
	return []int{wantedPartition(l)}
}

func wantedPartition(l chain.Log) int {
	name := func(event string) bool { return l.Topics[1] == chain.Keccak256([]byte(event)) }
	switch {
	case name("PoolAmountUpdated"), name("Funding"):
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
	known  map[chain.Hash][]auditedBlock
	ranged map[uint64]chain.Hash // canonical hashes of blocks that are final
	head   *big.Int              // the block the topic must end with; nil for the chain's head
}

func newTruth(d *devnet) *truth {
	return &truth{d.client, map[chain.Hash][]auditedBlock{}, map[uint64]chain.Hash{}, nil}
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
	want := make([]auditedBlock, partitions)
	if len(block.Transactions()) == 0 {
		tr.known[hash] = want
		return want, nil
	}
	receipts, err := tr.client.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(block.Hash(), false))
	if err != nil {
		return nil, err
	}
	for i, receipt := range receipts {
		tx, ours := block.Transactions()[i], 0
		for _, l := range receipt.Logs {
			if l.Address != common.Address(emitter) || !slices.Contains(gmxtest.Topic0[:], l.Topics[0].Hex()) {
				continue
			}
			log := logOf(l)
			for _, p := range wantedPartitions(log) {
				want[p].logs = append(want[p].logs, log)
			}
			ours++
		}
		from, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		if err != nil {
			return nil, err
		}
		if ours > 0 {
			want[0].txs = append(want[0].txs, chain.Tx{
				Hash: chain.Hash(tx.Hash()), From: chain.Address(from), To: chain.Address(*tx.To()), Nonce: tx.Nonce(),
				Block:     block.NumberU64(),
				BlockHash: chain.Hash(block.Hash()), Index: uint32(i), OK: receipt.Status == 1,
				GasUsed:  receipt.GasUsed,
				GasPrice: receipt.EffectiveGasPrice.Uint64(),
			})
		}
	}
	tr.known[hash] = want
	return want, nil
}

func logOf(l *types.Log) chain.Log {
	log := chain.Log{
		Address: chain.Address(l.Address), Data: l.Data, Block: l.BlockNumber, BlockHash: chain.Hash(l.BlockHash),
		TxHash:  chain.Hash(l.TxHash),
		TxIndex: uint32(l.TxIndex), Index: uint32(l.Index),
	}
	for _, t := range l.Topics {
		log.Topics = append(log.Topics, chain.Hash(t))
	}
	return log
}

// lastWord returns an error if anything that was ever published was wrong.
func lastWord(ctx context.Context, tr *truth, all []audited) error {
	for p, a := range all {
		for _, b := range a.seen {
			want, err := tr.block(ctx, b.hash())
			if errors.Is(err, ethereum.NotFound) {
				continue // a dropped branch: nobody knows any more
			}
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(b.logs, want[p].logs) || !reflect.DeepEqual(b.txs, want[p].txs) {
				return fmt.Errorf("partition %d: block %d was published with %d logs and %d transactions, it "+
					"has %d and %d",
					p, b.end.Block.Number, len(b.logs), len(b.txs), len(want[p].logs), len(want[p].txs))
			}
		}
	}
	return nil
}

// compare reports what is different between the topic and the chain: nil if every partition holds exactly the canonical
// blocks from the first one on.
func compare(ctx context.Context, k *kafka, tr *truth, first uint64) ([]audited, error) {
	header, err := tr.client.HeaderByNumber(ctx, tr.head)
	if err != nil {
		return nil, err
	}
	count := int(header.Number.Uint64() - first + 1)
	all := make([]audited, partitions)
	for p := range all {
		if all[p], err = k.audit(ctx, p); err != nil {
			return all, &wrongError{err}
		}
		blocks := all[p].blocks
		if len(blocks) != count || blocks[len(blocks)-1].end.Block.Hash != chain.Hash(header.Hash()) {
			return all, fmt.Errorf("partition %d holds %d blocks, the chain %d", p, len(blocks), count)
		}
	}
	for i := range all[0].blocks {
		hash, err := tr.hash(ctx, all, i, first)
		if err != nil {
			return all, err
		}
		want, err := tr.block(ctx, hash)
		if err != nil {
			return all, err
		}
		for p, w := range want {
			got := all[p].blocks[i]
			other := !got.hash().IsZero() && got.hash() != hash
			if other || !reflect.DeepEqual(got.logs, w.logs) || !reflect.DeepEqual(got.txs, w.txs) {
				return all, &wrongError{fmt.Errorf("partition %d: block %+v holds\n%+v\n%+v, want\n%+v\n%+v",
					p, got.end.Block, got.logs, got.txs, w.logs, w.txs)}
			}
		}
	}
	return all, nil
}

// hash returns the canonical hash of the i-th block. Blocks are linked by parents up to the head, so that any partition
// that knows it will do.
func (tr *truth) hash(ctx context.Context, all []audited, i int, first uint64) (chain.Hash, error) {
	for _, a := range all {
		if hash := a.blocks[i].hash(); !hash.IsZero() {
			return hash, nil
		}
	}
	number := first + uint64(i)
	if hash, known := tr.ranged[number]; known {
		return hash, nil
	}
	header, err := tr.client.HeaderByNumber(ctx, new(big.Int).SetUint64(number))
	if err != nil {
		return chain.Hash{}, err
	}
	tr.ranged[number] = chain.Hash(header.Hash())
	return tr.ranged[number], nil
}

// wrongError is something no waiting helps: records that no reader can follow, or that are not what the chain says.
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
