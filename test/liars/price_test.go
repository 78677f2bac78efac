package liars

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// priceSource is a price service of its own before the devnet's: it passes reports on, takes its time, and changes them
// while it lies.
type priceSource struct {
	url  string
	feed string // the devnet's

	mu    sync.Mutex
	delay time.Duration
	lie   *lie
	share int
	past  [][]report // what went through, oldest first
	about int        // reports that went through since the lie began
	lied  int
}

// report is a price report as the devnet's service shows it.
type report struct {
	Token       string          `json:"token"`
	Provider    string          `json:"provider"`
	Data        json.RawMessage `json:"data"`
	MinPrice    string          `json:"minPrice"`
	MaxPrice    string          `json:"maxPrice"`
	TimestampMs uint64          `json:"timestampMs"`
}

// keptReports is how many events of the past can be repeated.
const keptReports = 512

func startPriceSource(t *testing.T, feed string) *priceSource {
	t.Helper()
	s := &priceSource{feed: feed, share: 1}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.CloseClientConnections)
	s.url = server.URL
	return s
}

func (s *priceSource) begin(l *lie, share int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie, s.share, s.about, s.lied = l, share, 0, 0
}

func (s *priceSource) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = nil
}

func (s *priceSource) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lied
}

func (s *priceSource) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

// serve passes a page or a stream of events on, line by line.
func (s *priceSource) serve(w http.ResponseWriter, r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, s.feed+r.URL.RequestURI(), nil)
	if err != nil {
		return
	}
	request.Header = r.Header.Clone()
	reply, err := toNode.Do(request)
	if err != nil {
		http.Error(w, "the service is away", http.StatusBadGateway)
		return
	}
	defer func() { _ = reply.Body.Close() }()
	for _, name := range []string{"Content-Type", "ETag"} {
		w.Header().Set(name, reply.Header.Get(name))
	}
	w.WriteHeader(reply.StatusCode)
	out, lines := http.NewResponseController(w), bufio.NewReader(reply.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if _, failed := w.Write(s.rewrite(line)); failed != nil || out.Flush() != nil || err != nil {
			return
		}
	}
}

// rewrite changes a list of reports, be it a page or the data of an event.
func (s *priceSource) rewrite(line []byte) []byte {
	list, isEvent := bytes.CutPrefix(line, []byte("data: "))
	var reports []report
	if json.Unmarshal(list, &reports) != nil || len(reports) == 0 {
		return line
	}
	s.mu.Lock()
	delay := s.delay
	if s.past = append(s.past, reports); len(s.past) > keptReports {
		s.past = s.past[1:]
	}
	if s.lie != nil {
		s.about++
	}
	if s.lie != nil && s.about%s.share == 1%s.share {
		if said := s.lie.reports(s, reports); said != nil {
			s.lied++
			list = append(encode(said), '\n')
		}
	}
	s.mu.Unlock()
	time.Sleep(delay)
	if isEvent {
		return append([]byte("data: "), list...)
	}
	return list
}

// reportsAhead are from ten seconds on.
func reportsAhead(_ *priceSource, honest []report) []report {
	said := append([]report(nil), honest...)
	for i := range said {
		said[i].TimestampMs += 10_000
	}
	return said
}

// reportsBehind are true ones of a quarter of a minute ago.
func reportsBehind(s *priceSource, honest []report) []report {
	then := honest[0].TimestampMs - 15_000
	for _, said := range s.past {
		if said[0].TimestampMs >= then {
			return said
		}
	}
	return nil
}

// reportsAbsurd are ten times as high.
func reportsAbsurd(_ *priceSource, honest []report) []report {
	tenfold := func(text string) string {
		price, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return text
		}
		return price.Mul(price, big.NewInt(10)).String()
	}
	said := append([]report(nil), honest...)
	for i := range said {
		said[i].MinPrice, said[i].MaxPrice = tenfold(said[i].MinPrice), tenfold(said[i].MaxPrice)
	}
	return said
}

// post sends a JSON body and returns the answer.
func post(url string, body []byte) ([]byte, error) {
	reply, err := toNode.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	return io.ReadAll(reply.Body)
}

// page reads a page of a process.
func page(url string) (text string, status int) {
	reply, err := toNode.Get(url)
	if err != nil {
		return "", 0
	}
	defer func() { _ = reply.Body.Close() }()
	raw, err := io.ReadAll(reply.Body)
	if err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(raw)), reply.StatusCode
}
