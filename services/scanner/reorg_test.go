package scanner

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
)

// Reorgs of every depth become one REORG for each partition and the new branch (PIPE-2). KEEPER_LONG=1 tries the deep
// ones in every way.
func TestReorgs(t *testing.T) {
	for _, p := range []int{1, 4} {
		t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) {
			withPartitions(t, p)
			for _, style := range []evmnode.ForkStyle{evmnode.Replay, evmnode.Drop} {
				t.Run(string(style), func(t *testing.T) {
					t.Parallel()
					depths := []uint64{1, 3, 8, 16, 24}
					if os.Getenv("KEEPER_LONG") != "" || p == 4 && style == evmnode.Replay {
						depths = append(depths, 120, 240, 999)
					}
					reorgs(t, style, depths)
				})
			}
		})
	}
}

func reorgs(t *testing.T, style evmnode.ForkStyle, depths []uint64) {
	d, k := startDevnet(t), startKafka(t)
	d.StallFinality()
	start(t, testConfig(d, k.Addr()), k)
	tr := newTruth(d)
	for i := range byte(8) {
		d.trade(i)
	}
	d.mine(slices.Max(depths))
	settle(t, k, tr)
	for i, depth := range depths {
		d.reorg(depth, style)
		for p, a := range settle(t, k, tr) {
			if len(a.reorgs) != i+1 || a.reorgs[i].OldTip.Number-a.reorgs[i].Ancestor.Number != depth {
				t.Fatalf("partition %d: after a reorg of %d blocks the reorgs are %+v", p, depth, a.reorgs)
			}
		}
		d.trade(20 + byte(i))
		settle(t, k, tr)
	}
}

// longTopic is a chain of so many blocks that are not final, and a topic that holds it.
func longTopic(t *testing.T, blocks uint64) (*devnet, *kafka) {
	t.Helper()
	d, k := startDevnet(t), startKafka(t)
	d.StallFinality()
	d.trade(1)
	d.mine(blocks)
	s := start(t, testConfig(d, k.Addr()), k)
	settle(t, k, newTruth(d))
	_ = s.stop()
	return d, k
}

// A reorg that is deeper than readers can undo ends the scanner before it is written, block by block and where ranges
// would follow; the deepest that they can is written (PIPE-2). Every case has a chain of its own. They share the topic:
// who ends leaves nothing on it but a claim.
func TestReorgBeyondTheHorizon(t *testing.T) {
	t.Parallel()
	base, k := longTopic(t, chain.UndoHorizon+400)
	for _, tt := range []struct {
		name         string
		depth, later uint64
	}{
		{"deeper", chain.UndoHorizon + 1, 0},
		{"deeper than what is remembered too", chain.UndoHorizon + 300, 0},
		{"deeper, with history to catch up", chain.UndoHorizon + 1, 20},
		{"as deep as readers go", chain.UndoHorizon, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := base.again(t)
			cfg := testConfig(d, k.Addr())
			d.reorg(tt.depth, evmnode.Replay)
			if tt.later > 0 {
				cfg.Scanner.Backfill.MaxRange = 16
				d.mine(tt.later)
				d.Resume()
			}
			s := start(t, cfg, k)
			if tt.depth <= chain.UndoHorizon {
				settle(t, k, newTruth(d))
				return
			}
			eventually(t, "the scanner has ended", func() error {
				select {
				case <-s.ended:
					return nil
				default:
				}
				for p, a := range audits(t, k) {
					if len(a.reorgs) > 0 {
						t.Fatalf("partition %d: a reorg of %d blocks was written", p, tt.depth)
					}
				}
				return errNotYet
			})
			if s.err == nil || !strings.Contains(s.err.Error(), "deeper than its readers can undo") {
				t.Errorf("the scanner ended with %v", s.err)
			}
			for p, a := range audits(t, k) {
				if len(a.reorgs) > 0 {
					t.Errorf("partition %d: reorgs %+v", p, a.reorgs)
				}
			}
		})
	}
}

// One endpoint whose branch parts deeper than readers can undo, while another still has the topic's, does not end the
// scanner, be its blocks remembered or not: it is not believed. Once all have left it, the scanner ends (PIPE-2).
func TestOneEndpointCannotEndTheScanner(t *testing.T) {
	for name, depth := range map[string]uint64{
		"within what is remembered":    chain.UndoHorizon + 1,
		"below all that is remembered": 2*chain.UndoHorizon + 100,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, k := startDevnet(t), startKafka(t)
			d.StallFinality()
			tr := newTruth(d)
			d.trade(1)
			d.mine(2*chain.UndoHorizon + 200)
			hasty, steady := startLiar(t, d), startLiar(t, d)
			s := start(t, through(testConfig(d, k.Addr()), hasty, steady), k)
			settle(t, k, tr)
			past := frozen(t, d)
			steady.tellAll(past)
			d.reorg(depth, evmnode.Replay)
			suspected(t, s, "readers can go back")
			for p, a := range audits(t, k) {
				if len(a.reorgs) > 0 {
					t.Errorf("partition %d: reorgs %+v", p, a.reorgs)
				}
			}
			for method := range past {
				steady.tell(method, nil)
			}
			if err := s.wait(); err == nil || !strings.Contains(err.Error(), "deeper than its readers can undo") {
				t.Errorf("the scanner ended with: %v", err)
			}
		})
	}
}

