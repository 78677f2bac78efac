package status_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perpkeeper/pkg/operator/status"
)

// What fires is told once each, the gravest first; the alert that always fires and the day's figures are no alarm, and
// an Alertmanager that cannot be understood is told as such.
func TestAlarms(t *testing.T) {
	answer, code := "", http.StatusOK
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("silenced") != "false" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	defer manager.Close()
	look := func() (found status.Finding) {
		t.Helper()
		all := status.Look(t.Context(), []status.Source{{What: "alarms",
			Ask: func(ctx context.Context, l *status.Looks) error { return status.Alarms(ctx, manager.URL+"/", l) }}})
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		return all[0]
	}
	quiet := `{"labels":{"alertname":"Watchdog","severity":"none"}},` +
		`{"labels":{"alertname":"DailyReport","severity":"notice"}}`
	answer = "[" + quiet + "]"
	if got := look(); got.Wrong || got.Seen != "none fires" {
		t.Errorf("with nothing wrong: %+v", got)
	}
	answer = `[{"labels":{"alertname":"PricesBad","severity":"warning"}},` + quiet +
		`,{"labels":{"alertname":"NotReady","severity":"critical"}},` +
		`{"labels":{"alertname":"PricesBad","severity":"warning","token":"0x1"}}]`
	if got := look(); !got.Wrong || got.Seen != "critical NotReady, warning PricesBad" {
		t.Errorf("with alarms: %+v", got)
	}
	answer = "no JSON"
	if got := look(); !got.Wrong || !strings.Contains(got.Seen, "not reached: reading what fires") {
		t.Errorf("without an answer: %+v", got)
	}
	code = http.StatusServiceUnavailable
	if got := look(); !got.Wrong || !strings.Contains(got.Seen, "it answers 503") {
		t.Errorf("refused: %+v", got)
	}
}
