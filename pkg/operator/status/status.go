// Package status looks at a keeper from outside, for a person who wants to know whether it is well: at the chain, the
// database, the price reports and the processes' own pages. A source that cannot be reached is a finding, and hides
// none of the others.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/tier"
)

// Finding is what was looked at, what was seen, and whether somebody has to do something about it.
type Finding struct {
	Wrong bool
	What  string
	Seen  string
}

// Looks collects findings. It is safe for concurrent use.
type Looks struct {
	mutex sync.Mutex
	found []Finding
}

// addf adds a finding.
func (l *Looks) addf(wrong bool, what, format string, args ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.found = append(l.found, Finding{wrong, what, fmt.Sprintf(format, args...)})
}

// Patience is for one source; the others are shown all the same.
const Patience = 4 * time.Second

// Source is something that is looked at. An error means that it could not be reached.
type Source struct {
	What string
	Ask  func(context.Context, *Looks) error
}

// Look asks every source at the same time and returns what they say in their order.
func Look(ctx context.Context, sources []Source) (found []Finding) {
	var wait sync.WaitGroup
	all := make([]Looks, len(sources))
	for i, source := range sources {
		wait.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("no answer within %s", Patience))
			defer cancel()
			if err := source.Ask(ctx, &all[i]); err != nil {
				all[i].addf(true, source.What, "not reached: %v", err)
			}
		})
	}
	wait.Wait()
	for i := range all {
		found = append(found, all[i].found...)
	}
	return found
}

// Address is where one of the keeper's processes serves its pages, written NAME=http://HOST:PORT.
type Address struct{ Name, URL string }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) error {
	name, address, _ := strings.Cut(string(text), "=")
	if u, err := url.Parse(address); err != nil || name == "" || u.Host == "" || u.Scheme != "http" &&
		u.Scheme != "https" {
		return errors.New("it names no process (write NAME=http://HOST:PORT)")
	}
	*a = Address{name, strings.TrimSuffix(address, "/")}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.Name + "=" + a.URL), nil }

// Keeper is whom a keeper's status is asked of. An error says that there is nobody to ask.
type Keeper struct {
	ChainID   uint64
	Node      func(context.Context) (Node, error)
	DB        func(context.Context) (*pg.DB, error)
	Kafka     func() (*bus.Client, error)
	Processes []Address
}

// Sources are the chain, the stores and the processes.
func (k Keeper) Sources() []Source {
	all := []Source{
		{"chain", func(ctx context.Context, l *Looks) error {
			node, err := k.Node(ctx)
			if err != nil {
				return err
			}
			return chainOf(ctx, node, l)
		}},
		{"database", func(ctx context.Context, l *Looks) error {
			db, err := k.DB(ctx)
			if err != nil {
				return err
			}
			return stores(ctx, db, l)
		}},
		{"prices", func(ctx context.Context, l *Looks) error {
			client, err := k.Kafka()
			if err != nil {
				return err
			}
			return prices(ctx, client, k.ChainID, l)
		}},
	}
	for _, p := range k.Processes {
		all = append(all, Source{p.Name, func(ctx context.Context, l *Looks) error { return process(ctx, p, l) }})
	}
	return all
}

// WrongFirst puts those first that somebody has to do something about, and otherwise leaves the order as it is.
func WrongFirst(found []Finding) (wrong int) {
	rank := map[bool]int{true: 1}
	slices.SortStableFunc(found, func(a, b Finding) int { return rank[b.Wrong] - rank[a.Wrong] })
	for _, f := range found {
		wrong += rank[f.Wrong]
	}
	return wrong
}

// Place is a keeper's among those of its exchange, and when it acts.
func Place(t tier.Config) string {
	switch {
	case !t.Enabled:
		return "alone: every job is its turn"
	case t.Monitor:
		return "a monitor: it sends nothing"
	case t.Policy == tier.PolicyWindows:
		first := time.Duration(t.Priority-1) * t.Window
		return fmt.Sprintf("tier %d of %d: its turn is when a job is %s to %s old", t.Priority, t.Tiers, first,
			first+t.Window)
	default:
		return fmt.Sprintf("tier %d of %d: its turn is when a job is %s old", t.Priority, t.Tiers, t.ExecutionDelay())
	}
}

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
	var alarms []string
	for _, severity := range []string{"critical", "warning", "notice"} {
		for _, a := range firing {
			alarm := severity + " " + a.Labels["alertname"]
			if a.Labels["severity"] == severity && !slices.Contains(quiet, a.Labels["alertname"]) &&
				!slices.Contains(alarms, alarm) {
				alarms = append(alarms, alarm)
			}
		}
	}
	if len(alarms) == 0 {
		l.addf(false, "alarms", "none fires")
		return nil
	}
	l.addf(true, "alarms", "%s", strings.Join(alarms, ", "))
	return nil
}
