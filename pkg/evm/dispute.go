package evm

import (
	"bytes"
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
	longestHeard   = 1 << 20 // bytes of an endpoint's newest answers that are held whole; of others the beginnings are
	heardAnswers   = 64      // of each endpoint, the newest
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
	Question string    `json:"question"` // the method and its parameters
	Said     []Said    `json:"said"`     // the caught one first, then each of the others that was asked
}

// Said is who said what, word for word: of a long answer the beginning, and what is around the place from which on
// others say something else.
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

// heard is an answer as it came.
type heard struct {
	method string
	args   []any
	body   []byte
}

// question is what was asked, as far as it is kept.
func (h heard) question() string {
	args, _ := json.Marshal(h.args) //nolint:errchkjson // They were sent as JSON.
	text := h.method + " " + string(args)
	return text[:min(len(text), longestSaid)]
}

// newest reports whether the question is about the newest block, of which honest endpoints say different things.
func (h heard) newest() bool { return strings.Contains(h.question(), `"latest"`) }

// pertinent reports whether a method's answers are what an endpoint is caught by for a purpose.
func pertinent(method string, p Purpose) bool {
	switch p {
	case ForReceipts:
		return method == methodReceipt || method == methodReceipts
	case ForCalls, ForNonces, ForPrices:
		return purposeOf(method) == p
	default:
		return purposeOf(method) == Everything && method != methodSoftware
	}
}

// hearing is the newest answers of an endpoint.
type hearing struct {
	mu   sync.Mutex
	ring [heardAnswers]heard
	next int
	held int // bytes
}

// add puts an answer in the place of the oldest. The caller holds the lock.
func (h *hearing) add(one heard) {
	slot := &h.ring[h.next%heardAnswers]
	h.held += len(one.body) - len(slot.body)
	*slot = one
	h.next++
	for i := h.next; h.held > longestHeard && i < h.next+heardAnswers; i++ { // the oldest first
		if old := &h.ring[i%heardAnswers]; len(old.body) > longestSaid {
			h.held -= len(old.body) - longestSaid
			old.body = bytes.Clone(old.body[:longestSaid])
		}
	}
}

// hear keeps the beginning of an answer, and adds it to the disputes that are open about the same question.
func (e *endpoint) hear(method string, args []any, raw []byte) {
	if e.private { // it is asked for nothing that others could contradict
		return
	}
	if len(raw) > longestHeard {
		raw = bytes.Clone(raw[:longestSaid])
	}
	e.hearing.mu.Lock()
	e.hearing.add(heard{method, args, raw}) // nobody writes to an answer
	e.hearing.mu.Unlock()
	if e.disputes.opened.Load() > 0 {
		e.disputes.hear(e, heard{method, args, raw})
	}
}

// hearBatch keeps the beginnings of a batch's answers.
func (e *endpoint) hearBatch(label string, calls []batchCall) {
	var asked []any
	var said []byte
	for _, call := range calls {
		if len(said) > longestSaid {
			break
		}
		asked, said = append(asked, call.args), append(append(said, call.result...), '\n')
	}
	e.hear(label, asked, said)
}

// heard are an endpoint's newest answers, the newest first.
func (h *hearing) heard() (all []heard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for back := 1; back <= min(heardAnswers, h.next); back++ {
		all = append(all, h.ring[(h.next-back)%heardAnswers])
	}
	return all
}

// disputeOf is what there is one dispute about in an hour.
type disputeOf struct {
	endpoint Source
	purpose  Purpose
	reason   Reason
}

// disputes are those of a pool.
type disputes struct {
	endpoints []*endpoint
	kept      chan Dispute
	opened    atomic.Int32

	mu    sync.Mutex
	open  []Dispute
	began map[disputeOf]time.Time // within the last hour
}

