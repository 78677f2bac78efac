package keeperctl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/keeperctl/doctor"
)

// What the metrics of several processes say is added up, and what is not understood says nothing.
func TestMetricsOfProcesses(t *testing.T) {
	seen := doctor.Seen{Executed: map[int]float64{}, Ages: map[int][]doctor.AgeCount{}}
	for _, text := range []string{
		`# TYPE evm_request_seconds histogram
evm_request_seconds_bucket{method="eth_call",le="+Inf"} 900
evm_request_seconds_sum{method="eth_call"} 9
evm_request_seconds_count{method="eth_call"} 900
# TYPE evm_request_errors_total counter
evm_request_errors_total{method="eth_call",class="throttled"} 7
evm_request_errors_total{method="eth_call",class="timeout"} 99
`, `# TYPE evm_request_seconds histogram
evm_request_seconds_bucket{method="eth_call",le="+Inf"} 100
evm_request_seconds_sum{method="eth_call"} 9
evm_request_seconds_count{method="eth_call"} 100
# TYPE sender_tier_executed_total counter
sender_tier_executed_total{tier="0",kind="order"} 2
sender_tier_executed_total{tier="2",kind="order"} 4
sender_tier_executed_total{tier="2",kind="liquidation"} 1
# TYPE sender_tier_execution_age_seconds histogram
sender_tier_execution_age_seconds_bucket{tier="2",le="30"} 1
sender_tier_execution_age_seconds_bucket{tier="2",le="60"} 4
sender_tier_execution_age_seconds_bucket{tier="2",le="+Inf"} 5
sender_tier_execution_age_seconds_sum{tier="2"} 200
sender_tier_execution_age_seconds_count{tier="2"} 5
`, "these are no metrics",
	} {
		readMetrics(text, &seen)
	}
	if seen.Requests != 1000 || seen.Throttled != 7 || seen.Executed[0] != 2 || seen.Executed[2] != 5 {
		t.Errorf("%+v", seen)
	}
	ages := seen.Ages[2]
	if len(ages) < 3 || ages[0] != (doctor.AgeCount{Age: 30 * time.Second, Count: 1}) ||
		ages[1] != (doctor.AgeCount{Age: time.Minute, Count: 4}) || ages[len(ages)-1].Count != 5 {
		t.Errorf("ages %+v", ages)
	}
}

// The Watchdog is looked for at Alertmanager.
func TestAlertRoutes(t *testing.T) {
	firing := "[]"
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("filter") == `alertname="Watchdog"` {
			_, _ = io.WriteString(w, firing+"\n")
		}
	}))
	defer manager.Close()
	s := &session{Config: defaultConfig()}
	s.Own.Alertmanager = secret.MustURL(manager.URL)
	if !s.unwatched(t.Context()) {
		t.Error("that there is no Watchdog is not seen")
	}
	firing = `[{"labels":{"alertname":"Watchdog"}}]`
	if s.unwatched(t.Context()) {
		t.Error("the Watchdog is not seen")
	}
	manager.Close() // what is said of it then holds nothing of its address that may be a secret
	s.Own.Alertmanager = secret.MustURL(strings.Replace(manager.URL, "//", "//user:word@", 1) + "/a-token")
	facts := doctor.Facts{}
	s.machine(t.Context(), &facts)
	err := facts.Machine.AlertsError
	if err == nil || strings.Contains(err.Error(), "user") || strings.Contains(err.Error(), "a-token") {
		t.Errorf("an Alertmanager that is away: %v", err)
	}
}
