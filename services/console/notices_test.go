package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/notify/receivers"
	"perpkeeper/pkg/notify/webhook"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/rig"
)

// hook is a receiver of messages that is well, away or hostile.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	code  int // 0 = hangs until the caller has gone
	tries int
	took  []string
	heard []notify.Message
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{code: http.StatusOK}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m notify.Message
	h.mu.Lock()
	code := h.code
	h.tries++
	if err := json.Unmarshal(body, &m); err == nil && code == http.StatusOK {
		h.took, h.heard = append(h.took, m.ID), append(h.heard, m)
	}
	h.mu.Unlock()
	if code == 0 {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(code)
}

func (h *hook) answer(code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.code, h.tries = code, 0
}

func (h *hook) tried() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries
}

// messages are those that were taken.
func (h *hook) messages() []notify.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// has reports whether exactly these messages were taken, each at least once and in this order.
func (h *hook) has(ids ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Equal(slices.Compact(slices.Clone(h.took)), ids)
}

// results is a result topic, a database, and what is told of the results.
type results struct {
	t      *testing.T
	broker *broker.Broker
	client *bus.Client
	db     *pg.DB
	cfg    receivers.Config
	id     wire.Config
	names  *naming.Names
}

func newResults(t *testing.T) *results {
	t.Helper()
	o := &results{t: t, cfg: receivers.DefaultConfig(), id: wire.Config{ChainID: 7, LogPartitions: 1, JobPartitions: 1}}
	o.broker, o.client = connect(t)
	o.db = rig.Postgres(t, pgtest.URL(t))
	for _, topic := range []string{wire.ResultTopic(7), wire.DeadLetterTopic(7)} {
		if err := o.client.Ensure(t.Context(), []bus.TopicSpec{{Name: topic, Partitions: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	o.cfg.Timeout = 300 * time.Millisecond
	o.cfg.FirstPause, o.cfg.LongPause, o.cfg.Attempts = time.Millisecond, 5*time.Millisecond, 4
	return o
}

// start begins to tell, until the test or the caller ends it.
func (o *results) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notifier{
		to: o.cfg.Open(), policy: o.cfg.Policy(), keeper: o.id, client: o.client, places: o.db.Notified(),
		metrics: newNoticeMetrics(prometheus.NewRegistry()), names: o.names, log: zerolog.Nop(),
	}
	var running sync.WaitGroup
	running.Go(func() { _ = n.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	o.t.Cleanup(stop)
	return stop
}

// hooked is a webhook for an audience.
func hooked(a notify.Audience, url string) []webhook.Config {
	return []webhook.Config{{Name: string(a), Audience: a, URL: secret.MustURL(url),
		Secret: secret.New("a secret of the receivers")}}
}

// ends publishes the result of an attempt.
func (o *results) ends(id string, change ...func(*job.Result)) {
	o.t.Helper()
	r := job.Result{JobID: id, Attempt: 1, Kind: job.Liquidation, Outcome: job.Done, TxHash: chain.Hash{1}}
	for _, c := range change {
		c(&r)
	}
	record, err := wire.Encode([]byte(id), wire.Result{Result: r}, 0, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := o.client.Producer(wire.ResultTopic(7)).Produce(o.t.Context(), 0, []bus.Record{record}); err != nil {
		o.t.Fatal(err)
	}
}

func failed(r *job.Result) { r.Outcome, r.GivenUp = job.Reverted, true }

// begun waits until an audience's place in the topic is known.
func (o *results) begun(audience notify.Audience, at int64) {
	o.t.Helper()
	eventually(o.t, "the place in the topic is known", func(ctx context.Context) bool {
		found, known, err := o.db.Notified().Place(ctx, string(audience), wire.ResultTopic(7), 0)
		return err == nil && known && found.Next == at
	})
}

// The results of a topic that was made anew are told from its beginning, and each once, however many there were before:
// what was read of the other one is no place in this one.
func TestResultsOfATopicMadeAnew(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  int64 // results that were told of the topic before
		beneath bool  // it is made anew while it is read
	}{
		{"a shorter one", 5000, false},
		{"one as long", 3, false},
		{"a longer one", 1, false},
		{"beneath a reader", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newResults(t)
			owner := newHook(t)
			o.cfg.Webhook = hooked(notify.Owner, owner.URL)
			told, stop := []string{"a#1", "b#1", "c#1"}, func() {}
			if c.beneath {
				stop = o.start()
				o.begun(notify.Owner, 0)
				o.ends("before")
				o.begun(notify.Owner, c.before)
				told = append([]string{"before#1"}, told...)
				if err := errors.Join(o.broker.DeleteTopic(wire.ResultTopic(7)), o.client.Ensure(t.Context(),
					[]bus.TopicSpec{{Name: wire.ResultTopic(7), Partitions: 1}})); err != nil {
					t.Fatal(err)
				}
			} else if err := o.db.Notified().Begin(t.Context(), string(notify.Owner), wire.ResultTopic(7), 0,
				pg.Place{Next: c.before, Mark: pg.Mark{1}}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "b", "c"} {
				o.ends(id)
			}
			for i, id := range []string{"d", "e"} { // the second is told by another process than the others
				if i > 0 || !c.beneath {
					stop()
					stop = o.start()
				}
				o.ends(id)
				told = append(told, id+"#1")
				o.begun(notify.Owner, int64(4+i))
			}
			var took []string
			for _, m := range owner.messages() {
				took = append(took, m.ID)
			}
			if !slices.Equal(took, told) {
				t.Errorf("told %v, want %v", took, told)
			}
		})
	}
}

// A record of the result topic that nobody can read is a dead letter, and what stands behind it is told.
func TestUnreadableResultsArePassedOver(t *testing.T) {
	o := newResults(t)
	owner := newHook(t)
	o.cfg.Webhook = hooked(notify.Owner, owner.URL)
	stop := o.start()
	o.begun(notify.Owner, 0)
	garbage := bus.Record{Key: []byte("?"), Value: []byte("garbage")}
	if _, err := o.client.Producer(wire.ResultTopic(7)).Produce(t.Context(), 0, []bus.Record{garbage}); err != nil {
		t.Fatal(err)
	}
	o.ends("a")
	eventually(t, "what stands behind it is told", func(context.Context) bool { return owner.has("a#1") })
	o.begun(notify.Owner, 2)
	stop()
	o.start()
	o.ends("b")
	eventually(t, "nothing holds up what comes after a restart",
		func(context.Context) bool { return owner.has("a#1", "b#1") })
	if _, end, err := o.client.Bounds(t.Context(), wire.DeadLetterTopic(7), 0); err != nil || end != 1 {
		t.Errorf("%d dead letters, %v", end, err)
	}
}

// LIQ-12: owners hear of liquidations, operators of those that were given up; neither is in the other's way, a restart
// loses nothing, what is refused for good is a dead letter, and nobody hears of what was before.
func TestResultsAreTold(t *testing.T) {
	o := newResults(t)
	owner, operator := newHook(t), newHook(t)
	o.cfg.Webhook = append(hooked(notify.Owner, owner.URL), hooked(notify.Operator, operator.URL)...)
	o.ends("before anybody was told")
	stop := o.start()
	o.begun(notify.Owner, 1)
	o.begun(notify.Operator, 1)

	operator.answer(0) // hangs
	o.ends("a")
	o.ends("b", failed)
	o.ends("c", func(r *job.Result) { r.Kind = job.Order })
	o.ends("d")
	eventually(t, "the owner hears although the operator's receiver hangs",
		func(context.Context) bool { return owner.has("a#1", "d#1") })
	eventually(t, "the operator's receiver is asked again", func(context.Context) bool { return operator.tried() > 1 })
	owner.answer(0)
	o.ends("e")
	eventually(t, "the owner's receiver hangs", func(context.Context) bool { return owner.tried() > 0 })
	stop()
	operator.answer(http.StatusOK)
	owner.answer(http.StatusOK)
	o.start()
	eventually(t, "what was due before the restart is told", func(context.Context) bool {
		return operator.has("b#1") && owner.has("a#1", "d#1", "e#1")
	})

	owner.answer(http.StatusBadRequest)
	o.ends("f")
	o.begun(notify.Owner, 7)
	if owner.tried() != o.cfg.Attempts {
		t.Errorf("asked %d times", owner.tried())
	}
	letter, err := o.client.Reader(wire.DeadLetterTopic(7), 0, 0).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err := wire.Decode(letter); err != nil || m.(wire.Result).JobID != "f" ||
		string(letter.Key) != wire.ResultTopic(7) {
		t.Errorf("the dead letter is %+v, %v", m, err)
	}
	owner.answer(http.StatusOK)
	o.ends("g")
	eventually(t, "it goes on", func(context.Context) bool { return owner.has("a#1", "d#1", "e#1", "g#1") })
}

// LIQ-12: who is told reads the market's name where it is known, and nothing in its place where it is not.
func TestNoticesNameTheMarket(t *testing.T) {
	o := newResults(t)
	owner := newHook(t)
	o.cfg.Webhook = hooked(notify.Owner, owner.URL)
	o.names = naming.New(namingtest.Node{}, namingtest.State{})
	o.names.Read(t.Context())
	o.start()
	o.begun(notify.Owner, 0)
	known := namingtest.Market.MarketToken
	o.ends("a", func(r *job.Result) { r.Market = known })
	o.ends("b", func(r *job.Result) { r.Market = chain.Address{9} })
	eventually(t, "both are told", func(context.Context) bool { return owner.has("a#1", "b#1") })
	heard := owner.messages()
	if l := heard[0].Liquidation; l.MarketName != "ETH/USD [WETH-USDC]" || l.Market != known.Hex() {
		t.Errorf("%+v", l)
	}
	if text := heard[0].Text(); !strings.Contains(text, "market: ETH/USD [WETH-USDC] "+known.Hex()) {
		t.Error(text)
	}
	if l := heard[1].Liquidation; l.MarketName != "" || l.Explorer != "" { // chain 7 has none
		t.Errorf("%+v", l)
	}
}
