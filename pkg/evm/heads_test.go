package evm

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// pusher is a node over WebSocket that announces what it is told to.
type pusher struct {
	*httptest.Server
	rpc  *rpc.Server
	node *fakeNode

	mu      sync.Mutex
	subs    []chan any
	started chan struct{} // one for each subscription
}

// pushAPI is what the server answers under eth_.
type pushAPI struct{ p *pusher }

//nolint:staticcheck // The method is called eth_chainId.
func (a pushAPI) ChainId() (any, error) { return a.p.via("eth_chainId") }

func (a pushAPI) GetBlockByNumber(number json.RawMessage, full bool) (any, error) {
	return a.p.via(methodBlockAt, number, json.RawMessage(map[bool]string{true: "true", false: "false"}[full]))
}

func (a pushAPI) GetBlockByHash(hash json.RawMessage, _ bool) (any, error) {
	return a.p.via(methodBlock, hash)
}

func (a pushAPI) GetBlockReceipts(hash json.RawMessage) (any, error) {
	return a.p.via(methodReceipts, hash)
}

// via asks the fake node; what is refused is an error.
func (p *pusher) via(method string, params ...json.RawMessage) (any, error) {
	result, f := p.node.answer(context.Background(), method, params)
	if f != nil {
		return nil, replyError(*f)
	}
	return result, nil
}

type replyError fault

func (e replyError) Error() string  { return e.text }
func (e replyError) ErrorCode() int { return e.code }

// NewHeads is the subscription.
func (a pushAPI) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	notifier, _ := rpc.NotifierFromContext(ctx)
	sub, heads := notifier.CreateSubscription(), make(chan any, 100)
	a.p.mu.Lock()
	a.p.subs = append(a.p.subs, heads)
	a.p.mu.Unlock()
	go func() {
		for {
			select {
			case h := <-heads:
				_ = notifier.Notify(sub.ID, h)
			case <-sub.Err():
				return
			}
		}
	}()
	a.p.started <- struct{}{}
	return sub, nil
}

func startPusher(t *testing.T, node *fakeNode) *pusher {
	t.Helper()
	p := &pusher{rpc: rpc.NewServer(), node: node, started: make(chan struct{}, 100)}
	if err := p.rpc.RegisterName("eth", pushAPI{p}); err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewServer(p.rpc.WebsocketHandler([]string{"*"}))
	t.Cleanup(func() { p.rpc.Stop(); p.Server.Close() })
	return p
}

func (p *pusher) url() string { return strings.Replace(p.URL, "http", "ws", 1) }

// push announces blocks of the node's chain.
func (p *pusher) push(numbers ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range numbers {
		p.node.setHead(max(n, p.node.head))
		for _, s := range p.subs {
			s <- p.node.chain[n].header
		}
	}
}

// listenTo makes a client of pushers that never polls but once, and waits until all are listened to.
func listenToPushers(t *testing.T, adapt func(*Config), pushers ...*pusher) (*Client, <-chan chain.BlockRef) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.URLs, cfg.PollInterval, cfg.ProbeInterval = nil, time.Hour, time.Hour
	for _, p := range pushers {
		cfg.URLs = append(cfg.URLs, secret.MustURL(p.url()))
	}
	if adapt != nil {
		adapt(&cfg)
	}
	c, err := Dial(t.Context(), fakeChainID, cfg, zerolog.New(zerolog.NewTestWriter(t)),
		NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	heads := c.Heads(t.Context())
	for _, p := range pushers {
		within(t, "a subscription", p.started)
	}
	within(t, "the first head", heads)
	return c, heads
}

func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

// The first endpoint to announce a block wins, is asked first for what is in it, and the others' announcements of it
// are no news.
func TestHeadsAreRaced(t *testing.T) {
	nodes, truth := fakes(2, 50)
	for _, n := range nodes {
		n.head = 10
	}
	a, b := startPusher(t, nodes[0]), startPusher(t, nodes[1])
	c, heads := listenToPushers(t, nil, a, b)
	for n := 11; n < 40; n++ {
		first, second := a, b
		if n%2 == 0 {
			first, second = b, a
		}
		first.push(n)
		if head := within(t, "a head", heads); head != truth.ref(n) {
			t.Fatalf("head %+v, want block %d", head, n)
		}
		if got := c.ServedBy(truth.ref(n).Hash); got != Source(first.url()) {
			t.Fatalf("block %d was announced by %s first, %s is remembered", n, first.url(), got)
		}
		before := second.node.count(methodReceipts)
		_, err := c.Receipts(t.Context(), truth.block(n))
		if asked := second.node.count(methodReceipts) - before; err != nil || asked > 0 {
			t.Fatalf("block %d: %v; the other node was asked %d times", n, err, asked)
		}
		second.push(n) // late: no news
	}
	select {
	case head := <-heads:
		t.Errorf("head %+v came twice", head)
	default:
	}
}

// What is news is decided by who says it: an endpoint that comes late repeats others, one that says a block again has
// gone back to it.
func TestWhatIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		a, b := c.pool.public[0], c.pool.public[1]
		d := delivery{pool: c.pool, by: map[chain.Hash]map[*endpoint]bool{}}
		for i, step := range []struct {
			from *endpoint
			n    int
			want bool
		}{
			{a, 10, true}, {b, 10, false}, {a, 11, true}, {a, 12, true}, {b, 11, false}, {b, 12, false}, // b is late
			{a, 11, true}, {b, 11, true}, // both go back
			{b, 13, true}, {a, 13, false},
		} {
			if got := d.takes(announcement{truth.ref(step.n), step.from}); got != step.want {
				t.Errorf("step %d: block %d is news: %t", i, step.n, got)
			}
		}
		for n := range 5000 {
			d.takes(announcement{chain.BlockRef{Hash: chain.Hash{byte(n), byte(n >> 8), 1}}, a})
		}
		if len(d.by) > 256 || len(d.order) > 256 {
			t.Errorf("%d blocks are remembered", len(d.by))
		}
	})
}

