package evm_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

var filter = evm.Filter{Addresses: []chain.Address{emitter}, Topics: []chain.Hash{emitted}}

// Blocks, logs and receipts by hash, over both transports.
func TestReadsABlock(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(3)
	for _, url := range []string{d.HTTPURL(), d.WSURL()} {
		c := dial(t, d.config(url))
		head, err := c.Head(t.Context())
		if err != nil || head != d.head() {
			t.Fatalf("%s: head %+v, %v; the node says %+v", url, head, err, d.head())
		}
		block, err := c.Block(t.Context(), head.Hash)
		if err != nil || block.BlockRef != head || len(block.Txs) != 3 || !filter.MayMatch(block.Bloom) {
			t.Fatalf("%s: block %+v with %d transactions, %v", url, block.BlockRef, len(block.Txs), err)
		}
		if at, err := c.BlockAt(t.Context(), head.Number); err != nil || at.Hash != block.Hash {
			t.Fatalf("%s: by number %v, %v", url, at.Hash, err)
		}
		for _, read := range []func() (evm.Header, error){
			func() (evm.Header, error) { return c.Header(t.Context(), head.Hash) },
			func() (evm.Header, error) { return c.HeaderAt(t.Context(), head.Number) },
		} {
			if header, err := read(); err != nil || header != block.Header {
				t.Fatalf("%s: header %+v, %v, want %+v", url, header, err, block.Header)
			}
		}
		checkContent(t, d, c, block)
	}
}

// checkContent reads the three receipts and their logs; the header proves them.
func checkContent(t *testing.T, d *devnet, c *evm.Client, block evm.Block) {
	t.Helper()
	receipts, err := c.Receipts(t.Context(), block)
	if err != nil || len(receipts) != 3 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
	for i, r := range receipts {
		want := block.Txs[i]
		want.OK, want.GasUsed, want.GasPrice = true, r.GasUsed, 100_000_000
		if r.Tx != want || r.From != d.account() || r.To != emitter || r.Nonce != block.Txs[0].Nonce+uint64(i) ||
			r.GasUsed < 21_000 {
			t.Errorf("receipt %d: %+v, want %+v", i, r.Tx, want)
		}
		if len(r.Logs) != 1 || r.Logs[0].Index != uint32(i) || r.Logs[0].Topics[1] != (chain.Hash{31: byte(i)}) ||
			!slices.EqualFunc(filter.Choose(r), r.Logs, func(a, b chain.Log) bool { return a.Pos() == b.Pos() }) {
			t.Errorf("logs of receipt %d: %+v", i, r.Logs)
		}
		single, err := c.Receipt(t.Context(), r.Hash)
		if err != nil || single == nil || single.Tx != r.Tx || len(single.Logs) != 1 {
			t.Errorf("receipt by hash: %+v, %v; want %+v", single, err, r.Tx)
		}
	}
}

// A bloom proves absence, of the address as of the topic.
func TestBloomProvesAbsence(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(1)
	block, err := dial(t, d.config(d.HTTPURL())).Block(t.Context(), d.head().Hash)
	if err != nil {
		t.Fatal(err)
	}
	other := chain.Address{1}
	for _, f := range []evm.Filter{
		{Addresses: []chain.Address{other}, Topics: filter.Topics},
		{Addresses: filter.Addresses, Topics: []chain.Hash{{1}}},
		{},
	} {
		if f.MayMatch(block.Bloom) {
			t.Errorf("the bloom does not rule out %+v", f)
		}
	}
	if !(evm.Filter{Addresses: []chain.Address{other, emitter}, Topics: []chain.Hash{{1}, emitted}}).
		MayMatch(block.Bloom) {
		t.Error("the bloom rules out a log that is there")
	}
}

func TestWhatIsNotThere(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	c := dial(t, d.config(d.HTTPURL()))
	if _, err := c.Block(t.Context(), chain.Hash{1}); !evm.NotFound(err) {
		t.Errorf("an unknown block: %v", err)
	}
	if _, err := c.BlockAt(t.Context(), 7); !evm.NotFound(err) {
		t.Errorf("a block to come: %v", err)
	}
	unknown := evm.Block{Header: evm.Header{BlockRef: chain.BlockRef{Number: 7, Hash: chain.Hash{1}}}}
	if _, err := c.Receipts(t.Context(), unknown); !evm.NotFound(err) {
		t.Errorf("receipts of an unknown block: %v", err)
	}
	if r, err := c.Receipt(t.Context(), chain.Hash{1}); r != nil || err != nil {
		t.Errorf("receipt of an unknown transaction: %+v, %v", r, err)
	}
	waiting := chain.Hash(d.emit(1).Hash())
	if r, err := c.Receipt(t.Context(), waiting); r != nil || err != nil {
		t.Errorf("receipt of a waiting transaction: %+v, %v", r, err)
	}
}

