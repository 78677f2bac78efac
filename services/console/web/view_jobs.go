package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/jobstory"
	"perpkeeper/pkg/pg/txstore"
)

// listLimit is how many rows a page shows of a list.
const listLimit = 100

// What a list of jobs can show.
const (
	showWaiting  = "waiting"
	showInFlight = "in_flight"
	showEnded    = "ended"
)

// jobsView is a list of this keeper's attempts of jobs.
type jobsView struct {
	Show, Kind, Outcome string
	Kinds               []job.Kind
	Outcomes            []job.Outcome
	Waiting, InFlight   []jobRow
	Ended               []jobRow
	Older               string // address of the attempts that ended before those that are shown
	Limit               int
}

// jobRow is an attempt with its age: since its due time while it lives, and from due time to end when it has ended.
type jobRow struct {
	txstore.ListedAttempt
	Age, Since time.Duration
}

func (c *console) rows(attempts []txstore.ListedAttempt) (rows []jobRow) {
	now := c.Now()
	for _, a := range attempts {
		row := jobRow{ListedAttempt: a, Age: now.Sub(a.Born)}
		if a.EndedAt != nil {
			row.Age, row.Since = a.EndedAt.Sub(a.Born), now.Sub(*a.EndedAt)
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *console) jobs(ctx context.Context, ask url.Values) (any, error) {
	v := jobsView{Show: ask.Get("show"), Kind: ask.Get("kind"), Outcome: ask.Get("outcome"),
		Kinds:    slices.Concat(job.Kinds(), job.Cancels()),
		Outcomes: []job.Outcome{job.Done, job.LostRace, job.Reverted, job.Refused}, Limit: listLimit}
	if v.Kind != "" && !slices.Contains(v.Kinds, job.Kind(v.Kind)) {
		return nil, badQuestionError{fmt.Errorf("%q is no kind of job", v.Kind)}
	}
	intents := txstore.NewIntents(c.DB)
	for _, part := range []struct {
		show string
		read func(context.Context, job.Kind, int) ([]txstore.ListedAttempt, error)
		into *[]jobRow
	}{{showWaiting, intents.QueuedAttempts, &v.Waiting}, {showInFlight, intents.AttemptsInFlight, &v.InFlight}} {
		if v.Show == "" || v.Show == part.show {
			attempts, err := part.read(ctx, job.Kind(v.Kind), listLimit)
			if err != nil {
				return nil, err
			}
			*part.into = c.rows(attempts)
		}
	}
	if v.Show == "" || v.Show == showEnded {
		return v, c.ended(ctx, ask, &v)
	}
	return v, nil
}

func (c *console) ended(ctx context.Context, ask url.Values, v *jobsView) error {
	before := c.Now().Add(time.Minute) // clocks differ a little
	if text := ask.Get("before"); text != "" {
		us, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return badQuestionError{fmt.Errorf("%q is no time", text)}
		}
		before = time.UnixMicro(us)
	}
	limit := listLimit
	if v.Show == "" {
		limit = 25
	}
	attempts, err := txstore.NewIntents(c.DB).EndedAttempts(ctx, job.Kind(v.Kind), job.Outcome(v.Outcome),
		before, limit)
	if err != nil {
		return err
	}
	v.Ended = c.rows(attempts)
	if len(attempts) == limit {
		v.Older = "/jobs?" + url.Values{"show": {showEnded}, "kind": {v.Kind}, "outcome": {v.Outcome},
			"before": {fmt.Sprint(attempts[limit-1].EndedAt.UnixMicro())}}.Encode()
	}
	return nil
}

// storyView is one job's story.
type storyView struct {
	Asked   string
	Summary []jobstory.Point
	Several bool // it is of more than one position, order or request
	Lines   []storyLine
	// Missing is the reason why what topics have is not among the lines.
	Missing string
}

type storyLine struct {
	jobstory.Line
	Age  string // since the due time of its job; empty where that is not known
	Turn string
	Tone string // ok, bad, or nothing
}

// sinceUnknown is how far back topics are read for what the stores do not know.
const sinceUnknown = 10 * time.Minute

// topicsTimeout is what reading topics may take of a page's time.
const topicsTimeout = 5 * time.Second

func (c *console) job(ctx context.Context, ask url.Values) (any, error) {
	v := storyView{Asked: strings.TrimSpace(ask.Get("id"))}
	if v.Asked == "" {
		return v, nil
	}
	wanted, err := jobstory.Wanted(v.Asked)
	if err != nil {
		return nil, badQuestionError{err}
	}
	source := jobstory.Source{DB: c.DB, Kafka: c.Kafka, Keeper: c.Keeper, Tier: c.Tier, Signers: c.Signers, Limit: 20,
		Names: c.Names}
	y, err := source.Read(ctx, wanted)
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeoutCause(ctx, topicsTimeout, errors.New("they did not answer in time"))
	defer cancel()
	if err := y.AddTopics(reading, c.Now().Add(-sinceUnknown)); err != nil {
		v.Missing = fmt.Sprintf("What topics have is missing: %v", err)
	}
	if len(y.Lines) == 0 && v.Missing == "" {
		return nil,
			notFoundError{errors.New("nothing is known of it here: neither the state nor the database nor the " +
				"topics of the last minutes have it")}
	}
	v.Summary, v.Several = y.Summary(), len(y.Keys) > 1
	y.Sort()
	for _, l := range y.Lines {
		line := storyLine{Line: l, Tone: toneOf(l)}
		if since, known := y.Age(l); known {
			line.Age, line.Turn = age(since), strings.TrimPrefix(y.Turn(l, since), "-")
		}
		v.Lines = append(v.Lines, line)
	}
	return v, nil
}

func toneOf(l jobstory.Line) string {
	switch outcome, _, _ := strings.Cut(l.Detail, ":"); {
	case l.What == "ended" && outcome == string(job.Done):
		return "ok"
	case l.What == "ended":
		return "bad"
	}
	return ""
}
