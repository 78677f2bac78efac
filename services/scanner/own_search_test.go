package scanner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// logLines collects what is logged.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logLines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *logLines) on(s *Scanner) {
	s.log = zerolog.New(l)
	s.collector.log = s.log
}

// sparse is a long chain of which few blocks hold anything of ours: a signer's transactions without logs among them.
func sparse(t *testing.T) *devnet {
	t.Helper()
	d := startDevnet(t)
	for i := range byte(3) {
		d.trade(i)
		d.mine(40)
		d.send(2, chain.Address{0xdd}, nil)
		d.send(2, chain.Address{0xdd}, nil)
		d.mine(41)
	}
	return d
}

// prunedBelow refuses nonces at old blocks as a node that keeps few states does.
func prunedBelow(d *devnet) lie {
	final := d.Head().Number.Uint64() - 2
	return func(params []json.RawMessage, _ json.RawMessage) json.RawMessage {
		var number uint64
		if _, err := fmt.Sscanf(string(params[1]), `"0x%x"`, &number); err != nil || number >= final {
			return nil
		}
		return json.RawMessage(`{"code":-32000,"message":"missing trie node 1a2b (path ) state is not available"}`)
	}
}

// always says one nonce for every account at every block.
func always(nonce uint64) lie {
	return func([]json.RawMessage, json.RawMessage) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`"0x%x"`, nonce))
	}
}

// History is the same whoever says what of the signers' nonces, and every block of it is read only where two hosts do
// not tell (PIPE-2).
func TestSignersOfHistory(t *testing.T) {
	for name, tt := range map[string]struct {
		lies   func(d *devnet) []lie // by endpoint; each is a host of its own
		bodies bool
	}{
		"honest":                     {func(*devnet) []lie { return []lie{nil, nil} }, false},
		"one":                        {func(*devnet) []lie { return []lie{nil} }, false},
		"all pruned":                 {func(d *devnet) []lie { return []lie{prunedBelow(d), prunedBelow(d)} }, true},
		"one archive of two":         {func(d *devnet) []lie { return []lie{nil, prunedBelow(d)} }, true},
		"two archives of three":      {func(d *devnet) []lie { return []lie{prunedBelow(d), nil, nil} }, false},
		"one of two lies: nothing":   {func(*devnet) []lie { return []lie{always(0), nil} }, true},
		"one of three lies: nothing": {func(*devnet) []lie { return []lie{always(0), nil, nil} }, false},
		"one of three lies: much":    {func(*devnet) []lie { return []lie{nil, always(1 << 40), nil} }, false},
		"no nonces are served":       {func(*devnet) []lie { return []lie{refuses, refuses} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, k := sparse(t), startKafka(t)
			tr := newTruth(d)
			var nodes []*liar
			for _, f := range tt.lies(d) {
				nodes = append(nodes, startLiar(t, d))
				nodes[len(nodes)-1].tell("eth_getTransactionCount", f)
			}
			cfg := through(inRanges(testConfig(d, k.Addr())), nodes...)
			cfg.Scanner.Backfill.MaxRange = 64
			cfg.Chain.RequestTimeout, cfg.Chain.SlowAfter = hangGuard, hangGuard // a busy machine is no lie
			final := d.Head().Number.Uint64() - 2
			lines := &logLines{}
			s := start(t, cfg, k, lines.on)
			ranged(t, settle(t, k, tr), final)
			bodies := 0
			for _, n := range nodes {
				_, asked := n.count("eth_getBlockByHash")
				bodies += asked
			}
			if all := bodies >= int(final); all != tt.bodies {
				t.Errorf("%d bodies were read of %d blocks", bodies, final)
			}
			if by := testutil.ToFloat64(s.metrics.bodyRanges); by > 0 != tt.bodies {
				t.Errorf("%v ranges were read by bodies", by)
			}
			if said := lines.count("name endpoints of two hosts"); said != map[bool]int{true: 1}[tt.bodies] {
				t.Errorf("it was said %d times", said)
			}
		})
	}
}