// startLiar serves a node's answers; the first occurrence of old in an answer to method becomes new, which overwrites
// what follows if it is longer.
func startLiar(t *testing.T, node, method, old, replaced string) (url string, lied func() bool) {
	t.Helper()
	told := make(chan struct{}, 100)
	url = startProxy(t, node, func(request, answer []byte) []byte {
		before, after, found := strings.Cut(string(answer), old)
		if !strings.Contains(string(request), `"`+method+`"`) || !found {
			return answer
		}
		told <- struct{}{}
		return []byte(before + replaced + after[len(replaced)-len(old):])
	})
	return url, func() bool { return len(told) > 0 }
}

// A caller that goes away is no fault of an endpoint, whatever the cause.
func TestAbandonedRequests(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	cfg := d.config(d.HTTPURL(), d.WSURL())
	reg := prometheus.NewRegistry()
	c, err := evm.Dial(t.Context(), evmnode.DefaultChainID, cfg, zerolog.Nop(), evm.NewMetrics(reg))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := d.Inject(evmnode.Fault{Method: "eth_getBlockByNumber", DelayMS: 60_000}); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancelCause(t.Context())
	left := make(chan error)
	go func() {
		_, err := c.Head(ctx)
		left <- err
	}()
	leave(errors.New("something better to do"))
	if err := receive(t, "the end of the request", left); err == nil || c.Health() != nil {
		t.Errorf("a request that was abandoned: %v; health %v", err, c.Health())
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "evm_request_errors_total" {
			t.Errorf("%s: %v", f.GetName(), f.GetMetric())
		}
	}
}

