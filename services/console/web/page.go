package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"perpkeeper/services/console/signin"
)

// page is one of the console's pages.
type page struct {
	path     string
	Title    string
	template string
	inNav    bool
	every    time.Duration // between two looks while somebody looks
	load     func(ctx context.Context, ask url.Values) (any, error)
}

// Href is the page's address, for the navigation.
func (p page) Href() string {
	if p.path == "/{$}" {
		return "/"
	}
	return p.path
}

const (
	pageTimeout = 10 * time.Second
	quick       = time.Second
	slow        = 5 * time.Second // for what reads topics
)

func (c *console) allPages() []page {
	return []page{
		{"/{$}", "Overview", "overview", true, 2 * time.Second, c.overview},
		{"/jobs", "Jobs", "jobs", true, quick, c.jobs},
		{"/job", "Job", "job", false, slow, c.job},
		{"/positions", "Positions", "positions", true, 2 * time.Second, c.positions},
		{"/market", "Market", "market", true, 2 * time.Second, c.market},
		{"/signers", "Signers", "signers", true, quick, c.signers},
		{"/delayed", "Delayed", "delayed", true, quick, c.delayed},
		{"/deadletters", "Dead letters", "deadletters", true, slow, c.deadLetters},
		{"/pnl", "P&L", "pnl", true, slow, c.pnl},
		{"/audit", "Audit", "audit", true, quick, c.audit},
	}
}

// nav are the pages that every page leads to.
func (c *console) nav() (linked []page) {
	for _, p := range c.pages {
		if p.inNav {
			linked = append(linked, p)
		}
	}
	return linked
}

// notFoundError reports that what a page was asked for is not there.
type notFoundError struct{ error }

// badQuestionError reports that a page was asked for what makes no sense.
type badQuestionError struct{ error }

// servePage writes a page whole, with its view of now.
func (c *console) servePage(w http.ResponseWriter, r *http.Request, s signin.Session, p page) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	ask := r.URL.Query()
	shown := shownPage{Title: p.Title, Path: p.Href(), Nav: c.nav(), Me: s, At: c.Now()}
	shown.Live = "/live?" + topicQuery(p, ask).Encode()
	status := http.StatusOK
	var err error
	if shown.View, err = c.look(ctx, p, ask); err != nil {
		status, shown.Problem = c.problem(p, err)
	}
	if status == http.StatusNotFound || status == http.StatusBadRequest {
		shown.Live = ""
	}
	c.show(w, status, p.template, shown)
}

// look loads a page, and has what names it needs learnt for the next time.
func (c *console) look(ctx context.Context, p page, ask url.Values) (any, error) {
	c.Names.Learn(ctx)
	return p.load(ctx, ask)
}

// problem returns the status and the message by which an error is shown in a browser.
func (c *console) problem(p page, err error) (status int, message string) {
	switch {
	case errors.As(err, new(notFoundError)):
		return http.StatusNotFound, err.Error()
	case errors.As(err, new(badQuestionError)):
		return http.StatusBadRequest, err.Error()
	}
	c.Log.Warn().Err(err).Str("page", p.Title).Msg("a page cannot be read")
	return http.StatusServiceUnavailable, "This cannot be read now: " + err.Error()
}

// topicQuery names a page and its question as /live is asked for it: without what pages do not know, so that browsers
// that see the same share one topic.
func topicQuery(p page, ask url.Values) url.Values {
	q := url.Values{"page": {p.Href()}}
	for _, name := range []string{"show", "kind", "outcome", "before", "id", "status", "period", "by", "sort",
		"order"} {
		if v := ask.Get(name); v != "" {
			q.Set(name, v)
		}
	}
	return q
}

// stream sends a page's view whenever it has changed, for as long as the browser looks and the session is open.
func (c *console) stream(w http.ResponseWriter, r *http.Request, s signin.Session) {
	ask := r.URL.Query()
	i := slices.IndexFunc(c.pages, func(p page) bool { return p.Href() == ask.Get("page") })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	p := c.pages[i]
	query := topicQuery(p, ask)
	watch, err := c.live.watch(s.Name, query.Encode(), p.every,
		func(ctx context.Context) (any, error) { return c.look(ctx, p, query) })
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer watch.close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	c.send(w, r, p, watch)
}

// sendTimeout is for one message to a browser that does not read.
const sendTimeout = 10 * time.Second

// send writes what a watch sees until either side has enough. An empty message keeps the connection open,
// and finds out that a browser is gone.
func (c *console) send(w http.ResponseWriter, r *http.Request, p page, watch *watch) {
	control, last := http.NewResponseController(w), []byte(nil)
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		_ = control.SetWriteDeadline(time.Now().Add(sendTimeout)) // where it cannot be set, the server's own holds
		if control.Flush() != nil {
			return
		}
		message := []byte(": still here\n\n")
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
		case seen, open := <-watch.seen:
			s, signedIn := c.session(r)
			if !open || !signedIn {
				return
			}
			fragment := c.fragment(p, s, seen)
			if bytes.Equal(fragment, last) {
				continue
			}
			last, message = fragment, event(fragment)
		}
		_ = control.SetWriteDeadline(time.Now().Add(sendTimeout))
		if _, err := w.Write(message); err != nil {
			return
		}
	}
}

// fragment is a page's view as it stands within the page.
func (c *console) fragment(p page, s signin.Session, seen look) []byte {
	shown := shownPage{Title: p.Title, Path: p.Href(), Me: s, At: seen.at, View: seen.view}
	if seen.err != nil {
		_, shown.Problem = c.problem(p, seen.err)
	}
	var out bytes.Buffer
	if err := c.shown[p.template].ExecuteTemplate(&out, "live", shown); err != nil {
		c.Log.Error().Err(err).Str("page", p.Title).Msg("a page cannot be written")
	}
	return out.Bytes()
}

// event is a fragment as a server-sent event.
func event(fragment []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(bytes.TrimSpace(fragment)) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
	return out.Bytes()
}
