package streams

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
	"perpkeeper/pkg/setting/secret"
)

// signed is a report as the service signs it, without signatures: the recorded one of another feed, time and price.
func signed(t testing.TB, feed chain.Hash, second, dollars uint64) string {
	full := recorded(t)
	blob := full[8*word:]
	copy(blob, feed[:])
	price := chain.U64(dollars).Mul(chain.Pow10(18))
	for i, v := range map[int]chain.Uint{1: chain.U64(second), 2: chain.U64(second), 6: price, 7: price, 8: price} {
		w := v.Bytes32()
		copy(blob[i*word:], w[:])
	}
	return "0x" + hex.EncodeToString(full)
}

// engine is Data Streams: it checks who asks, remembers the reports of every second and pushes the new ones.
type engine struct {
	t     *testing.T
	creds credentials
	feeds []chain.Hash
	// a feed that is not served any more; zero = none
	retired chain.Hash

	mu      sync.Mutex
	first   uint64 // second of the oldest report
	newest  uint64
	asked   []string
	sockets []*websocket.Conn
	deaf    bool // refuses new connections
	refused chan struct{}
}

func startEngine(t *testing.T, feeds int) (*engine, *httptest.Server) {
	e := &engine{t: t, creds: credentials{secret.New("9b1f0c2e-key"), secret.New("hunter2")},
		refused: make(chan struct{}, 1)}
	e.first = uint64(time.Now().Unix()) - 20
	for i := range feeds {
		id, err := chain.ParseHash(feedV3)
		if err != nil {
			t.Fatal(err)
		}
		id[31] = byte(i)
		e.feeds = append(e.feeds, id)
	}
	e.newest = e.first
	s := sourcetest.Serve(t, e.serve)
	t.Cleanup(e.cut)
	return e, s
}

// table is how the engine is configured.
func (e *engine) table(s *httptest.Server) source.Table {
	t := source.Table{
		Kind: "streams", URL: sourcetest.At(s),
		StreamURL: secret.MustURL(strings.Replace(s.URL, "http", "ws", 1) + "/region/7f3a9c"), Key: e.creds.key,
		Secret:   e.creds.secret,
		Provider: sourcetest.Provider, FailAfter: sourcetest.HangGuard,
	}
	for i, id := range e.feeds {
		t.Tokens = append(t.Tokens, source.Token{Address: chain.Address{19: byte(i + 1)}, Feed: id.Hex(), Decimals: 18})
	}
	return t
}

// reply is the report of a feed at a second; the price tells which it is.
func (e *engine) reply(feed chain.Hash, second uint64) string {
	return fmt.Sprintf(`{"feedID":%q,"validFromTimestamp":%d,"observationsTimestamp":%d,"fullReport":%q}`,
		feed.Hex(), second, second, signed(e.t, feed, second, 1000+second-e.first))
}

// advance signs the reports of the next second and pushes them.
func (e *engine) advance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.newest++
	for _, conn := range e.sockets {
		for _, feed := range e.feeds {
			if feed == e.retired {
				continue
			}
			// whoever has gone reads it later
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"report":`+e.reply(feed, e.newest)+`}`))
		}
	}
}

// cut breaks the connections off.
func (e *engine) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, conn := range e.sockets {
		_ = conn.Close()
	}
	e.sockets = nil
}

func (e *engine) turn(deaf bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deaf = deaf
}

func (e *engine) questions() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

func (e *engine) serve(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms, err := strconv.ParseInt(r.Header.Get("X-Authorization-Timestamp"), 10, 64)
	if age := time.Since(time.UnixMilli(ms)); err != nil || age.Abs() > sourcetest.HangGuard ||
		r.Header.Get("Authorization") != e.creds.key.Reveal() ||
		r.Header.Get("X-Authorization-Signature-Sha256") != e.creds.signature(r.Method, r.RequestURI, nil, ms) {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	if e.deaf {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		select {
		case e.refused <- struct{}{}:
		default:
		}
		return
	}
	page := strings.TrimPrefix(r.URL.Path, "/region/7f3a9c/api/v1/")
	e.asked = append(e.asked, page)
	q := r.URL.Query()
	feed, _ := chain.ParseHash(q.Get("feedID"))
	switch page {
	case "ws":
		if len(strings.Split(q.Get("feedIDs"), ",")) != len(e.feeds) {
			e.t.Errorf("subscribed to %s", q.Get("feedIDs"))
		}
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			e.t.Errorf("upgrading: %v", err)
			return
		}
		e.sockets = append(e.sockets, conn)
		go func() { // pings are answered while somebody reads
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		}()
	case "reports/latest":
		if feed == e.retired {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"report":`+e.reply(feed, e.newest)+`}`)
	case "reports/bulk":
		second, _ := strconv.ParseUint(q.Get("timestamp"), 10, 64)
		e.list(w, strings.Split(q.Get("feedIDs"), ","), second)
	default:
		http.NotFound(w, r)
	}
}

func (e *engine) list(w http.ResponseWriter, ids []string, second uint64) {
	if second > e.newest {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var replies []string
	for _, text := range ids {
		id, _ := chain.ParseHash(text)
		replies = append(replies, e.reply(id, second))
	}
	_, _ = io.WriteString(w, `{"reports":[`+strings.Join(replies, ",")+`]}`)
}

// seconds collects reports until every feed has so many, and returns their seconds after the engine's first.
func (e *engine) seconds(t *testing.T, r *sourcetest.Running, n int) map[chain.Address][]uint64 {
	t.Helper()
	got := map[chain.Address][]uint64{}
	short := func() bool {
		for i := range e.feeds {
			if len(got[chain.Address{19: byte(i + 1)}]) < n {
				return true
			}
		}
		return false
	}
	for short() {
		g := r.Next(t)
		for _, err := range g.Unreadable {
			t.Error(err)
		}
		for _, report := range g.Reports {
			e.check(t, report)
			got[report.Token] = append(got[report.Token], report.Second()-e.first)
		}
	}
	return got
}

func (e *engine) check(t *testing.T, r price.Report) {
	t.Helper()
	want := chain.U64(1000 + r.Second() - e.first).Mul(chain.Pow10(12))
	if r.Min != want || r.Max != want || r.Provider != sourcetest.Provider || len(r.Data) != len(recorded(t)) {
		t.Errorf("%s..%s at %d, want %s", r.Min, r.Max, r.Second(), want)
	}
}
