package planner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

// quotes is the board of price reports, fed from the price topic, and which tokens have news.
type quotes struct {
	board *price.Board

	mu      sync.Mutex
	tokens  map[chain.Address]bool // those with a newer report since the last call of take
	arrived time.Time              // when the first of them came
	changed chan struct{}          // holds one token when tokens is not empty

	reject func(r bus.Record, why error) // takes records that nobody can read
}

func newQuotes(reject func(r bus.Record, why error)) *quotes {
	return &quotes{reject: reject, board: price.NewBoard(), tokens: map[chain.Address]bool{},
		changed: make(chan struct{}, 1)}
}

// follow reads the price topic from a board's window ago until ctx ends: due times of jobs are looked up in it. Records
// that nobody can read are passed over: the sender makes dead letters of them.
func (q *quotes) follow(ctx context.Context, client *bus.Client, topic string) error {
	const onlyPartition = 0
	offset, err := client.OffsetAt(ctx, topic, onlyPartition, time.Now().Add(-price.Window))
	if err != nil {
		return fmt.Errorf("looking for reports of the last %s: %w", price.Window, err)
	}
	reader := client.Reader(topic, onlyPartition, offset)
	for {
		records, err := reader.NextBatch(ctx, 1000)
		if err != nil {
			return fmt.Errorf("reading price reports: %w", err)
		}
		q.read(records, time.Now())
	}
}

// read takes in records that have arrived.
func (q *quotes) read(records []bus.Record, arrived time.Time) {
	for _, r := range records {
		report, err := reportOf(r)
		if err != nil {
			q.reject(r, err)
			continue
		}
		q.add(report, arrived)
	}
}

// reportOf is the report of a record of the price topic.
func reportOf(r bus.Record) (price.Report, error) {
	m, _, err := wire.Decode(r)
	if err != nil {
		return price.Report{}, err
	}
	message, is := m.(wire.Price)
	if !is {
		return price.Report{}, fmt.Errorf("a %T has no place among price reports (partition %d, offset %d)", m,
			r.Partition, r.Offset)
	}
	report := price.FromMessage(message)
	return report, report.Validate()
}

func (q *quotes) add(r price.Report, arrived time.Time) {
	if !q.board.Add(r) {
		return
	}
	if newest, _ := q.board.Latest(r.Token); newest.TimeMs != r.TimeMs {
		return // it came late; a later one has been judged with
	}
	q.mu.Lock()
	if len(q.tokens) == 0 {
		q.arrived = arrived
	}
	q.tokens[r.Token] = true
	q.mu.Unlock()
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// take returns the tokens with newer reports, and when the first of these came.
func (q *quotes) take() (tokens map[chain.Address]bool, arrived time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tokens, arrived = q.tokens, q.arrived
	q.tokens = map[chain.Address]bool{}
	return tokens, arrived
}

// latest returns the newest report of a token.
func (q *quotes) latest(token chain.Address) (newest due.Quote, known bool) {
	r, known := q.board.Latest(token)
	return quoteOf(r), known
}

// at returns the newest report of each token within [from, to] seconds.
func (q *quotes) at(tokens []chain.Address, from, to uint64) map[chain.Address]due.Quote {
	found := make(map[chain.Address]due.Quote, len(tokens))
	for _, token := range tokens {
		if r, known := q.board.NewestWithin(token, from, to); known {
			found[token] = quoteOf(r)
		}
	}
	return found
}

// before returns the newest second before one in which any of the tokens was reported; none where that is longest ago.
func (q *quotes) before(tokens []chain.Address, second uint64) (newest uint64, known bool) {
	if second == 0 {
		return 0, false
	}
	for _, token := range tokens {
		if r, reported := q.board.NewestWithin(token, second-min(second, longest), second-1); reported {
			newest, known = max(newest, r.Second()), true
		}
	}
	return newest, known
}

func quoteOf(r price.Report) due.Quote {
	q := due.Quote{TimeMs: r.TimeMs, ID: r.ID(), Stuck: r.Stuck()}
	q.Min, q.Max = r.Min, r.Max
	return q
}
