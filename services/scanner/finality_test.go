package scanner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/wire"
)

// finalized waits until the topic calls nearly everything final.
func finalized(t *testing.T, d *devnet, k *kafka, tr *truth) {
	t.Helper()
	eventually(t, "finality has come", func() error {
		for _, a := range settle(t, k, tr) {
			if a.finalized.Number+2 < d.Head().Number.Uint64() {
				return fmt.Errorf("%w: %d", errNotYet, a.finalized.Number)
			}
		}
		return nil
	})
}

// What becomes final while the chain makes no block is said, however long after the last head (PIPE-2).
func TestFinalWhileNoHeadComes(t *testing.T) {
	t.Parallel()
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.StallFinality()
	start(t, testConfig(d, k.Addr()), k)
	d.trade(1)
	d.mine(10)
	settle(t, k, tr)
	time.Sleep(2 * finalPause) // it was asked for once, and nothing was final
	d.Resume()
	finalized(t, d, k, tr)
}

// audits reads all partitions; a topic no twin can follow fails the test.
func audits(t *testing.T, k *kafka) []audited {
	t.Helper()
	all := make([]audited, partitions)
	for p := range all {
		var err error
		if all[p], err = k.audit(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// halts waits until every partition has halted, and returns the block the HALT says to go back to.
func halts(t *testing.T, d *devnet, k *kafka, s *running, depth uint64) chain.Hash {
	t.Helper()
	eventually(t, "every partition has halted", func() error {
		for _, a := range audits(t, k) {
			if a.halt == nil {
				return errNotYet
			}
		}
		return nil
	})
	// the new branch is one longer
	ancestor, err := d.client.HeaderByNumber(t.Context(), new(big.Int).SetUint64(d.Head().Number.Uint64()-depth-1))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the scanner says so", func() error {
		why := s.status.following()
		if why == nil || !strings.Contains(why.Error(), fmt.Sprintf("scanner.accept_reorg_to = %q", ancestor.Hash().
			Hex())) {
			return fmt.Errorf("%w: %w", errNotYet, why)
		}
		return nil
	})
	return chain.Hash(ancestor.Hash())
}

// A chain that leaves a block it had called final halts the topic. Nothing is published, not by the next scanner
// either, and nobody takes over, until the operator names the block to go back to (PIPE-2).
func TestHalt(t *testing.T) {
	for _, p := range []int{1, 4} {
		t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) {
			withPartitions(t, p)
			d, k := startDevnet(t), startKafka(t)
			tr := newTruth(d)
			cfg := testConfig(d, k.Addr())
			cfg.Scanner.TakeoverAfter = 100 * time.Millisecond
			s := start(t, cfg, k)
			d.trade(1)
			d.trade(2)
			finalized(t, d, k, tr)
			const depth = 5
			d.reorg(depth, evmnode.Replay)
			ancestor := halts(t, d, k, s, depth)
			if testutil.ToFloat64(s.metrics.halted) != 1 {
				t.Error("the metric does not say that the topic has halted")
			}
			d.trade(3)

			second := start(t, cfg, k) // claims the topic, halts too, and the first stands by for good
			eventually(t, "the second scanner rests, the first stands by", func() error {
				if why := second.status.following(); why == nil || !strings.Contains(why.Error(), "called final") ||
					!standing(s) {
					return fmt.Errorf("%w: %w", errNotYet, why)
				}
				return nil
			})
			d.trade(4)
			for p, a := range audits(t, k) {
				if a.halt == nil || len(a.reorgs) > 0 || len(a.epochs) != 2 {
					t.Errorf("partition %d: halted %t, %d reorgs, epochs %v", p, a.halt != nil, len(a.reorgs), a.epochs)
				}
			}
			_, _ = s.stop(), second.stop()

			cfg.Scanner.AcceptReorgTo = chain.Hash{1}
			const want = "scanner.accept_reorg_to: perp.1337.log.v1/0 holds no block"
			if err := start(t, cfg, k).wait(); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("accepting an unknown block: the scanner ended with %v", err)
			}
			cfg.Scanner.AcceptReorgTo = ancestor
			start(t, cfg, k)
			for p, a := range settle(t, k, tr) {
				if len(a.reorgs) != 1 || a.reorgs[0].Ancestor.Hash != ancestor {
					t.Errorf("partition %d: reorgs %+v", p, a.reorgs)
				}
			}
			finalized(t, d, k, tr)
		})
	}
}

