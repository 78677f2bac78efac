package status

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"perpkeeper/pkg/job"
)

// What a scanner and a planner say of prices is read from their metrics; other processes have nothing to say.
func TestMarket(t *testing.T) {
	pages := map[string]string{
		"/scanner/metrics": `# TYPE price_source_up gauge
price_source_up{source="b"} 0
price_source_up{source="a"} 1
# TYPE price_source_active gauge
price_source_active{source="a"} 3
# TYPE price_source_reports_total counter
price_source_reports_total{source="a"} 17
# TYPE price_gate_rejections_total counter
price_gate_rejections_total{reason="stale",source="b"} 2
price_gate_rejections_total{reason="spread",source="b"} 3
# TYPE price_source_failures_total counter
price_source_failures_total{source="b"} 4
`,
		"/planner/metrics": "# TYPE planner_mode gauge\nplanner_mode 2\n",
		"/sender/metrics": `# TYPE sender_held gauge
sender_held 0
# TYPE sender_tier_executed_total counter
sender_tier_executed_total{kind="order",tier="1"} 5
sender_tier_executed_total{kind="liquidation",tier="2"} 3
`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Path])
	}))
	defer server.Close()
	scanner, err := Market(t.Context(), server.URL+"/scanner")
	if err != nil || scanner.Mode != -1 || len(scanner.Sources) != 2 ||
		scanner.Sources[0] != (PriceSource{Name: "a", Up: true, Serves: 3, Reports: 17}) ||
		scanner.Sources[1] != (PriceSource{Name: "b", Refused: 5, Failures: 4}) {
		t.Errorf("%+v, %v", scanner, err)
	}
	if said, err := Market(t.Context(), server.URL+"/planner"); err != nil || said.Mode != 2 || len(said.Sources) != 0 {
		t.Errorf("%+v, %v", said, err)
	}
	if said, err := Market(t.Context(), server.URL+"/sender"); err != nil || said.Mode != -1 || len(said.Sources) != 0 {
		t.Errorf("%+v, %v", said, err)
	}
	executed, err := Executed(t.Context(), server.URL+"/sender")
	if err != nil || len(executed) != 2 || executed[Executions{1, job.Order}] != 5 ||
		executed[Executions{2, job.Liquidation}] != 3 {
		t.Errorf("executed %v, %v", executed, err)
	}
	if none, err := Executed(t.Context(), server.URL+"/planner"); err != nil || len(none) != 0 {
		t.Errorf("a planner says %v of who executed, %v", none, err)
	}
}
