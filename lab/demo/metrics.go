package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are what a process shows of itself.
type metrics struct {
	sums     map[string]float64 // gauges and counters, each summed over its labels
	executed map[string]float64 // jobs executed, by the tier that did it, as a sender has seen them on the chain
}

// Metrics returns the gauges and counters of the process, each summed over its labels; none when they cannot be had.
func (p *Process) Metrics(ctx context.Context) map[string]float64 {
	m, err := p.read(ctx)
	if err != nil {
		return nil
	}
	return m.sums
}

func (p *Process) read(ctx context.Context) (metrics, error) {
	text, _, err := get(ctx, "http://"+p.HTTP+"/metrics")
	if err != nil {
		return metrics{}, err
	}
	return parseMetrics(text)
}

func parseMetrics(text string) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return metrics{}, fmt.Errorf("reading metrics: %w", err)
	}
	m := metrics{sums: map[string]float64{}, executed: map[string]float64{}}
	for name, family := range families {
		for _, child := range family.GetMetric() {
			value := child.GetGauge().GetValue() + child.GetCounter().GetValue()
			m.sums[name] += value
			for _, label := range child.GetLabel() {
				if name == "sender_tier_executed_total" && label.GetName() == "tier" {
					m.executed[label.GetValue()] += value
				}
			}
		}
	}
	return m, nil
}

func get(ctx context.Context, url string) (text string, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	return fetch(request)
}

func fetch(request *http.Request) (text string, status int, err error) {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	return string(body), answer.StatusCode, err
}
