package scanner

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// kept keeps what is produced, by partition.
type kept map[int][]wire.Message

func (k kept) Produce(_ context.Context, partition int, records []wire.Record) (int64, error) {
	for _, r := range records {
		m, _, err := wire.Decode(r)
		if err != nil {
			return 0, err
		}
		k[partition] = append(k[partition], m)
	}
	return 0, nil
}

// longAgo is a tenure whose only partition has moved on by many blocks since a block was published without proof.
func longAgo(t *testing.T, blocks uint64, topic producer) (*tenure, doubt) {
	t.Helper()
	metrics := newMetrics(prometheus.NewRegistry())
	at := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	st := &stream{}
	tn := &tenure{Scanner: &Scanner{log: zerolog.Nop(), metrics: metrics}, producer: topic, streams: []*stream{st},
		doubts: newDoubts(func(int) {})}
	if err := st.branch.push(placed{BlockRef: at}); err != nil {
		t.Fatal(err)
	}
	tn.doubt(at)
	for next := at; next.Number < at.Number+blocks; {
		next = ref(next.Number+1, 0, next)
		if err := st.branch.push(placed{BlockRef: next, verified: true}); err != nil {
			t.Fatal(err)
		}
	}
	open := tn.doubts.all()
	if len(open) != 1 || open[0].block != at {
		t.Fatalf("to be proven: %+v", open)
	}
	return tn, open[0]
}

// A block whose receipts stayed away for longer than readers can undo is still said to be proven once they are there:
// what waits for that can go on. One that was wrong cannot be taken back any more, and that is counted.
func TestProofComesLate(t *testing.T) {
	for _, blocks := range []uint64{10, chain.UndoHorizon + 10, 3 * chain.UndoHorizon} {
		topic := kept{}
		tn, d := longAgo(t, blocks, topic)
		if err := tn.prove(t.Context(), finding{doubt: d}); err != nil {
			t.Fatal(err)
		}
		if said := topic[0]; len(said) != 1 || said[0] != (wire.Proven{Block: d.block}) {
			t.Errorf("after %d blocks: %+v", blocks, said)
		}
		topic = kept{}
		tn, d = longAgo(t, blocks, topic)
		tn.Scanner.collector = &collector{}
		if blocks <= chain.UndoHorizon {
			continue
		}
		if err := tn.correct(t.Context(), finding{doubt: d, wrong: true}); err != nil || len(topic[0]) > 0 {
			t.Errorf("after %d blocks: %v, %+v", blocks, err, topic[0])
		}
		if n := testutil.ToFloat64(tn.metrics.tooDeep); n != 1 {
			t.Errorf("after %d blocks: %v wrong blocks were too deep", blocks, n)
		}
	}
}

// Blocks wait for proof for as long as it takes, and not only the newest thousand.
func TestDoubtsAreKept(t *testing.T) {
	open := newDoubts(func(int) {})
	for n := range uint64(3 * chain.UndoHorizon) {
		open.add(doubt{block: ref(n+1, 0, chain.BlockRef{})})
	}
	if n := len(open.all()); n != 3*chain.UndoHorizon {
		t.Errorf("%d of %d blocks are to be proven", n, 3*chain.UndoHorizon)
	}
}

// What was corrected is remembered while it could have to be published again, and no longer.
func TestTrustedContentIsForgotten(t *testing.T) {
	c := &collector{}
	for n := range uint64(5 * chain.UndoHorizon) {
		c.trust(found{block: ref(n+1, 0, chain.BlockRef{}), verified: true})
	}
	if n := len(c.trusted); n != chain.UndoHorizon+1 {
		t.Errorf("%d blocks are remembered", n)
	}
	last := ref(5*chain.UndoHorizon, 0, chain.BlockRef{})
	if f, known := c.trustedContent(last.Hash); !known || f.block != last {
		t.Errorf("the newest is not: %+v, %t", f, known)
	}
}

// What a node tells of a signer's transaction is proven or unproven like any log, also in a block that holds none of
// ours: a lie about it is never called verified, and is corrected (PIPE-2).
func TestLiesAboutSignersAreCorrected(t *testing.T) {
	for name, told := range map[string]lies{
		"receipts that are not the block's": {getReceipts: asFailed},
		"a receipt by itself":               {getReceipts: refuses, "eth_getTransactionReceipt": asFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, k := startDevnet(t), startKafka(t)
			tr := newTruth(d)
			node := startLiar(t, d)
			d.mine(1)
			s := start(t, through(testConfig(d, k.Addr()), node), k)
			settle(t, k, tr)
			node.tellAll(told)
			d.signerSends(chain.Address{0xdd})
			published(t, s, d)
			if n := testutil.ToFloat64(s.metrics.unproven); n != 1 {
				t.Errorf("%v blocks are in doubt", n)
			}
			node.repent(told)
			if all := proven(t, k, tr, s); len(all[0].corrections) == 0 {
				t.Error("no correction")
			}
		})
	}
}