// A node that does not say which chain it belongs to is not used, and its refusal is not taken for an answer to what
// was asked.
func TestUnprovenNodesAreNotUsed(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	shy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"rate limit"}}`))
	}))
	defer shy.Close()
	if head, err := dial(t, d.config(shy.URL, d.HTTPURL())).Head(t.Context()); err != nil || head != d.head() {
		t.Errorf("head %+v, %v", head, err)
	}
	c := dial(t, d.config(shy.URL))
	if _, err := c.Head(t.Context()); err == nil || evm.Refused(err) || c.Health() == nil {
		t.Errorf("head of a node that names no chain: %v; health %v", err, c.Health())
	}
}

func TestUnreachableIsNotFatal(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	url := gone.URL
	gone.Close()
	cfg := evm.DefaultConfig()
	cfg.URLs = append(cfg.URLs[:0:0], mustURL(url))
	c := dial(t, cfg)
	if c.Health() == nil {
		t.Error("nobody answers and health is nil")
	}
	if _, err := c.Head(t.Context()); err == nil || evm.WrongChain(err) || evm.NotFound(err) || evm.Refused(err) {
		t.Errorf("head of an unreachable chain: %v", err)
	}
}

func TestWrongChain(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	right := d.config(d.HTTPURL())
	dial(t, right)
	_, err := evm.Dial(t.Context(), 56, right, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if !evm.WrongChain(err) || strings.Contains(err.Error(), "\n") {
		t.Errorf("wrong chain: %v", err)
	}
}

// An endpoint that is away at the start and turns out to be of another chain later is not used.
func TestWrongChainFoundLate(t *testing.T) {
	d := startDevnet(t, evmnode.Config{ChainID: 97})
	if err := d.Inject(evmnode.Fault{DropConnection: true, Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, d.config(d.HTTPURL())).Head(t.Context()); !evm.WrongChain(err) {
		t.Errorf("a late wrong chain: %v", err)
	}
}

// No secret of an address shows in an error, whoever repeats it.
func TestErrorsHideSecrets(t *testing.T) {
	const token = "0a1b2c3d4e5f60718293"
	for name, how := range map[string]func(http.ResponseWriter, *http.Request){
		"page": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "cannot POST "+r.URL.String(), http.StatusNotFound)
		},
		"reply": func(w http.ResponseWriter, r *http.Request) {
			respond(w, r, `"error":{"code":-32000,"message":"no project `+token+`"}`)
		},
		"cut":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"waste": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>" + token)) },
	} {
		server := httptest.NewServer(http.HandlerFunc(how))
		defer server.Close()
		for _, url := range []string{server.URL + "/v3/" + token, server.URL + "/?key=" + token,
			strings.Replace(server.URL, "://", "://user:"+token+"@", 1)} {
			cfg := evm.DefaultConfig()
			cfg.URLs = append(cfg.URLs[:0:0], mustURL(url))
			var log strings.Builder
			c, err := evm.Dial(t.Context(), 56, cfg, zerolog.New(&log), evm.NewMetrics(prometheus.NewRegistry()))
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Head(t.Context())
			shown := errors.Join(err, c.Health(), c.SendRaw(t.Context(), []byte{1})).Error() + log.String()
			if strings.Contains(shown, token) {
				t.Errorf("%s: the token shows: %s", name, shown)
			}
			c.Close()
		}
	}
}

// Heads come over both roads; a slow reader gets the newest.
func TestHeads(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	for name, urls := range map[string][]string{"polled": {d.HTTPURL()}, "announced": {d.HTTPURL(), d.WSURL()}} {
		t.Run(name, func(t *testing.T) {
			cfg := d.config(urls...)
			if name == "announced" {
				cfg.PollInterval = 2 * hangGuard // the first poll, at once, is the only one
			}
			heads := dial(t, cfg).Heads(t.Context())
			receive(t, "the first head", heads)
			awaitHead(t, d, heads, true)
			d.mine(5)
			awaitHead(t, d, heads, false)
			if _, err := d.Reorg(2, evmnode.Drop); err != nil {
				t.Fatal(err)
			}
			awaitHead(t, d, heads, false)
		})
	}
}

// awaitHead waits until the node's head has been delivered. Coax makes further blocks until a head comes: a
// subscription takes a moment to be in place.
func awaitHead(t *testing.T, d *devnet, heads <-chan chain.BlockRef, coax bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	guard := time.After(hangGuard)
	for {
		select {
		case head := <-heads:
			if head.Hash == d.head().Hash {
				return
			}
		case <-tick.C:
			if coax {
				d.mine(1)
			}
		case <-guard:
			t.Fatalf("head %+v was never delivered", d.head())
		}
	}
}

// Closing the client ends the delivery.
func TestHeadsEndWithTheClient(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	c := dial(t, d.config(d.WSURL()))
	heads := c.Heads(context.Background())
	receive(t, "the first head", heads)
	c.Close()
	if _, open := <-heads; open {
		t.Error("a head after the end")
	}
}

func TestAccounts(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	c := dial(t, d.config(d.HTTPURL()))
	for d.emit(1); d.waiting(); {
		d.mine(1)
	}
	mined, pending := d.nonce, uint64(0)
	for range 100 { // the pool may put off a transaction until the next block
		d.emit(2)
		var err error
		if pending, err = c.NonceAt(t.Context(), d.account(), evm.Pending); err != nil {
			t.Fatal(err)
		}
		if pending > mined {
			break
		}
	}
	latest, err := c.NonceAt(t.Context(), d.account(), evm.Latest)
	if err != nil || latest != mined || pending != d.nonce {
		t.Errorf("latest nonce %d, pending %d, %v; want %d and %d", latest, pending, err, mined, d.nonce)
	}
	if price, err := c.Reader.GasPrice(t.Context()); err != nil || price != 100_000_000 {
		t.Errorf("gas price %d, %v", price, err)
	}
	if balance, err := c.Balance(t.Context(), d.account()); err != nil || balance.Float() < 9e19 ||
		balance.Float() > 1e20 {
		t.Errorf("balance %s, %v", balance, err)
	}
	if final, err := c.Finalized(t.Context()); err != nil || final.Number+2 != max(d.head().Number, 2) {
		t.Errorf("finalized %+v, %v; the head is %+v", final, err, d.head())
	}
}

// The state of a block is asked for by hash, on whatever branch it is.
func TestCallAtABlock(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	c := dial(t, d.config(d.HTTPURL()))
	if _, err := c.Call(t.Context(), emitter, word(7), d.head().Hash); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), emitter, word(7), chain.Hash{1}); err == nil {
		t.Error("a call at an unknown block is answered")
	}
	_, err := c.Call(t.Context(), emitter, nil, d.head().Hash)
	if data, reverted := evm.RevertData(err); !reverted || !slices.Equal(data, []byte{0xde, 0xad, 0xbe, 0xef}) {
		t.Errorf("revert data %x, %t of %v", data, reverted, err)
	}
}

func TestOutcomesOfSending(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	c := dial(t, d.config(d.HTTPURL()))
	send := func(tx *types.Transaction) evm.Class {
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return evm.SendClass(c.SendRaw(t.Context(), raw))
	}
	first := d.sign(0, 10, word(1))
	for _, step := range []struct {
		what string
		tx   *types.Transaction
		want evm.Class
	}{
		{"a fresh transaction", first, evm.Accepted},
		{"the same bytes again", first, evm.Accepted},
		{"another one at its nonce", d.sign(0, 10, word(2)), evm.OtherTxAtNonce},
		{"too cheap", d.sign(1, 1, word(2)), evm.BumpToMin},
	} {
		if got := send(step.tx); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
	for d.nonce = 1; d.waiting(); {
		d.mine(1)
	}
	got := send(first)
	for range 1000 { // the node's pool takes a moment to see that its transaction was mined
		if got != evm.Accepted {
			break
		}
		got = send(first)
	}
	if got != evm.ResolveByHash {
		t.Errorf("mined bytes: %s", got)
	}
}
