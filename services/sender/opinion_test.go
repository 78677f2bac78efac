package sender

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
)

// sources is a node of which only the endpoints' names are asked.
type sources struct {
	watcher
	names []evm.Source
}

func (s sources) Endpoints() (all []evm.EndpointStatus) {
	for _, name := range s.names {
		all = append(all, evm.EndpointStatus{Source: name})
	}
	return append(all, evm.EndpointStatus{Source: "a builder", Private: true})
}

func (s sources) Elsewhere(...evm.Source) evm.Reader { return evm.Reader{} }

// A matrix of what two endpoints say. A success of either is enough; what ends a job, both have to say.
func TestTwoHaveToSayIt(t *testing.T) {
	healthy, done := end(job.DroppedRecovered, "healthy"), end(job.LostRace, "done")
	strange, silence := odd("Panic(code 17)"), errors.New("no answer")
	for name, c := range map[string]struct {
		names  []evm.Source
		first  opinion
		second opinion
		err    error
		asks   bool
		want   verdict
		why    string // part of the reason, where that is not the first one's
		gas    uint64
	}{
		"a success":             {[]evm.Source{"a", "b"}, opinion{from: "a", gas: 1}, opinion{}, nil, false, verdict{}, "", 1},
		"the only endpoint":     {[]evm.Source{"a"}, opinion{verdict: healthy, from: "a"}, opinion{}, nil, false, healthy, "", 0},
		"all have been asked":   {[]evm.Source{"a", "b"}, opinion{verdict: strange}, opinion{}, nil, false, strange, "", 0},
		"both say so":           {[]evm.Source{"a", "b"}, opinion{verdict: healthy, from: "a"}, opinion{verdict: healthy}, nil, true, healthy, "", 0},
		"the other has success": {[]evm.Source{"a", "b"}, opinion{verdict: healthy, from: "a"}, opinion{gas: 7}, nil, true, verdict{}, "", 7},
		"they differ":           {[]evm.Source{"a", "b"}, opinion{verdict: healthy, from: "a"}, opinion{verdict: done}, nil, true, odd(""), "as another: done", 0},
		"one is strange":        {[]evm.Source{"a", "b"}, opinion{verdict: strange, from: "a"}, opinion{verdict: done}, nil, true, odd(""), "as another: done", 0},
		"both are strange":      {[]evm.Source{"a", "b"}, opinion{verdict: strange, from: "a"}, opinion{verdict: strange}, nil, true, strange, "", 0},
		"the other is silent":   {[]evm.Source{"a", "b"}, opinion{verdict: healthy, from: "a"}, opinion{}, silence, true, odd(""), "no other answers", 0},
	} {
		heard := make(chan struct{}, 1)
		o := newOpinions(sources{names: c.names}, time.Now, func() { heard <- struct{}{} }, NewMetrics(prometheus.NewRegistry()))
		asked := 0
		ask := func(context.Context, simulator) (opinion, error) { asked++; return c.second, c.err }
		got := o.weigh(t.Context(), 1, c.first, ask)
		if c.asks {
			if got.verdict.kind != waiting || got.verdict.news == nil || got.verdict.heads != 1 {
				t.Errorf("%s: not waited for the second: %+v", name, got.verdict)
			}
			<-heard
			<-got.verdict.news
			got = o.weigh(t.Context(), 1, c.first, ask)
		}
		o.close()
		if asked > 1 || (asked == 1) != c.asks {
			t.Errorf("%s: %d were asked besides", name, asked)
		}
		if got.verdict.kind != c.want.kind || got.verdict.outcome != c.want.outcome || got.verdict.heads != c.want.heads || got.gas != c.gas ||
			!strings.Contains(got.verdict.reason, c.want.reason) || !strings.Contains(got.verdict.reason, c.why) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// What was said a while ago counts no more, and a question that nobody answers ends with the tenure.
func TestSecondWordsGrowOld(t *testing.T) {
	now, heard := time.Unix(1000, 0), make(chan struct{}, 1)
	o := newOpinions(sources{names: []evm.Source{"a", "b"}}, func() time.Time { return now }, func() { heard <- struct{}{} }, NewMetrics(prometheus.NewRegistry()))
	first := opinion{verdict: end(job.DroppedRecovered, "healthy"), from: "a"}
	asked := 0
	ask := func(context.Context, simulator) (opinion, error) { asked++; return first, nil }
	o.weigh(t.Context(), 1, first, ask)
	<-heard
	now = now.Add(opinionFresh + time.Millisecond)
	if got := o.weigh(t.Context(), 1, first, ask); got.verdict.kind != waiting {
		t.Errorf("an old word was taken: %+v", got)
	}
	<-heard
	if got := o.weigh(t.Context(), 1, first, ask); got.verdict.kind != ended || asked != 2 {
		t.Errorf("%+v after %d questions", got, asked)
	}
	o.weigh(t.Context(), 2, first, func(ctx context.Context, _ simulator) (opinion, error) {
		<-ctx.Done()
		return opinion{}, ctx.Err()
	})
	o.close()
	<-heard
}
