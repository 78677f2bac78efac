package status

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// quiet are alerts that say nothing is wrong: the one that always fires, and the day's figures.
var quiet = []string{"Watchdog", "DailyReport"}

// Alarms lists what Alertmanager is telling people of: the gravest first, each name once.
func Alarms(ctx context.Context, alertmanager string, l *Looks) error {
	text, code, err := Get(ctx, strings.TrimSuffix(alertmanager, "/")+
		"/api/v2/alerts?active=true&silenced=false&inhibited=false")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("it answers %d", code)
	}
	var firing []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.Unmarshal([]byte(text), &firing); err != nil {
		return fmt.Errorf("reading what fires: %w", err)
	}
	var told []string
	for _, severity := range []string{"critical", "warning", "notice"} {
		for _, a := range firing {
			said := severity + " " + a.Labels["alertname"]
			if a.Labels["severity"] == severity && !slices.Contains(quiet, a.Labels["alertname"]) &&
				!slices.Contains(told, said) {
				told = append(told, said)
			}
		}
	}
	if len(told) == 0 {
		l.Addf(false, "alarms", "none fires")
		return nil
	}
	l.Addf(true, "alarms", "%s", strings.Join(told, ", "))
	return nil
}
