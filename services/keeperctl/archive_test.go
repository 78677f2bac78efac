package keeperctl

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/pg/retention"
)

// An operator sees each week of the archive, what was dropped, and what is not archived yet.
func TestArchiveIsShown(t *testing.T) {
	dropped := time.Date(2026, 4, 20, 3, 0, 0, 0, time.UTC)
	week := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	var out strings.Builder
	err := printStock(retention.Stock{Live: 60_000, LiveBytes: 99, OldestLive: week(20), Summed: week(12),
		Weeks: []retention.Week{{Start: week(5), Intents: 7, Attempts: 8, Bytes: 9, DroppedAt: &dropped},
			{Start: week(12), Intents: 210_000, Attempts: 220_000, Bytes: 700}}}, printer{Writer: &out})
	if err != nil {
		t.Error(err)
	}
	wantTold(t, strings.Join(strings.Fields(out.String()), " "), "up to 2026-01-12T00:00:00Z stands as sums",
		"archive 7 8 9 2026-01-05 2026-04-20T03:00:00Z", "archive 210000 220000 700 2026-01-12 -",
		"live 60000 - 99 2026-01-20T00:00:00Z -")
}

func TestPeriodsOfProfitAndLoss(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 24 * time.Hour, "week": 7 * 24 * time.Hour,
		"365d": 365 * 24 * time.Hour, "0d": 0, "-1d": 0, "4000d": 0, "3h": 0, "d": 0} {
		if got, err := wantedPeriod(strings.Fields(text)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
}
