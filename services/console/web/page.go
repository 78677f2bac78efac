package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
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

// servePage writes a page with its view of now; to a browser that has it open, its view alone, of a moment ago at most.
func (c *console) servePage(w http.ResponseWriter, r *http.Request, s signin.Session, p page) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), pageTimeout)
	defer cancel()
	ask := known(r.URL.Query())
	shown := shownPage{Title: p.Title, Path: p.Href(), Nav: c.nav(), Me: s, At: c.Now(), Every: p.every}
	shown.Live = p.Href() + "?" + ask.Encode()
	load := func() (any, error) {
		c.Names.Learn(ctx)
		return p.load(ctx, ask)
	}
	whole, status := r.Header.Get(fragmentHeader) == "", http.StatusOK
	var err error
	if whole {
		shown.View, err = load()
	} else {
		shown.At, shown.View, err = c.looks.of(shown.Live, p.every/2, load)
	}
	if err != nil {
		status, shown.Problem = c.problem(p, err)
	}
	if status == http.StatusNotFound || status == http.StatusBadRequest {
		shown.Live = ""
	}
	if whole {
		c.show(w, status, p.template, shown)
	} else {
		c.write(w, status, p.template, "live", shown)
	}
}

// fragmentHeader is what htmx sends where a page asks for its own view again.
const fragmentHeader = "Hx-Request"

// known is a question without what pages do not know, so that browsers that see the same share one look.
func known(ask url.Values) url.Values {
	q := url.Values{}
	for _, name := range []string{"show", "kind", "outcome", "before", "id", "status", "period", "by", "sort",
		"order"} {
		if v := ask.Get(name); v != "" {
			q.Set(name, v)
		}
	}
	return q
}

// mostLooks is how many pages, with their questions, are remembered at a time.
const mostLooks = 64

// looks are what open pages were shown last: their stores are asked once a moment, however many browsers look.
type looks struct {
	mutex  sync.Mutex
	byPage map[string]*look
}

type look struct {
	busy sync.Mutex // held by who asks the stores; guards the rest
	at   time.Time
	view any
	err  error
}

// of is what a page shows, asked for anew where the last look is older than a time.
func (l *looks) of(page string, old time.Duration, load func() (any, error)) (at time.Time, view any, err error) {
	l.mutex.Lock()
	one := l.byPage[page]
	if one == nil {
		if len(l.byPage) >= mostLooks || l.byPage == nil {
			l.byPage = map[string]*look{}
		}
		one = new(look)
		l.byPage[page] = one
	}
	l.mutex.Unlock()
	one.busy.Lock()
	defer one.busy.Unlock()
	if time.Since(one.at) >= old {
		one.view, one.err = load()
		one.at = time.Now()
	}
	return one.at, one.view, one.err
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