// The operator's word for a block that the chain has left too ends the scanner.
func TestAcceptingWhatIsNotOnTheChain(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	cfg := testConfig(d, k.Addr())
	s := start(t, cfg, k)
	d.trade(1)
	d.trade(2)
	finalized(t, d, k, tr)
	tip := chain.Hash(d.Head().Hash())
	d.reorg(5, evmnode.Replay)
	halts(t, d, k, s, 5)
	_ = s.stop()
	before := audits(t, k)[0].blocks
	for hash, want := range map[chain.Hash]string{tip: "is the newest block there is",
		before[len(before)-2].hash(): "the chain has left block"} {
		cfg.Scanner.AcceptReorgTo = hash
		if err := start(t, cfg, k).wait(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("accepting %s: the scanner ended with %v; want …%s…", hash, err, want)
		}
	}
}

// Killed at any step of a halt or of its end, the next scanner goes on from there.
func TestKilledWhileHalting(t *testing.T) {
	for _, p := range []int{1, 4} {
		t.Run(fmt.Sprintf("P=%d", p), func(t *testing.T) {
			withPartitions(t, p)
			for i := range p {
				for _, kind := range []string{"HALT", "ACCEPTED"} {
					for _, after := range []bool{false, true} {
						label := fmt.Sprintf("%s/%d", kind, i)
						t.Run(fmt.Sprintf("%s %t", label, after), func(t *testing.T) {
							t.Parallel()
							killHalting(t, label, after)
						})
					}
				}
			}
		})
	}
}

func killHalting(t *testing.T, label string, after bool) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	cfg := testConfig(d, k.Addr())
	s := start(t, cfg, k)
	d.trade(1)
	d.trade(2)
	finalized(t, d, k, tr)
	const depth = 4
	ancestor := audits(t, k)[0].blocks[d.Head().Number.Uint64()-depth-1].hash()
	_ = s.stop()
	d.reorg(depth, evmnode.Replay)
	wire := &tripwire{label: label, after: after}
	if strings.HasPrefix(label, "ACCEPTED") {
		first := start(t, cfg, k)
		halts(t, d, k, first, depth)
		_ = first.stop()
		cfg.Scanner.AcceptReorgTo = ancestor
	}
	if err := start(t, cfg, k, wire.on).wait(); !errors.Is(err, errKilled) {
		t.Fatalf("the scanner ended with %v", err)
	}
	cfg.Scanner.AcceptReorgTo = ancestor
	start(t, cfg, k)
	d.trade(5)
	settle(t, k, tr)
}

