package scanner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// The status page says what holds the scanner up, where it is, and how its endpoints stand.
func TestStatusPage(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	bad, good := startLiar(t, d), startLiar(t, d)
	bad.tell(getReceipts, refuses)
	s := start(t, through(testConfig(d, k.Addr()), bad, good), k)
	d.trade(1)
	settle(t, k, tr)
	type endpoint struct{ Excluded []evm.Exclusion }
	var page struct {
		report
		Endpoints []endpoint `json:"endpoints"`
	}
	trades := byte(1)
	eventually(t, "the page shows where the scanner is", func() error {
		w := httptest.NewRecorder()
		s.page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status", nil))
		page.Endpoints = nil
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			return err
		}
		if page.State != "following the head" || page.Tip.Number != d.Head().Number.Uint64() || page.LagBlocks != 0 ||
			page.Finalized.Number == 0 || len(page.Endpoints) != 2 || len(page.Endpoints[0].Excluded) != 1 {
			if page.Tip.Number == d.Head().Number.Uint64() { // the head never runs away from a slow scanner
				d.trade(trades) // whose receipts are asked for
				trades++
			}
			return fmt.Errorf("%w: %+v", errNotYet, page)
		}
		return nil
	})
	if page.Epoch != 1 {
		t.Errorf("%+v", page)
	}

	s.status.fail(errors.New("no luck"))
	if r := s.report(); r.State != "no luck" {
		t.Errorf("%+v", r)
	}
}

// Which block waits for its proof is said until one is published, whatever is tried meanwhile (PIPE-13).
func TestStatusKeepsTheUnprovenBlock(t *testing.T) {
	s := newStatus(newMetrics(prometheus.NewRegistry()))
	s.fail(&unprovenError{7, errors.New("nobody serves its receipts")})
	s.set("catching up: block 7 of 100")
	s.fail(errors.New("no node answers"))
	if n := testutil.ToFloat64(s.metrics.unproven); n != 7 {
		t.Errorf("block %v waits", n)
	}
	s.reached(chain.BlockRef{Number: 7})
	if n := testutil.ToFloat64(s.metrics.unproven); n != 0 {
		t.Errorf("block %v waits after it was published", n)
	}
}
