package txmanager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// rpcServer is an endpoint that takes transactions, and notes them. With a refusal it takes none.
type rpcServer struct {
	*httptest.Server

	mu      sync.Mutex
	refusal string
	got     []string // as they were sent
	// results are what it answers to other methods
	results map[string]string
}

func startRPC(t *testing.T) *rpcServer {
	t.Helper()
	s := &rpcServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *rpcServer) serve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     json.RawMessage
		Method string
		Params []any
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := `"error":{"code":-32601,"message":"method not found"}`
	s.mu.Lock()
	result, is := s.results[q.Method]
	s.mu.Unlock()
	if is {
		answer = `"result":` + result
	}
	switch q.Method {
	case "eth_chainId":
		answer = `"result":"0x38"`
	case "eth_sendRawTransaction":
		text, _ := q.Params[0].(string)
		raw, _ := hexutil.Decode(text)
		s.mu.Lock()
		s.got = append(s.got, text)
		refusal := s.refusal
		s.mu.Unlock()
		if answer = fmt.Sprintf(`"result":%q`, chain.Keccak256(raw).Hex()); refusal != "" {
			answer = fmt.Sprintf(`"error":{"code":-32000,"message":%q}`, refusal)
		}
	}
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer)
}

// refuse has it take no transaction from now on, but for an empty reason.
func (s *rpcServer) refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = reason
}

// count is how often a transaction was sent here.
func (s *rpcServer) count(tx txm.SignedTx) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.got {
		if text == hexutil.Encode(tx.Raw) {
			n++
		}
	}
	return n
}

// privateTest is a lease term's broadcasts to a public and a private endpoint, by a clock of the test's own.
type privateTest struct {
	*broadcast
	t             *testing.T
	public, relay *rpcServer
	now           time.Time
}

const deadline = 2 * time.Second

func newPrivateTest(t *testing.T) *privateTest {
	t.Helper()
	p := &privateTest{t: t, public: startRPC(t), relay: startRPC(t), now: time.UnixMilli(nowMs)}
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(p.public.URL)}
	cfg.PrivateURLs = []secret.URL{secret.MustURL(p.relay.URL)}
	node, err := evm.Dial(t.Context(), 56, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	o := newQueueTest(t, nil)
	p.broadcast = &broadcast{
		duty: duty{term: o.term, node: node, heads: headsAt(nowMs, time.Now()), store: o.store,
			metrics: o.metrics, log: zerolog.Nop()},
		last: map[chain.Hash]sent{},
		privacy: privacy{cfg: Private{Endpoints: true, Only: []job.Lane{job.LiquidationLane}, Deadline: deadline},
			clock: func() time.Time { return p.now }},
	}
	return p
}

// sends broadcasts a transaction and tells how often it has been given to the public endpoint and to the private one.
func (p *privateTest) sends(kind job.Kind, tx txm.SignedTx, intent ...int64) (public, private int) {
	p.t.Helper()
	id := append(intent, 7)[0]
	if err := p.send(p.t.Context(), txm.Intent{ID: id, Job: job.Job{ID: "x", Kind: kind}}, tx); err != nil {
		p.t.Fatal(err)
	}
	p.close()
	return p.public.count(tx), p.relay.count(tx)
}

// transaction is one that does something, or, at the gas of a payment to oneself, nothing.
func transaction(n byte, gas uint64) txm.SignedTx {
	return txm.SignedTx{Nonce: 5, Gas: gas, Raw: []byte{n}, Hash: chain.Keccak256([]byte{n})}
}

// What is sent in private is not given to the public nodes by any broadcast before its deadline, neither the bytes nor
// dearer ones at the same nonce; then it goes to both, at the next head.
func TestPrivateUntilTheDeadline(t *testing.T) {
	p, first, dearer := newPrivateTest(t), transaction(1, 2e6), transaction(2, 2e6)
	pending := txm.PendingTx{Intent: txm.Intent{ID: 7, Job: job.Job{Kind: job.Liquidation}},
		Txs: []txm.Tx{{SignedTx: first, Kind: txm.Exec}}}
	next := func() txm.Step {
		return txm.DefaultPolicy().Next(pending, txm.Observation{Head: p.heads.Number(), Sent: p.sending(first.Hash)})
	}
	expect := func(when string, tx txm.SignedTx, wantPublic, wantPrivate int) {
		t.Helper()
		if public, private := p.sends(job.Liquidation, tx); public != wantPublic || private != wantPrivate {
			t.Errorf("%s: %d times in public, %d in private, want %d and %d", when, public, private, wantPublic,
				wantPrivate)
		}
	}
	expect("at first", first, 0, 1)
	p.now = p.now.Add(deadline - 1)
	expect("again", first, 0, 2)
	expect("raised", dearer, 0, 1)
	if step := next(); step != txm.Wait {
		t.Errorf("before the deadline: %s", step)
	}
	p.now = p.now.Add(1)
	if step := next(); step != txm.Broadcast {
		t.Errorf("at the deadline, in the same block: %s", step)
	}
	expect("at the deadline", first, 1, 3)
	expect("the raised one", dearer, 1, 2)
	if step := next(); step != txm.Wait {
		t.Errorf("when it is public: %s", step)
	}
	p.privacy.keep(nil)
	if expect("forgotten too early", first, 2, 4); len(p.privacy.until) != 1 {
		t.Errorf("remembered are %v", p.privacy.until)
	}
	p.now = p.now.Add(time.Hour)
	if p.privacy.keep(nil); len(p.privacy.until) != 0 {
		t.Errorf("never forgotten: %v", p.privacy.until)
	}
}

// Other lanes, and what only frees a nonce, go to everybody at once.
func TestPrivateIsOnlyWhatIsNamed(t *testing.T) {
	p := newPrivateTest(t)
	for kind, tx := range map[job.Kind]txm.SignedTx{
		job.Order: transaction(1, 2e6), job.Liquidation: transaction(2, txm.EmptyGas), txm.Filler: transaction(3, 2e6),
	} {
		if public, private := p.sends(kind, tx); public != 1 || private != 1 {
			t.Errorf("%s: %d times in public, %d in private", kind, public, private)
		}
	}
}

// Whatever a relay says, it neither ends a transaction nor holds the signer back, and makes nothing public too early.
func TestRelaysRefusalDecidesNothing(t *testing.T) {
	p := newPrivateTest(t)
	for i, refusal := range []string{"insufficient funds for gas * price + value", "nonce too low", "invalid sender",
		"sender is banned", "busy"} {
		p.relay.refuse(refusal)
		tx := transaction(byte(i), 2e6)
		if public, private := p.sends(job.Liquidation, tx, int64(i+1)); public != 0 || private != 1 {
			t.Errorf("%s: %d times in public, %d in private", refusal, public, private)
		}
		if s := p.sending(tx.Hash); s.Answer != txm.Unpooled || p.held() != "" || p.spent(tx.Hash) {
			t.Errorf("%s: answered %d, held: %q, spent: %t", refusal, s.Answer, p.held(), p.spent(tx.Hash))
		}
		p.now = p.now.Add(deadline)
		if public, _ := p.sends(job.Liquidation, tx, int64(i+1)); public != 1 {
			t.Errorf("%s: %d times in public after the deadline", refusal, public)
		}
	}
}
