package scanner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The status page says what holds the scanner up, where it is, and how its endpoints stand.
func TestStatusPage(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	node := startLiar(t, d)
	node.tell(getReceipts, refuses)
	s := start(t, through(testConfig(d, k.Addr()), node), k)
	d.trade(1)
	settle(t, k, tr)
	var page report
	eventually(t, "the page shows where the scanner is", func() error {
		w := httptest.NewRecorder()
		s.page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status", nil))
		page = report{}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			return err
		}
		if page.State != "following the head" || page.Tip.Number != d.Head().Number.Uint64() || page.LagBlocks != 0 ||
			page.Finalized.Number == 0 {
			return fmt.Errorf("%w: %+v", errNotYet, page)
		}
		return nil
	})
	if page.Epoch != 1 || page.UnverifiedBlocks == 0 || page.Backfill != nil || len(page.Endpoints) != 1 ||
		len(page.Endpoints[0].Excluded) != 1 {
		t.Errorf("%+v", page)
	}

	s.status.fail(errors.New("no luck"))
	s.progress.begin(10, 20)
	r := s.report()
	if r.State != "no luck" || r.Backfill == nil || r.Backfill.From != 11 || r.Backfill.To != 20 {
		t.Errorf("%+v", r)
	}
}