// An announcement that does not hash to what it says is a lie: it is not delivered, and the liar no longer listened to.
func TestAnnouncementsAreChecked(t *testing.T) {
	nodes, truth := fakes(2, 50)
	for _, n := range nodes {
		n.head = 10
	}
	liar, honest := startPusher(t, nodes[0]), startPusher(t, nodes[1])
	c, heads := listenToPushers(t, nil, liar, honest)
	fake := truth[20].show(false)
	fake["gasLimit"] = "0x77"
	liar.mu.Lock()
	liar.subs[0] <- fake
	liar.mu.Unlock()
	within(t, "a new subscription", liar.started) // the old one was given up
	if r := excluded(c, 0, ForHeads); r != ReasonLied {
		t.Errorf("excluded for %q", r)
	}
	liar.push(12) // true, but from a liar
	honest.push(11)
	if head := within(t, "a head", heads); head != truth.ref(11) {
		t.Errorf("head %+v", head)
	}
}

// A subscription that falls silent while the chain goes on is given up, and made again.
func TestSilentSubscriptions(t *testing.T) {
	nodes, truth := fakes(2, 50)
	for _, n := range nodes {
		n.head = 10
	}
	silent, busy := startPusher(t, nodes[0]), startPusher(t, nodes[1])
	_, heads := listenToPushers(t, func(cfg *Config) { cfg.MaxLag = 100 * time.Millisecond }, silent, busy)
	silent.push(11)
	if head := within(t, "a head", heads); head != truth.ref(11) {
		t.Fatalf("head %+v", head)
	}
	busy.push(11, 12)
	within(t, "block 12", heads)
	within(t, "a new subscription", silent.started)
}

// A node that takes connections and never answers does not hold anybody up: every call over a WebSocket has a deadline.
func TestWebSocketCallsHaveDeadlines(t *testing.T) {
	nodes, _ := fakes(1, 50)
	release := make(chan struct{})
	defer close(release)
	nodes[0].inject(func(_ context.Context, m string, _ []json.RawMessage) (any, *fault, bool) {
		if m == methodReceipts {
			<-release
		}
		return nil, nil, false
	})
	p := startPusher(t, nodes[0])
	cfg := DefaultConfig()
	cfg.URLs, cfg.RequestTimeout = []secret.URL{secret.MustURL(p.url())}, 50*time.Millisecond
	c, err := Dial(t.Context(), fakeChainID, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan error, 1)
	for range hung + 1 { // the last one over a new connection
		go func() {
			_, err := c.Receipts(context.Background(), Block{})
			ended <- err
		}()
		if err := within(t, "the end of a call", ended); err == nil {
			t.Error("an answer out of nothing")
		}
	}
}

// switchboard connects to one server or another at one address, and can cut all that is connected.
type switchboard struct {
	*httptest.Server
	mu    sync.Mutex
	to    http.Handler
	conns []net.Conn
}

func startSwitchboard(t *testing.T, to http.Handler) *switchboard {
	t.Helper()
	s := &switchboard{to: to}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		h := s.to
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state == http.StateNew {
			s.conns = append(s.conns, c)
		}
	}
	s.Start()
	t.Cleanup(func() { s.cut(); s.Close() })
	return s
}

func (s *switchboard) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

func (s *switchboard) connect(to http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

// After every cut an endpoint has to show its chain again, over both transports; go-ethereum's own reconnecting is not
// trusted. A node of another chain is not used, and taken back when it is one of ours again.
func TestChainIsCheckedAfterReconnect(t *testing.T) {
	ours, _ := fakes(1, 50)
	foreign := &fakeNode{chain: newFakeChain(60, 5, func(int) int { return 0 }), chainID: 97, head: 59}
	handlers := map[string][3]http.Handler{ // our node, a broken one, and one of another chain
		"http": {ours[0], http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
			foreign},
		"ws": {startPusher(t, ours[0]).Config.Handler, nil, startPusher(t, foreign).Config.Handler},
	}
	for scheme, h := range handlers {
		t.Run(scheme, func(t *testing.T) {
			board := startSwitchboard(t, h[0])
			cfg := DefaultConfig()
			cfg.URLs, cfg.ProbeInterval = []secret.URL{secret.MustURL(strings.Replace(board.URL, "http", scheme, 1))},
				time.Hour
			c, err := Dial(t.Context(), fakeChainID, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			head, err := c.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if h[1] != nil { // over HTTP a failed request is what breaks a connection
				board.connect(h[1])
				if _, err := c.Head(t.Context()); err == nil {
					t.Fatal("a broken node answers")
				}
			}
			board.cut()
			board.connect(h[2])
			_, err = c.Head(t.Context())
			if !WrongChain(err) {
				_, err = c.Head(t.Context()) // the first request may have been what found the connection cut
			}
			if !WrongChain(err) || excluded(c, 0, Everything) != ReasonWrongChain {
				t.Fatalf("%v; excluded for %q", err, excluded(c, 0, Everything))
			}
			board.connect(h[0])
			board.cut()
			for range 2 {
				c.pool.probe(t.Context())
			}
			if got, err := c.Head(t.Context()); err != nil || got != head || excluded(c, 0, Everything) != "" {
				t.Errorf("head %+v, %v; excluded for %q", got, err, excluded(c, 0, Everything))
			}
		})
	}
}
