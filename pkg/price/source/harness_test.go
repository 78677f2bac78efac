package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hangGuard = 60 * time.Second

var (
	wbnb     = chain.Address{19: 1}
	usdc     = chain.Address{19: 2}
	provider = chain.Address{19: 9}
)

// given is what a source gave at once.
type given struct {
	reports    []price.Report
	unreadable []error
}

// running is a source that runs as a feed would run it: again after every failure, but at once.
type running struct {
	given chan given
	mu    sync.Mutex
	fails []error
}

// open runs the only source of a configuration until the test ends.
func open(t *testing.T, cfg Config, node Caller) *running {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, s := range cfg.Sources {
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	members, closeIdle := Open(cfg, node)
	if len(members) != 1 {
		t.Fatalf("%d sources", len(members))
	}
	r := &running{given: make(chan given, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			err := members[0].Source.Run(ctx, func(reports []price.Report, unreadable []error) {
				if len(reports)+len(unreadable) > 0 {
					r.given <- given{reports, unreadable}
				}
			})
			r.failed(ctx, err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait(); closeIdle() })
	return r
}

func (r *running) failed(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		r.fails = append(r.fails, err)
	}
}

func (r *running) failures() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.fails...)
}

// next is what the source gives next.
func (r *running) next(t *testing.T) given {
	t.Helper()
	select {
	case g := <-r.given:
		return g
	case <-time.After(hangGuard):
		t.Fatalf("the source gave nothing; it failed with: %v", r.failures())
		panic("unreachable")
	}
}

// config is that of one source which is asked often.
func config(t Table) Config {
	cfg := DefaultConfig()
	cfg.RequestTimeout, t.Name, t.Interval = 10*time.Second, "s", 10*time.Millisecond
	cfg.Sources = []Table{t}
	return cfg
}

// serve runs a service until the test ends, after everything that was opened later.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func at(s *httptest.Server) secret.URL { return secret.MustURL(s.URL + "/region/7f3a9c") }
