package bench

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// recorded is one line of a recording of the original contracts.
type recorded struct {
	BlockNumber uint64        `json:"blockNumber"`
	BlockHash   chain.Hash    `json:"blockHash"`
	Timestamp   uint64        `json:"timestamp"`
	TxHash      chain.Hash    `json:"txHash"`
	TxIndex     uint32        `json:"txIndex"`
	LogIndex    uint32        `json:"logIndex"`
	Address     chain.Address `json:"address"`
	Topics      []chain.Hash  `json:"topics"`
	Data        perp.Bytes    `json:"data"`
}

// transaction is the logs of one transaction, and its block.
type transaction struct {
	block chain.BlockRef
	logs  []chain.Log
}

func readRecording(t *testing.T, name string) (transactions []transaction) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "fixtures", "gmx", name+".jsonl.gz"))
	if err != nil {
		t.Skipf("no recording: %v", err)
	}
	defer func() { _ = file.Close() }()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if n := len(transactions); n == 0 || transactions[n-1].logs[0].TxHash != r.TxHash {
			transactions = append(transactions,
				transaction{block: chain.BlockRef{Number: r.BlockNumber, Hash: r.BlockHash,
					TimeMs: r.Timestamp * 1000}})
		}
		last := &transactions[len(transactions)-1]
		last.logs = append(last.logs, chain.Log{
			Address: r.Address, Topics: r.Topics, Data: r.Data, Block: r.BlockNumber, BlockHash: r.BlockHash,
			TxHash: r.TxHash, TxIndex: r.TxIndex,
			Index: r.LogIndex,
		})
	}
	return transactions
}

// PIPE-3: what the pipeline writes to Postgres for the logs of a recording is what a fold of the recording gives, for
// any number of partitions.
func TestRecordingsBecomeRows(t *testing.T) {
	for _, name := range []string{"trading-and-liquidation", "risk-parity", "toggles"} {
		for _, partitions := range []int{1, 4} {
			t.Run(name, func(t *testing.T) {
				transactions := readRecording(t, name)
				n := newBench(t, partitions)
				n.play(transactions)
				stop := n.run()
				n.await(1)
				stop()
				got, _, err := n.db.Checksums(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				want, err := pg.ChecksumsOf(foldOf(t, transactions))
				if err != nil {
					t.Fatal(err)
				}
				for _, table := range perp.Tables() {
					if got[table] != want[table] {
						t.Errorf("%d partitions: table %s is not that of the fold", partitions, table)
					}
				}
			})
		}
	}
}

// play publishes a recording, in ranges of a few transactions.
func (n *bench) play(transactions []transaction) {
	n.tb.Helper()
	router := gmx.NewRouter(1000)
	before := chain.BlockRef{Number: transactions[0].block.Number - 1, Hash: chain.Hash{1}}
	for len(transactions) > 0 {
		end := min(40, len(transactions))
		for end < len(transactions) && transactions[end].block == transactions[end-1].block {
			end++ // a block is not divided
		}
		n.playRange(router, before, transactions[:end])
		before, transactions = transactions[end-1].block, transactions[end:]
	}
	n.venue.tip = before
}

func (n *bench) playRange(router *gmx.Router, before chain.BlockRef, transactions []transaction) {
	n.tb.Helper()
	records, blocks := make([][]bus.Record, n.venue.partitions), make([][]chain.BlockRef, n.venue.partitions)
	add := func(p int, b chain.BlockRef, r bus.Record) {
		records[p] = append(records[p], r)
		if known := blocks[p]; len(known) == 0 || known[len(known)-1] != b {
			blocks[p] = append(blocks[p], b)
		}
	}
	for _, tx := range transactions {
		keys, err := router.Route(tx.logs)
		if err != nil {
			n.tb.Fatal(err)
		}
		for _, version := range versionsIn(tx) {
			for p := range n.venue.partitions {
				add(p, tx.block, n.venue.encode(chain.Hash{}, version))
			}
		}
		for i, l := range tx.logs {
			r := n.venue.encode(keys[i], wire.Log{Log: l})
			if !gmx.IsParameter(l) {
				add(wire.Partition(keys[i], n.venue.partitions), tx.block, r)
				continue
			}
			for p := range n.venue.partitions {
				add(p, tx.block, r)
			}
		}
	}
	for p, batch := range records {
		n.venue.send(p, append(batch, n.venue.encode(chain.Hash{}, wire.RangeEnd{
			Before: before, Last: transactions[len(transactions)-1].block, Blocks: blocks[p],
			Records: uint32(len(batch)),
			Digest:  wire.Digest(batch),
		})))
	}
}

// versionsIn says which version the handlers are of that speak in a transaction.
func versionsIn(tx transaction) (said []wire.Param) {
	for _, handler := range gmx.Speakers(tx.logs) {
		p := perp.HandlerVersion(handler, perp.V22b)
		said = append(said, wire.Param{Block: tx.block, Key: p.Key, Value: p.Value})
	}
	return said
}

func foldOf(t *testing.T, transactions []transaction) *perp.Book {
	t.Helper()
	book, decoder := perp.NewBook(), gmx.NewDecoder(transactions[0].logs[0].Address)
	for _, tx := range transactions {
		if err := book.Begin(tx.block.Number); err != nil {
			t.Fatal(err)
		}
		events, err := decoder.Transaction(tx.logs, tx.block.TimeMs)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range versionsIn(tx) {
			events = slices.Insert(events, 0, version.Event(tx.block.TimeMs))
		}
		for _, e := range events {
			if err := perp.Apply(book, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	return book
}