// An endpoint that shows a signer's transactions as another's hides none: two hosts say that a nonce was used there,
// and the block is read from another.
func TestForgedSendersHideNothing(t *testing.T) {
	d, k := sparse(t), startKafka(t)
	tr := newTruth(d)
	forger, honest := startLiar(t, d), startLiar(t, d)
	signer := []byte(strings.ToLower(d.account(2).Hex()))
	forger.tell("eth_getBlockByHash", func(_ []json.RawMessage, said json.RawMessage) json.RawMessage {
		return bytes.ReplaceAll(said, signer, bytes.ReplaceAll(signer, []byte("a"), []byte("b")))
	})
	cfg := through(inRanges(testConfig(d, k.Addr())), forger, honest)
	cfg.Chain.HedgeAfter = hangGuard
	s := start(t, cfg, k)
	settle(t, k, tr)
	if _, asked := forger.count("eth_getBlockByHash"); asked == 0 {
		t.Skip("the forger was never asked") // whoever is faster is
	}
	if by := testutil.ToFloat64(s.metrics.bodyRanges); by > 0 {
		t.Errorf("%v ranges were read by bodies", by)
	}
}

// At the head, where nobody asks for nonces, an endpoint that shows a signer's transaction as another's hides none that
// goes where the venue's jobs are executed, or that the signer cancels by: the signature says who sent it.
func TestForgedSendersAtTheHead(t *testing.T) {
	for name, to := range map[string]func(*devnet) chain.Address{
		"to a handler": func(*devnet) chain.Address { return chain.Address{0xdd} },
		"to itself":    func(d *devnet) chain.Address { return d.account(2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, k := startDevnet(t), startKafka(t)
			tr := newTruth(d)
			forger := startLiar(t, d)
			d.mine(1)
			cfg := through(testConfig(d, k.Addr()), forger)
			cfg.Venue.OrderHandler = chain.Address{0xdd}
			s := start(t, cfg, k)
			settle(t, k, tr)
			signer := strings.ToLower(d.account(2).Hex())
			forger.tell("eth_getBlockByHash", func(_ []json.RawMessage, said json.RawMessage) json.RawMessage {
				return bytes.ReplaceAll(said, []byte(`"from":"`+signer), []byte(`"from":"`+chain.Address{0xba}.Hex()))
			})
			d.signerSends(to(d))
			published(t, s, d)
			settle(t, k, tr)
		})
	}
}

// An endpoint that leaves a signer's transaction out of a body is refused, and another one asked.
func TestBodiesHideNothing(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	hides, honest := startLiar(t, d), startLiar(t, d)
	d.mine(1)
	cfg := through(testConfig(d, k.Addr()), hides, honest)
	cfg.Chain.HedgeAfter = hangGuard
	s := start(t, cfg, k)
	settle(t, k, tr)
	empty := func(_ []json.RawMessage, said json.RawMessage) json.RawMessage {
		var block map[string]json.RawMessage
		if json.Unmarshal(said, &block) != nil || block == nil {
			return nil
		}
		block["transactions"] = json.RawMessage("[]")
		raw, err := json.Marshal(block)
		if err != nil {
			return nil
		}
		return raw
	}
	hides.tell("eth_getBlockByHash", empty)
	hides.tell(getReceipts, pruned) // which fits
	for range 3 {
		d.signerSends(chain.Address{0xdd})
		published(t, s, d)
	}
	settle(t, k, tr)
	if e := s.chain.Endpoints()[1]; len(e.Excluded) > 0 {
		t.Errorf("the honest one is excluded: %+v", e.Excluded)
	}
}

// Bodies that do not come to their headers, and that two hosts show alike, stop nothing: what is ours in them is
// published without proof, and proven once they can be read.
func TestBodiesThatHostsShowAlikeStopNothing(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	one, two := startLiar(t, d), startLiar(t, d)
	d.mine(1)
	cfg := through(testConfig(d, k.Addr()), one, two)
	cfg.Chain.RequestTimeout, cfg.Chain.SlowAfter = hangGuard, hangGuard // a busy machine is no lie
	s := start(t, cfg, k)
	settle(t, k, tr)
	otherwise := func(_ []json.RawMessage, said json.RawMessage) json.RawMessage {
		return bytes.ReplaceAll(said, []byte(`"gas":"0x`), []byte(`"gas":"0x1`))
	}
	told := lies{"eth_getBlockByHash": otherwise, "eth_getBlockByNumber": otherwise}
	one.tellAll(told)
	two.tellAll(told)
	d.trade(1)
	published(t, s, d)
	if n := testutil.ToFloat64(s.metrics.unproven); n == 0 {
		t.Error("nothing is in doubt")
	}
	for i, e := range s.chain.Endpoints() {
		if slices.ContainsFunc(e.Excluded, func(x evm.Exclusion) bool { return x.Reason == evm.ReasonLied }) {
			t.Errorf("endpoint %d is excluded: %+v", i, e.Excluded)
		}
	}
	one.repent(told)
	two.repent(told)
	proven(t, k, tr, s)
}
