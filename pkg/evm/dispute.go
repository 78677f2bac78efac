package evm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/evm/agreement"
)

// What is kept of disputes: parts of answers, and so many disputes an hour.
const (
	longestSaid    = 4 << 10 // bytes of an answer, or of a question
	mostDisputes   = 32      // an hour, one of a kind of each endpoint
	openedDisputes = 8       // wait for what others say, and as many for whoever keeps them
)

// Dispute is an answer for which an endpoint was caught, or that two contradict each other about, and what others say
// to the same question. It holds no secret.
type Dispute struct {
	At       time.Time `json:"at"`
	Endpoint Source    `json:"endpoint"`
	For      Purpose   `json:"for"`
	Reason   Reason    `json:"reason"`
	Detail   string    `json:"detail"`
	Question string    `json:"question"` // the method and its parameters; empty where no single answer is in dispute
	Said     []Said    `json:"said"`     // a liar first; the others that were asked
}

// Said is who said what: of an answer that is a lie word for word, of a long one from a little before the place at
// which another one's differs.
type Said struct {
	Endpoint Source `json:"endpoint"`
	Body     string `json:"body"`
}

// KeepDisputes gives every dispute to keep a few seconds after it has begun, when other endpoints have been asked as
// well: whom it is about, what was seen, and the whole as JSON. It returns when ctx ends. What cannot be kept is
// logged.
func (c *Client) KeepDisputes(ctx context.Context,
	keep func(ctx context.Context, endpoint, why string, dispute []byte) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d := <-c.pool.disputes.kept:
			text, err := json.Marshal(d)
			if err == nil {
				limited, cancel := context.WithTimeout(ctx, time.Minute)
				err = keep(limited, string(d.Endpoint), fmt.Sprintf("%s, for %s: %s", d.Reason, d.For, d.Detail), text)
				cancel()
			}
			if err != nil && ctx.Err() == nil {
				c.pool.log.Warn().Err(err).Str("endpoint", string(d.Endpoint)).RawJSON("dispute", text).
					Msg("evm: a dispute of endpoints is not kept")
			}
		}
	}
}

// unfitError is an answer that did not pass, with the question and the answer word for word.
type unfitError struct {
	error
	question string
	body     []byte
}

func (e *unfitError) Unwrap() error { return e.error }

// unfit keeps an answer that did not pass beside the reason.
func unfit(err error, method string, args []any, body []byte) error {
	if class, _ := classify(err); class != failedLie {
		return err
	}
	return &unfitError{err, questionOf(method, args), body}
}

// questionOf is what was asked, as far as it is kept.
func questionOf(method string, args []any) string {
	params, _ := json.Marshal(args) //nolint:errchkjson // They were sent as JSON.
	text := method + " " + string(params)
	return text[:min(len(text), longestSaid)]
}

// disputeOf is what there is one dispute about in an hour.
type disputeOf struct {
	endpoint Source
	purpose  Purpose
	reason   Reason
}

// disputes are those of a pool.
type disputes struct {
	kept   chan Dispute
	opened atomic.Int32

	mu    sync.Mutex
	open  []Dispute
	began map[disputeOf]time.Time // within the last hour
}

// begin opens a dispute.
func (d *disputes) begin(dispute Dispute) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, of := time.Now(), disputeOf{dispute.Endpoint, dispute.For, dispute.Reason}
	maps.DeleteFunc(d.began, func(_ disputeOf, began time.Time) bool { return now.Sub(began) >= time.Hour })
	if _, again := d.began[of]; again || len(d.began) >= mostDisputes || len(d.open) >= openedDisputes {
		return
	}
	if d.began == nil {
		d.began = map[disputeOf]time.Time{}
	}
	d.began[of], dispute.At = now, now.UTC()
	d.open = append(d.open, dispute)
	d.opened.Store(int32(len(d.open)))
}

// saidBy are the answers of several endpoints, as they were read.
func saidBy[T any](answers []agreement.Answer[T]) []Said {
	said := make([]Said, len(answers))
	for i, a := range answers {
		said[i] = Said{Source(a.From), fmt.Sprint(a.Value)}
	}
	return said
}

// undecided opens a dispute where hosts say different things and nobody can tell who is wrong: about the first by name,
// so that it is one.
func undecided[T any](c *Client, p Purpose, answers []agreement.Answer[T], detail string) {
	if len(answers) < 2 {
		return
	}
	said := saidBy(answers)
	slices.SortFunc(said, func(a, b Said) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	c.pool.disputes.begin(Dispute{Endpoint: said[0].Endpoint, For: p, Reason: ReasonUndecided, Detail: detail,
		Said: said})
}

// hear adds what an endpoint says to the disputes about that question in which it has not spoken yet.
func (d *disputes) hear(e *endpoint, method string, args []any, body []byte) {
	if d.opened.Load() == 0 {
		return
	}
	question := questionOf(method, args)
	d.mu.Lock()
	defer d.mu.Unlock()
	spoke := func(s Said) bool { return s.Endpoint == e.name }
	for i := range d.open {
		dispute := &d.open[i]
		if dispute.Question == question && !slices.ContainsFunc(dispute.Said, spoke) {
			dispute.Said = append(dispute.Said, e.says(body))
		}
	}
}

// close hands on the disputes that have been open for a while.
func (d *disputes) close(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(dispute Dispute) bool {
		const others = 2 * time.Second // are asked within
		if now.Sub(dispute.At) < others {
			return false
		}
		dispute.cut()
		select {
		case d.kept <- dispute:
		default: // nobody keeps them
		}
		return true
	})
	d.opened.Store(int32(len(d.open)))
}

// cut shortens long answers.
func (d *Dispute) cut() {
	from := 0
	if len(d.Said) > 1 {
		a, b := d.Said[0].Body, d.Said[1].Body
		for from < min(len(a), len(b)) && a[from] == b[from] {
			from++
		}
	}
	from = max(from-longestSaid/4, 0)
	for i, s := range d.Said {
		if len(s.Body) > longestSaid {
			at := min(from, len(s.Body)-longestSaid)
			d.Said[i].Body = strings.ToValidUTF8(s.Body[at:at+longestSaid], "?")
		}
	}
}

func (e *endpoint) says(body []byte) Said {
	return Said{e.name, scrub(string(bytes.ToValidUTF8(body, []byte("?"))), e.url)}
}
