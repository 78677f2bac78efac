package status

import (
	"cmp"
	"context"
	"slices"
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
