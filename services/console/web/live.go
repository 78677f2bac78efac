package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Bounds of what browsers can make this process do.
const (
	mostTopics  = 64  // pages with their questions that are followed at a time
	mostWatches = 256 // browsers' connections
	mostOfOne   = 16  // those of one user: nobody takes all
)

var errTooManyWatch = errors.New("too many browsers look at this keeper; close some, or try again later")

// look is what a topic's store held at a moment.
type look struct {
	at   time.Time
	view any
	err  error
}

// hub follows each topic for as long as anybody watches it: its stores are asked once a moment, however many watch.
type hub struct {
	ctx context.Context //nolint:containedctx // the hub's own: what is followed ends with it
	log zerolog.Logger

	mutex   sync.Mutex
	topics  map[string]*topic
	watches int
	of      map[string]int // watches by user
}

type topic struct {
	watches map[*watch]bool
	last    *look
	stop    context.CancelFunc
}

// watch is one browser's. Seen holds the newest look that was not taken yet; it is closed when the hub ends.
type watch struct {
	seen  chan look
	close func()
}

func newHub(ctx context.Context, log zerolog.Logger) *hub {
	return &hub{ctx: ctx, log: log, topics: map[string]*topic{}, of: map[string]int{}}
}

// watch follows a topic for a user. The caller closes it.
func (h *hub) watch(user, name string, every time.Duration, load func(context.Context) (any, error)) (*watch, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	t := h.topics[name]
	if h.watches >= mostWatches || h.of[user] >= mostOfOne || t == nil && len(h.topics) >= mostTopics ||
		h.ctx.Err() != nil {
		return nil, errTooManyWatch
	}
	if t == nil {
		ctx, stop := context.WithCancel(h.ctx)
		t = &topic{watches: map[*watch]bool{}, stop: stop}
		h.topics[name] = t
		go h.follow(ctx, t, every, load)
	}
	w := &watch{seen: make(chan look, 1)}
	w.close = sync.OnceFunc(func() { h.leave(user, name, t, w) })
	t.watches[w] = true
	h.watches++
	h.of[user]++
	if t.last != nil {
		w.seen <- *t.last
	}
	return w, nil
}

func (h *hub) leave(user, name string, t *topic, w *watch) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(t.watches, w)
	h.watches--
	if h.of[user]--; h.of[user] == 0 {
		delete(h.of, user)
	}
	if len(t.watches) == 0 {
		t.stop()
		if h.topics[name] == t {
			delete(h.topics, name)
		}
	}
}

// follow asks a topic's stores until nobody watches.
func (h *hub) follow(ctx context.Context, t *topic, every time.Duration, load func(context.Context) (any, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, pageTimeout)
		view, err := load(asking)
		cancel()
		h.publish(t, look{time.Now(), view, err})
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.end(t)
			return
		}
	}
}

// publish gives a look to all who watch; who has not taken the last one gets this in its place.
func (h *hub) publish(t *topic, seen look) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	t.last = &seen
	for w := range t.watches {
		select {
		case <-w.seen:
		default:
		}
		w.seen <- seen
	}
}

// end closes what is still watched when the hub ends.
func (h *hub) end(t *topic) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for w := range t.watches {
		close(w.seen)
		delete(t.watches, w)
	}
}