// A final block is replaced by a fork below it. What was never called final may be.
func TestCheckFinality(t *testing.T) {
	blocks := []chain.BlockRef{ref(99, 0, chain.BlockRef{})}
	for n := uint64(100); n < 110; n++ {
		blocks = append(blocks, ref(n, 0, blocks[len(blocks)-1]))
	}
	at := func(n uint64) chain.BlockRef { return blocks[n-99] }
	for name, tt := range map[string]struct {
		tip, final uint64
		block      chain.BlockRef
		ancestor   uint64 // 0: no violation
	}{
		"the next block":                        {109, 105, ref(110, 0, at(109)), 0},
		"a fork above it":                       {109, 105, ref(106, 1, at(105)), 0},
		"a fork to its place":                   {109, 105, ref(105, 1, at(104)), 104},
		"a fork below it":                       {109, 105, ref(102, 1, at(101)), 101},
		"nothing is final":                      {109, 0, ref(102, 1, at(101)), 0},
		"a block it has":                        {109, 105, at(101), 0},
		"a block whose parent is not there yet": {109, 105, ref(104, 1, ref(103, 1, at(102))), 0},
	} {
		st := &stream{}
		for n := uint64(100); n <= tt.tip; n++ {
			if err := st.branch.push(at(n)); err != nil {
				t.Fatal(err)
			}
		}
		if tt.final > 0 {
			st.finalize(at(tt.final))
		}
		err := (&writer{streams: []*stream{st}}).checkFinality(tt.block)
		v, broken := errors.AsType[*violation](err)
		if broken != (tt.ancestor > 0) || broken &&
			(v.ancestor.Hash != at(tt.ancestor).Hash || v.final.Hash != at(tt.final).Hash) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// frozen is a node that stays where the chain is now: it knows no later block, neither by number nor by hash. It names
// no head, which would hide the chain from a scanner that asks it first.
func frozen(t *testing.T, d *devnet) map[string]lie {
	t.Helper()
	head := d.Head().Number.Uint64()
	answers := map[string]json.RawMessage{`"latest"true`: noHead, `"latest"false`: noHead}
	ask := func(at, full string) {
		var block struct{ Hash string }
		var raw json.RawMessage
		if err := d.client.Client().CallContext(t.Context(), &raw, "eth_getBlockByNumber", json.RawMessage(at),
			json.RawMessage(full)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &block); err != nil {
			t.Fatal(err)
		}
		answers[at+full], answers[fmt.Sprintf("%q%s", block.Hash, full)] = raw, raw
	}
	for _, full := range []string{"true", "false"} {
		ask(`"finalized"`, full)
		for n := range head + 1 {
			ask(fmt.Sprintf(`"0x%x"`, n), full)
		}
	}
	known := func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		if answer, known := answers[string(params[0])+string(params[1])]; known {
			return answer
		}
		return json.RawMessage(`null`)
	}
	return map[string]lie{"eth_getBlockByNumber": known, "eth_getBlockByHash": known}
}

var noHead = json.RawMessage(`{"code":-32000,"message":"no head at the moment"}`)

// suspected waits until an endpoint is excluded with a detail.
func suspected(t *testing.T, s *running, detail string) {
	t.Helper()
	eventually(t, "the endpoint is excluded", func() error {
		for _, e := range s.chain.Endpoints() {
			for _, x := range e.Excluded {
				if x.Reason == evm.ReasonSuspected && strings.Contains(x.Detail, detail) {
					return nil
				}
			}
		}
		return errNotYet
	})
}

// One endpoint on a branch that lacks a final block, while another has it, is no reason to halt: it is not believed.
// Once all have left it, it is one.
func TestOneEndpointCannotHalt(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	d.trade(1)
	d.mine(10)
	hasty, steady := startLiar(t, d), startLiar(t, d)
	cfg := through(testConfig(d, k.Addr()), hasty, steady)
	s := start(t, cfg, k)
	finalized(t, d, k, tr)
	past := frozen(t, d)
	steady.tellAll(past)
	d.reorg(6, evmnode.Replay)
	suspected(t, s, "was final")
	for p, a := range audits(t, k) {
		if a.halt != nil {
			t.Errorf("partition %d has halted", p)
		}
	}
	for method := range past {
		steady.tell(method, nil)
	}
	halts(t, d, k, s, 6)
}

// finalIsLatest makes a node answer the tag "finalized" with its newest block, as gateways do that do not know the tag.
func finalIsLatest(d *devnet) lie {
	return func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		if string(params[0]) != `"finalized"` {
			return nil
		}
		var latest json.RawMessage
		if d.client.Client().CallContext(context.Background(), &latest, "eth_getBlockByNumber", "latest",
			false) != nil {
			return nil
		}
		return latest
	}
}

// One endpoint of several that calls final what is not makes nobody halt after an ordinary reorg, be it the fastest or
// the slowest; it is excluded and named once the chain shows it (PIPE-2).
func TestOneEndpointCannotSayWhatIsFinal(t *testing.T) {
	for _, c := range []struct {
		hosts   int
		fastest bool
	}{{2, true}, {3, true}, {3, false}} {
		t.Run(fmt.Sprintf("%d hosts, fastest %t", c.hosts, c.fastest),
			func(t *testing.T) { callsLatestFinal(t, c.hosts, c.fastest) })
	}
}

