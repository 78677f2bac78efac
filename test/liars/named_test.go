package liars

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// look takes note of who is named, and of what waits.
func (x *trial) look(_ context.Context, begun time.Time) {
	x.keeper.waits(x.waits)
	if x.reports != nil {
		x.lookAtSources(begun)
		return
	}
	for _, name := range []string{"scanner", "sender"} {
		text, _ := page("http://" + x.Process(name).HTTP + "/metrics")
		for line := range strings.Lines(text) {
			at, reason, excluded := exclusion(line)
			switch {
			case !excluded:
			case strings.Contains(at, x.endpoints[x.liar()].address):
				if x.named == 0 {
					x.named, x.by = time.Since(begun), name+": "+reason
				}
			case x.accused == "" && accuses(reason):
				x.accused = name + ": " + strings.TrimSpace(line)
			}
		}
	}
}

var excludedLine = regexp.MustCompile(`^evm_endpoint_excluded\{endpoint="([^"]*)",.*?reason="([^"]*)".*\} ([0-9.e+]+)$`)

// exclusion reads the line of a metric: which endpoint is excluded, and why.
func exclusion(line string) (endpoint, reason string, is bool) {
	found := excludedLine.FindStringSubmatch(strings.TrimSpace(line))
	if found == nil || found[3] == "0" {
		return "", "", false
	}
	return found[1], found[2], true
}

// accuses tells whether a reason says that an endpoint lied, and not that it is slow, late or away.
func accuses(reason string) bool {
	switch reason {
	case "slow", "stale", "unreachable", "unreadable":
		return false
	}
	return true
}

// lookAtSources takes note of whose reports are refused.
func (x *trial) lookAtSources(begun time.Time) {
	const often = 5 // a report or two of an honest one are refused when prices jump
	for series, n := range x.rejections() {
		if n >= x.before[series]+often && strings.Contains(series, strconv.Quote(sourceName(x.liar()))) &&
			x.named == 0 {
			x.named, x.by = time.Since(begun), "scanner: "+series
		}
	}
}

var rejectedLine = regexp.MustCompile(`^price_gate_rejections_total(\{[^}]*\}) ([0-9.e+]+)$`)

// rejections are how many reports were refused, by source and reason.
func (x *trial) rejections() map[string]float64 {
	counts := map[string]float64{}
	text, _ := page("http://" + x.Process("scanner").HTTP + "/metrics")
	for line := range strings.Lines(text) {
		if found := rejectedLine.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			counts[found[1]], _ = strconv.ParseFloat(found[2], 64)
		}
	}
	return counts
}
