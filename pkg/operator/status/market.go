package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"perpkeeper/pkg/job"
)

// PriceSource is a source of prices as the scanner that reads it has it.
type PriceSource struct {
	Name   string
	Up     bool // it answers
	Serves int  // tokens whose prices are this source's
	// Since the scanner's start: reports it gave, those that did not pass when they came, and how often it broke off.
	Reports, Refused, Failures int
}

// MarketStatus is the state of prices that the metrics of a process show.
type MarketStatus struct {
	Sources []PriceSource // of a scanner
	Mode    int           // of a planner, as planner_mode has it; -1 of others
}

// Market asks a process for what it has to say of prices; most have nothing.
func Market(ctx context.Context, address string) (market MarketStatus, err error) {
	market.Mode = -1
	families, err := metricsOf(ctx, address)
	if err != nil {
		return market, err
	}
	if mode := families["planner_mode"].GetMetric(); len(mode) == 1 {
		market.Mode = int(mode[0].GetGauge().GetValue())
	}
	byName := map[string]*PriceSource{}
	for metric, add := range map[string]func(*PriceSource, int){
		"price_source_up":             func(s *PriceSource, n int) { s.Up = n > 0 },
		"price_source_active":         func(s *PriceSource, n int) { s.Serves = n },
		"price_source_reports_total":  func(s *PriceSource, n int) { s.Reports = n },
		"price_gate_rejections_total": func(s *PriceSource, n int) { s.Refused += n },
		"price_source_failures_total": func(s *PriceSource, n int) { s.Failures = n },
	} {
		for _, m := range families[metric].GetMetric() {
			name := Label(m, "source")
			if byName[name] == nil {
				byName[name] = &PriceSource{Name: name}
			}
			add(byName[name], int(m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	for _, s := range byName {
		market.Sources = append(market.Sources, *s)
	}
	slices.SortFunc(market.Sources, func(a, b PriceSource) int { return cmp.Compare(a.Name, b.Name) })
	return market, nil
}

// Executions are jobs that a tier executed, of a kind; tier 0 is somebody else.
type Executions struct {
	Tier int
	Kind job.Kind
}

// Executed asks a process how many jobs of each kind each tier has executed on the chain since the process began to
// look (TIER-16). Processes that do not look have nothing to say.
func Executed(ctx context.Context, address string) (map[Executions]uint64, error) {
	families, err := metricsOf(ctx, address)
	if err != nil {
		return nil, err
	}
	counted := map[Executions]uint64{}
	for _, m := range families["sender_tier_executed_total"].GetMetric() {
		by, err := strconv.Atoi(Label(m, "tier"))
		if err != nil {
			return nil, fmt.Errorf("reading who executed: %w", err)
		}
		counted[Executions{by, job.Kind(Label(m, "kind"))}] = uint64(m.GetCounter().GetValue())
	}
	return counted, nil
}
