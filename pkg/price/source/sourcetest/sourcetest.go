// Package sourcetest runs sources of prices in tests, against services that the tests play.
package sourcetest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/setting/secret"
)

// HangGuard ends a wait that would otherwise never end. It is no measure of anything.
const HangGuard = 60 * time.Second

// Addresses that tests use.
var (
	Wbnb     = chain.Address{19: 1}
	Usdc     = chain.Address{19: 2}
	Provider = chain.Address{19: 9}
)

// Given is what a source gave at once.
type Given struct {
	Reports    []price.Report
	Unreadable []error
}

// Running is a source that runs as a feed would run it: again after every failure, but at once.
type Running struct {
	Given chan Given
	mu    sync.Mutex
	fails []error
}

// Source opens the source of a table, asked often, and drops its connections at the end of the test.
func Source(tb testing.TB, p source.Plugin, table source.Table, node source.Caller) price.Source {
	tb.Helper()
	table.Name, table.Kind, table.Interval = "s", p.Kind, 10*time.Millisecond
	table.FailAfter = cmp.Or(table.FailAfter, price.DefaultFailover().After)
	table.MaxAge = cmp.Or(table.MaxAge, price.DefaultGates().MaxAge)
	if err := p.Check(table); err != nil {
		tb.Fatal(err)
	}
	const patience = 10 * time.Second
	c := source.NewClient(table.URL, patience)
	tb.Cleanup(c.Close)
	return p.Open(table, source.Env{Client: c, Node: node, Timeout: patience})
}

// Run runs the source of a table until the test ends.
func Run(t *testing.T, p source.Plugin, table source.Table, node source.Caller) *Running {
	t.Helper()
	one := Source(t, p, table, node)
	r := &Running{Given: make(chan Given, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			err := one.Run(ctx, func(reports []price.Report, unreadable []error) {
				if len(reports)+len(unreadable) > 0 {
					r.Given <- Given{reports, unreadable}
				}
			})
			r.failed(ctx, err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return r
}

func (r *Running) failed(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		r.fails = append(r.fails, err)
	}
}

// Failures are what the source has failed with until now.
func (r *Running) Failures() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.fails...)
}

// Next is what the source gives next.
func (r *Running) Next(t *testing.T) Given {
	t.Helper()
	select {
	case g := <-r.Given:
		return g
	case <-time.After(HangGuard):
		t.Fatalf("the source gave nothing; it failed with: %v", r.Failures())
		panic("unreachable")
	}
}

// Serve runs a service until the test ends, after everything that was opened later.
func Serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// At is the address of a service, with a part that is secret: 7f3a9c.
func At(s *httptest.Server) secret.URL { return secret.MustURL(s.URL + "/region/7f3a9c") }

// Sane fails the test for a report that no price can be.
func Sane(t *testing.T, reports []price.Report) {
	t.Helper()
	for _, r := range reports {
		if r.Validate() == nil && (r.Token.IsZero() || r.Min.IsZero() || r.Max.Less(r.Min) || r.TimeMs == 0) {
			t.Fatalf("%+v passes", r)
		}
	}
}