// begin opens a dispute about what an endpoint was just caught for: the newest of its answers to such a question, or
// the newest that another one contradicts where it was others who caught it.
func (d *disputes) begin(e *endpoint, p Purpose, r Reason, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, of := time.Now(), disputeOf{e.name, p, r}
	maps.DeleteFunc(d.began, func(_ disputeOf, began time.Time) bool { return now.Sub(began) >= time.Hour })
	if _, again := d.began[of]; again || len(d.began) >= mostDisputes || len(d.open) >= openedDisputes {
		return
	}
	if d.began == nil {
		d.began = map[disputeOf]time.Time{}
	}
	d.began[of] = now
	dispute := Dispute{At: now.UTC(), Endpoint: e.name, For: p, Reason: r, Detail: detail}
	byOthers := r == ReasonContradicted || r == ReasonSuspected || r == ReasonUndecided
	for _, h := range e.hearing.heard() {
		if !pertinent(h.method, p) || byOthers && h.newest() {
			continue
		}
		against := d.against(e, h)
		if dispute.Said == nil || against != nil {
			dispute.Question, dispute.Said = h.question(), append([]Said{e.says(h.body)}, against...)
		}
		if !byOthers || against != nil {
			break
		}
	}
	d.open = append(d.open, dispute)
	d.opened.Store(int32(len(d.open)))
}

// undecided opens a dispute where hosts say different things and nobody can tell who is wrong: about the first by name,
// so that it is one.
func undecided[T any](c *Client, p Purpose, answers []agreement.Answer[T], detail string) {
	first := ""
	for _, a := range answers {
		if first == "" || a.From < first {
			first = a.From
		}
	}
	if e := c.pool.named(Source(first)); e != nil && len(answers) > 1 {
		c.pool.disputes.begin(e, p, ReasonUndecided, detail)
	}
}

// against are the others' newest answers to a question, none where none of them differs.
func (d *disputes) against(e *endpoint, mine heard) (said []Said) {
	differs, question := false, mine.question()
	for _, other := range d.endpoints {
		if other == e {
			continue
		}
		for _, h := range other.hearing.heard() {
			if h.question() == question {
				differs = differs || !sameAnswer(h.body, mine.body)
				said = append(said, other.says(h.body))
				break
			}
		}
	}
	if !differs {
		return nil
	}
	return said
}

// hear adds what an endpoint says to the disputes about that question in which it has not spoken yet.
func (d *disputes) hear(e *endpoint, h heard) {
	question := h.question()
	d.mu.Lock()
	defer d.mu.Unlock()
	spoke := func(s Said) bool { return s.Endpoint == e.name }
	for i := range d.open {
		dispute := &d.open[i]
		if dispute.Question == question && !slices.ContainsFunc(dispute.Said, spoke) {
			dispute.Said = append(dispute.Said, e.says(h.body))
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
	at := 0 // from where on they differ
	for i, s := range d.Said {
		if i == 1 {
			at = len(d.Said[0].Body)
		}
		for n := range min(at, len(s.Body)) {
			if i > 0 && s.Body[n] != d.Said[0].Body[n] {
				at = n
				break
			}
		}
	}
	for i, s := range d.Said {
		if len(s.Body) <= longestSaid {
			continue
		}
		begin := s.Body[:longestSaid]
		if from := at - longestSaid/4; at > longestSaid/2 && from < len(s.Body) {
			begin = s.Body[:longestSaid/4] + " … " + s.Body[from:min(len(s.Body), from+longestSaid/2)]
		}
		d.Said[i].Body = strings.ToValidUTF8(begin, "?")
	}
}

func (e *endpoint) says(body []byte) Said {
	return Said{e.name, scrub(string(bytes.ToValidUTF8(body, []byte("?"))), e.url)}
}

// sameAnswer reports whether two answers say the same, however they are written.
func sameAnswer(a, b []byte) bool {
	var x, y any
	if bytes.Equal(a, b) {
		return true
	}
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, _ := json.Marshal(x)  //nolint:errchkjson // It was JSON.
	second, _ := json.Marshal(y) //nolint:errchkjson // It was JSON.
	return bytes.Equal(first, second)
}
