package service

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/instrument/metric"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/retry"
)

// Condition is one thing that must hold for a service to be ready for its work. It begins as not held, with the reason
// "starting". It is safe for concurrent use.
type Condition struct {
	name string
	log  *conditionLog    // nil: nobody reads it
	held prometheus.Gauge // nil: nobody measures it

	mu     sync.Mutex
	reason string // why it does not hold; empty when it does
	note   string // what an operator should know of it, held or not
}

// Note sets what an operator should know of the condition whether it holds or not; /readyz shows it. Empty takes it
// back.
func (c *Condition) Note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note = OneLine(text)
}

func (c *Condition) noted() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note
}

// OK reports that the condition holds.
func (c *Condition) OK() { c.set("") }

// Fail reports that the condition does not hold, and why, in a few words for the operator. Several lines become one.
func (c *Condition) Fail(reason string) {
	if reason == "" {
		reason = "failing"
	}
	c.set(OneLine(reason))
}

// OneLine joins the lines of a reason, such as the list of what was tried, and drops those that only repeat the one
// before.
func OneLine(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var b strings.Builder
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line == last {
			continue
		}
		switch {
		case last == "":
		case strings.HasSuffix(last, ":"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(line)
		last = line
	}
	return b.String()
}

// set may be called as often as the condition's owner likes: changes are logged, and not every one of those that come
// and go.
func (c *Condition) set(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.reason != reason
	c.reason = reason
	if c.held != nil {
		c.held.Set(metric.Bool(reason == ""))
	}
	if changed && c.log != nil {
		c.log.change(reason)
	}
}

func (c *Condition) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// newReadyGauge makes the metric of what /readyz answers.
func newReadyGauge(reg prometheus.Registerer) *prometheus.GaugeVec {
	return metric.In{Registerer: reg}.Gauges("perpkeeper_ready",
		"1 while a condition of readiness holds; /readyz says why not.", "condition")
}

// ownCondition is the shell's: it holds from the return of the start function until the process is to stop.
const ownCondition = "process"

// verdict is what /readyz answers about one condition.
type verdict struct {
	Name, Reason, Note string // it holds where there is no reason
}

// readiness is all the conditions of a process, in the order of their registration.
type readiness struct {
	log      zerolog.Logger
	held     *prometheus.GaugeVec // by condition
	stopping func() bool

	mu         sync.Mutex
	conditions []*Condition
}

// condition returns the condition of that name, new or not.
func (r *readiness) condition(name string) *Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.conditions, func(c *Condition) bool { return c.name == name }); i >= 0 {
		return r.conditions[i]
	}
	c := &Condition{name: name, log: &conditionLog{log: r.log, name: name, logged: "starting"},
		held: r.held.WithLabelValues(name), reason: "starting"}
	c.held.Set(0)
	r.conditions = append(r.conditions, c)
	return c
}

// verdicts returns the state of every condition, and whether all hold.
func (r *readiness) verdicts() (all []verdict, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ready = true
	for _, c := range r.conditions {
		reason := c.why()
		if c.name == ownCondition && r.stopping() {
			reason = "stopping"
		}
		all = append(all, verdict{c.name, reason, c.noted()})
		ready = ready && reason == ""
	}
	return all, ready
}

// watchEvery is how old an answer of a watched part may be.
const watchEvery = 500 * time.Millisecond

// Watch makes a condition of a part that knows its own health, such as a client of a broker: it is asked twice a second
// until the stop, and its error is the reason why the process is not ready. The error must say what is waited for; it
// never stops the process.
func (sh *Shell) Watch(name string, healthy func(ctx context.Context) error) {
	condition := sh.Ready(name)
	sh.Go("watch "+name, func(ctx context.Context) error {
		for {
			err := healthy(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				condition.Fail(err.Error())
			} else {
				condition.OK()
			}
			if !retry.Sleep(ctx, watchEvery) {
				return ctx.Err()
			}
		}
	})
}