func callsLatestFinal(t *testing.T, hosts int, fastest bool) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	nodes := make([]*liar, hosts)
	for i := range nodes {
		nodes[i] = startLiar(t, d)
	}
	bad := nodes[0]
	s := start(t, through(testConfig(d, k.Addr()), nodes...), k)
	d.trade(1)
	finalized(t, d, k, tr)
	late := func([]json.RawMessage, json.RawMessage) json.RawMessage {
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	for i, n := range nodes {
		if fastest == (i > 0) {
			n.tell("eth_getBlockByHash", late)
		}
	}
	bad.tell("eth_getBlockByNumber", finalIsLatest(d))
	for range 2 {
		d.mine(1)
		settle(t, k, tr)
		before, _ := bad.count("eth_getBlockByNumber")
		d.mine(1)
		settle(t, k, tr)
		eventually(t, "the liar is asked what is final", func() error {
			if lied, _ := bad.count("eth_getBlockByNumber"); lied == before {
				return errNotYet
			}
			return nil
		})
		d.reorg(1, evmnode.Replay)
		settle(t, k, tr)
	}
	d.mine(4)
	for p, a := range settle(t, k, tr) {
		if a.halt != nil || len(a.reorgs) == 0 {
			t.Errorf("partition %d: halted %t, %d reorgs", p, a.halt != nil, len(a.reorgs))
		}
	}
	mined := time.Now()
	eventually(t, "the liar is excluded and named", func() error {
		if time.Since(mined) > 300*time.Millisecond {
			mined = time.Now()
			d.mine(1)
		}
		for _, e := range s.report().Endpoints {
			for _, x := range e.Excluded {
				if x.Purpose == evm.ForFinality && string(e.Source) == bad.URL && x.Reason == evm.ReasonContradicted {
					return nil
				}
			}
		}
		return errNotYet
	})
	for _, e := range s.report().Endpoints[1:] {
		for _, x := range e.Excluded {
			if x.Purpose == evm.ForFinality {
				t.Errorf("%s is honest, and excluded: %+v", e.Source, x)
			}
		}
	}
}

// Where two endpoints agree on nothing, nothing new is called final, and it is said for what the scanner waits.
func TestFinalityWaitsForTwo(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	one, other := startLiar(t, d), startLiar(t, d)
	silent := func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		if string(params[0]) == `"finalized"` {
			return json.RawMessage(`{"code":-32000,"message":"finalized block not found"}`)
		}
		return nil
	}
	one.tell("eth_getBlockByNumber", silent)
	s := start(t, through(testConfig(d, k.Addr()), one, other), k)
	d.trade(1)
	settle(t, k, tr)
	eventually(t, "it is said", func() error {
		if err := s.status.agreed(0); err == nil {
			return errNotYet
		}
		return nil
	})
	for p, a := range audits(t, k) {
		if a.finalized.Number > 0 {
			t.Errorf("partition %d: block %d is final on one word", p, a.finalized.Number)
		}
	}
	one.tell("eth_getBlockByNumber", nil)
	d.mine(1)
	finalized(t, d, k, tr)
	eventually(t, "it is over", func() error { return s.status.agreed(0) })
}

// The end of a block says what is final to the partitions that follow with it and have not been told; to others it says
// nothing.
func TestDepths(t *testing.T) {
	var blocks []chain.BlockRef
	for parent := (chain.BlockRef{}); len(blocks) <= chain.UndoHorizon+10; parent = blocks[len(blocks)-1] {
		blocks = append(blocks, ref(uint64(len(blocks)+1), 0, parent))
	}
	next, final := blocks[9], blocks[6]
	upTo := func(n int, finalized chain.BlockRef) *stream {
		s := &stream{finalized: finalized}
		for _, b := range blocks[:n] {
			if err := s.branch.push(b); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	forked := upTo(9, chain.BlockRef{})
	if err := forked.branch.push(ref(10, 1, blocks[8])); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stream *stream
		block  chain.BlockRef
		want   uint32
	}{
		"it follows and has not been told": {upTo(9, blocks[5]), next, 3},
		"it has been told":                 {upTo(9, final), next, 0},
		"it has been told of a newer one":  {upTo(9, blocks[7]), next, 0},
		"it holds the block":               {upTo(10, blocks[5]), next, 0},
		"it takes something back first":    {forked, next, 0},
		"it does not hold what is final":   {upTo(6, chain.BlockRef{}), blocks[6], 0},
		"as deep as readers remember": {upTo(6+chain.UndoHorizon, chain.BlockRef{}), blocks[6+chain.UndoHorizon],
			chain.UndoHorizon},
		"deeper": {upTo(7+chain.UndoHorizon, chain.BlockRef{}), blocks[7+chain.UndoHorizon], 0},
	} {
		w := &writer{called: final, streams: []*stream{c.stream}}
		got := w.depths(c.block)[0]
		if got != c.want {
			t.Errorf("%s: the end says %d, want %d", name, got, c.want)
		}
		at := c.stream.branch.tip().Number
		if c.want == 0 || c.block.Number != at+1 {
			continue
		}
		end := wire.BlockEnd{Block: c.block, FinalDepth: got}
		if err := c.stream.apply(end, wire.Meta{}); err != nil || c.stream.finalized != final {
			t.Errorf("%s: whoever reads it calls %+v final, want %+v (%v)", name, c.stream.finalized, final, err)
		}
	}
}
