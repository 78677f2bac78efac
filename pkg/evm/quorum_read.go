package evm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/evm/agreement"
)

// hosts counts the different hosts among the endpoints to read from.
func (p *pool) hosts() int {
	different := map[string]bool{}
	for _, e := range p.public {
		different[e.host] = true
	}
	return len(different)
}

// Hosts is from how many different hosts the chain is read. With one, facts that cannot be taken back rest on its word
// alone.
func (c *Client) Hosts() int { return c.pool.hosts() }

// OneWord is a sentence for people where everything rests on the word of one host; empty where two can be compared.
func (c *Client) OneWord() string {
	if c.Hosts() > 1 {
		return ""
	}
	return fmt.Sprintf("all endpoints of the chain are at one host (%s): what is final, spent or refused rests on "+
		"its word alone "+
		"(name an endpoint of another provider in chain.urls)", c.pool.public[0].host)
}

// required is how many hosts have to agree on what cannot be taken back.
func (p *pool) required() int { return agreement.Required(p.hosts()) }

// quorumFanOut is how many hosts are asked at once: two that agree, and one that may be wrong, late or away.
const quorumFanOut = 3

// bestOfHosts returns one endpoint of each host, the best of it for a purpose, the best host first. Hosts that were
// caught come last. One of another chain is not among them.
func (p *pool) bestOfHosts(purpose Purpose) ([]*endpoint, error) {
	places, err := p.places(purpose, nil)
	if err != nil {
		return nil, err
	}
	candidates := upTo(distrusted, places)
	if len(candidates) == 0 {
		candidates = upTo(foreign, places) // they are asked to say so
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(candidates, func(e *endpoint) bool {
		again := seen[e.host]
		seen[e.host] = true
		return again
	}), nil
}

// QuorumRead asks up to three hosts the same thing, each for itself and all at once, and further ones in the place of
// those that have no answer. It returns as soon as all of them have answered, or enough have and the others are late or
// known to be away, slow or wrong. The error says why there are fewer answers than need; what there is comes with it.
// Ask must be safe for concurrent use. The reader it gets asks one endpoint and no other.
func QuorumRead[T any](
	ctx context.Context, c *Client, purpose Purpose, need int, ask func(ctx context.Context, one Reader) (T, error),
) ([]agreement.Answer[T], error) {
	endpoints, err := c.pool.bestOfHosts(purpose)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errOvertaken)
	s := quorumRead[T]{need: need, replies: make(chan reply[T], len(endpoints)), silent: map[*endpoint]bool{}}
	for s.asked < min(quorumFanOut, len(endpoints)) {
		s.next(ctx, c, endpoints, ask)
	}
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	for len(s.silent) > 0 {
		select {
		case r := <-s.replies:
			e := endpoints[r.from]
			delete(s.silent, e)
			if r.err == nil {
				s.answers = append(s.answers, agreement.Answer[T]{From: string(e.name), Host: e.host, Value: r.value})
			} else if s.problems = append(s.problems, r.err); s.asked < len(endpoints) {
				s.next(ctx, c, endpoints, ask)
			}
			if len(s.answers) >= need && !s.worthwhile(purpose) {
				return s.answers, nil
			}
			if len(s.answers) == need {
				late.Reset(c.pool.cfg.HedgeAfter)
			}
		case <-late.C:
			return s.answers, nil
		}
	}
	return s.answers, s.short()
}

// decide reads what two hosts have to agree on. Where the answers contradict each other and somebody was late it asks
// once more and waits for all, as long as an endpoint may take that is not called slow: one that is right must not lose
// to one that is faster. Agreed is called last with what is returned.
func decide[T any](
	ctx context.Context, c *Client, purpose Purpose, ask func(context.Context, Reader) (T, error),
	agreed func([]agreement.Answer[T]) bool,
) ([]agreement.Answer[T], error) {
	answers, err := QuorumRead(ctx, c, purpose, c.pool.required(), ask)
	all := min(quorumFanOut, c.pool.hosts())
	if err != nil || agreed(answers) || len(answers) >= all {
		return answers, err
	}
	limited, cancel := context.WithTimeout(ctx, c.pool.cfg.SlowAfter)
	defer cancel()
	// why somebody is missing matters no more
	if more, _ := QuorumRead(limited, c, purpose, all, ask); len(more) >= len(answers) {
		answers = more
		agreed(answers)
	}
	return answers, nil
}

// quorumRead is the state of a QuorumRead.
type quorumRead[T any] struct {
	need, asked int
	replies     chan reply[T]
	silent      map[*endpoint]bool // asked, and has not answered
	answers     []agreement.Answer[T]
	problems    []error
}

// worthwhile reports whether an answer may be expected soon from one of those who have not answered.
func (s *quorumRead[T]) worthwhile(purpose Purpose) bool {
	for e := range s.silent {
		if at, _ := e.rank(purpose); at == good {
			return true
		}
	}
	return false
}

func (s *quorumRead[T]) next(ctx context.Context, c *Client, endpoints []*endpoint,
	ask func(context.Context, Reader) (T, error)) {
	at, one := s.asked, c.only(endpoints[s.asked])
	s.silent[endpoints[at]] = true
	s.asked++
	go func() {
		v, err := ask(ctx, one)
		s.replies <- reply[T]{v, at, err}
	}()
}

// short is why there are not enough answers.
func (s *quorumRead[T]) short() error {
	if len(s.answers) >= s.need {
		return nil
	}
	return &undecidedError{fmt.Sprintf("%d of %d hosts that are needed have answered", len(s.answers), s.need),
		exhausted(s.problems)}
}

// only returns a reader that asks one endpoint.
func (c *Client) only(e *endpoint) Reader {
	r := Reader{pool: c.pool}
	for _, other := range c.pool.public {
		if other != e {
			r.without = append(r.without, other.name)
		}
	}
	return r
}

// undecidedError reports that fewer hosts than needed agree.
type undecidedError struct {
	text  string
	cause error // why some did not answer; nil where they contradict each other
}

func (e *undecidedError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

func (e *undecidedError) Unwrap() error { return e.cause }

// Undecided reports whether an error says that too few hosts agree on a fact, because they do not answer or contradict
// each other. Waiting may mend it.
func Undecided(err error) bool {
	_, is := errors.AsType[*undecidedError](err)
	return is
}
