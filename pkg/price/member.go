package price

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/retry"
)

// Source is a service that publishes price reports.
type Source interface {
	// Run gives reports as they come, those of a token in the order of their times, until ctx ends or it cannot go on;
	// then it returns why. It is run again after that, and goes on where it was if it can. It is not run twice at a
	// time.
	Run(ctx context.Context, take Take) error
}

// Take receives what a source sent: reports that no gate has checked yet, and an error for each item that could not be
// read as a report. It is called by the goroutine of Run.
type Take func(reports []Report, unreadable []error)

// Member is a source of a feed with its name and bounds.
type Member struct {
	Name   string // also the Source of its reports
	Source Source
	// Tokens are those the source is asked for; none means whatever it names.
	Tokens []chain.Address
	// MaxAge and After, unless zero, replace Gates.MaxAge and Failover.After for this source.
	MaxAge, After time.Duration
}

// wants reports whether a report is of a token that the source is asked for.
func (m Member) wants(r Report) bool {
	return len(m.Tokens) == 0 || slices.Contains(m.Tokens, r.Token)
}

// arrival is what a source gave at one moment.
type arrival struct {
	from       int
	reports    []Report
	unreadable []error
	at         time.Time
}

// runSource runs a source again and again until ctx ends. One that has given no report of a token that is wanted of it
// for its bound is left and run again, whatever else it sends: its connection may be dead, or its subscription lost.
func (f *Feed) runSource(ctx context.Context, i int, arrivals chan<- arrival) {
	m, after := f.members[i], f.rules.after[i]
	backoff := retry.New(retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second})
	for backoff.Next(ctx) {
		run, leave := context.WithCancelCause(ctx)
		silent := time.AfterFunc(after, func() { leave(fmt.Errorf("it has given no price for %s", after)) })
		err := m.Source.Run(run, func(reports []Report, unreadable []error) {
			prices := slices.ContainsFunc(reports, m.wants)
			if prices {
				silent.Stop() // what follows may wait for the one who takes them
				backoff.Reset()
				f.noteAnswer(i, nil)
			}
			select {
			case arrivals <- arrival{i, reports, unreadable, time.Now()}:
			case <-ctx.Done():
			}
			if prices {
				silent.Reset(after)
			}
		})
		silent.Stop()
		leave(nil)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the source ended")
		}
		f.metrics.failures.WithLabelValues(m.Name).Inc()
		f.noteAnswer(i, err)
		backoff.Failed(err)
	}
}

// noteAnswer remembers whether a source works (nil) or why not, and logs the changes.
func (f *Feed) noteAnswer(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, before := f.members[i].Name, f.problems[i]
	switch {
	case err == nil && before == "":
		return
	case err == nil:
		f.problems[i] = ""
		f.metrics.up.WithLabelValues(name).Set(1)
		f.log.Info().Str("source", name).Msg("price: reports are coming")
		return
	case before == "" || before == noAnswerYet:
		f.log.Warn().Err(err).Str("source", name).Msg("price: the source failed, trying again")
	default:
		f.log.Debug().Err(err).Str("source", name).Msg("price: the source failed again")
	}
	f.problems[i] = err.Error()
	f.metrics.up.WithLabelValues(name).Set(0)
}