// A reorg while the branch of the one before is still being published.
func TestReorgInsideAReorg(t *testing.T) {
	for _, p := range []int{1, 4} {
		for _, second := range []uint64{3, 20, 40} { // inside the new branch, to its beginning, and below it
			t.Run(fmt.Sprintf("P=%d %d", p, second), func(t *testing.T) {
				withPartitions(t, p)
				d, k := startDevnet(t), startKafka(t)
				d.StallFinality()
				tr := newTruth(d)
				cfg := testConfig(d, k.Addr())
				d.trade(1)
				d.mine(40)
				door := &gate{}
				start(t, cfg, k, door.on)
				settle(t, k, tr)
				door.close()
				d.reorg(20, evmnode.Replay)
				eventually(t, "the first reorg is about to be written", func() error {
					if door.waiting() < p {
						return errNotYet
					}
					return nil
				})
				d.trade(2)
				d.reorg(second, evmnode.Replay)
				door.open()
				settle(t, k, tr)
				d.trade(3)
				settle(t, k, tr)
			})
		}
	}
}

// The chain with the higher justified block wins, also where its head is lower.
func TestShorterBranch(t *testing.T) {
	for _, lower := range []uint64{1, 4, 9} {
		t.Run(fmt.Sprint(lower), func(t *testing.T) {
			d, k := startDevnet(t), startKafka(t)
			d.StallFinality()
			tr := newTruth(d)
			for i := range byte(6) {
				d.trade(i)
			}
			node := startLiar(t, d)
			start(t, through(testConfig(d, k.Addr()), node), k)
			settle(t, k, tr)
			head := d.Head().Number.Uint64() - lower
			node.tell("eth_getBlockByNumber", func(params []json.RawMessage, honest json.RawMessage) json.RawMessage {
				if string(params[0]) != `"latest"` {
					return nil
				}
				var raw json.RawMessage
				if err := d.client.Client().CallContext(t.Context(), &raw, "eth_getBlockByNumber",
					fmt.Sprintf("0x%x", head), false); err != nil {
					return nil
				}
				return raw
			})
			d.reorg(10, evmnode.Replay)
			tr.head = new(big.Int).SetUint64(head)
			for p, a := range settle(t, k, tr) {
				if len(a.reorgs) != 1 {
					t.Errorf("partition %d: %d reorgs", p, len(a.reorgs))
				}
			}
			node.tell("eth_getBlockByNumber", nil)
			tr.head = nil
			d.trade(7)
			settle(t, k, tr)
		})
	}
}

// step is something that happens in a script.
type step struct {
	What  string
	Depth uint64
	Nth   int
	After bool
}

// scripts draws what happens to a scanner: blocks, forks, lying nodes, and deaths at any batch.
func scripts(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			What: rapid.SampledFrom([]string{"blocks", "empty blocks", "replay", "drop", "lie", "repent", "die", "die",
				"die"}).Draw(t, "what"),
			Depth: rapid.SampledFrom([]uint64{1, 2, 3, 8, 16}).Draw(t, "depth"),
			Nth:   rapid.IntRange(1, 25).Draw(t, "nth"),
			After: rapid.Bool().Draw(t, "after"),
		}
	}), 3, 12).Draw(t, "script")
}

// Whatever happens, and wherever scanners die, the topic becomes what the chain says, and nothing wrong was ever
// published (PIPE-2, PIPE-13). KEEPER_LONG=1 tries many more scripts.
func TestAnyScript(t *testing.T) {
	checks := "6"
	if os.Getenv("KEEPER_LONG") != "" {
		checks = "200"
	}
	before := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
	for _, p := range []int{1, 4} {
		rapid.Check(t, func(rt *rapid.T) {
			script := scripts(rt)
			backfill := rapid.Bool().Draw(rt, "ranges")
			if !t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) { withPartitions(t, p); play(t, script, backfill) }) {
				rt.Fatalf("P=%d, ranges %t: %+v", p, backfill, script)
			}
		})
	}
}

func play(t *testing.T, script []step, backfill bool) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	cfg := through(testConfig(d, k.Addr()), node)
	if backfill {
		cfg = inRanges(cfg)
	}
	d.trade(0)
	d.mine(20)
	d.StallFinality() // at this point: no fork goes below
	s := start(t, cfg, k)
	room := uint64(0) // blocks that are not final
	for i, st := range script {
		switch st.What {
		case "blocks":
			before := d.Head().Number.Uint64()
			d.trade(byte(i + 1))
			room += d.Head().Number.Uint64() - before
		case "empty blocks":
			d.mine(st.Depth)
			room += st.Depth
		case "replay", "drop":
			if depth := min(st.Depth, room); depth > 0 {
				d.reorg(depth, evmnode.ForkStyle(st.What))
			}
		case "lie":
			node.tell(getReceipts, leavesOutOfReceipts)
		case "repent":
			node.tell(getReceipts, nil)
		case "die":
			_ = s.stop()
			wire := &tripwire{nth: st.Nth, after: st.After}
			s = start(t, cfg, k, wire.on)
			d.trade(byte(i + 1))
			room += 4
			eventually(t, "the scanner dies, waits for a proof, or has nothing left to write", func() error {
				select {
				case <-s.ended:
					return nil
				default:
				}
				if testutil.ToFloat64(s.metrics.unproven) > 0 {
					return nil
				}
				_, err := compare(t.Context(), k, tr, 1)
				return err
			})
			err := s.stop()
			if !errors.Is(err, errKilled) && !strings.Contains(err.Error(), "canceled") {
				t.Fatalf("the scanner ended with %v", err)
			}
			s = start(t, cfg, k)
		}
	}
	node.tell(getReceipts, nil)
	d.trade(99)
	proven(t, k, tr)
}
