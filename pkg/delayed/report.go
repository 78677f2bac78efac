package delayed

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// DailyReport is the name of the kind that sums up a day. The key of a job is the day, as in 2006-01-02.
const DailyReport = "daily_report"

// Day is the counts of one day, midnight to midnight UTC by the database's clock.
type Day struct {
	Day string `json:"day"`
	// Executed, Failed and Other count attempts that ended, by kind of job. Other are those that were neither: lost
	// races, recovered conditions.
	Executed map[job.Kind]int `json:"executed"`
	Failed   map[job.Kind]int `json:"failed"`
	Other    map[job.Kind]int `json:"other"`
	// Fees are the fees booked, by agent.
	Fees map[string]Fees `json:"fees"`
}

// Fees are a number of fees and their sum in wei.
type Fees struct {
	Count int        `json:"count"`
	Wei   chain.Uint `json:"wei"`
}

// Count adds attempts that ended with an outcome.
func (d *Day) Count(kind job.Kind, outcome job.Outcome, n int) {
	into := &d.Other
	switch {
	case outcome == job.Done:
		into = &d.Executed
	case outcome.Failure():
		into = &d.Failed
	}
	if *into == nil {
		*into = map[job.Kind]int{}
	}
	(*into)[kind] += n
}

// Reports is the kind that sums up days: as the job's result, and as one line of the log.
type Reports struct{ Log zerolog.Logger }

// Name implements Kind.
func (Reports) Name() string { return DailyReport }

// Do implements Kind.
func (r Reports) Do(ctx context.Context, tx Tx, j Job) (any, error) {
	day, err := time.Parse(time.DateOnly, j.Key)
	if err != nil {
		return nil, Anomalyf("%q is no day: %w", j.Key, err)
	}
	sum, err := tx.Day(ctx, day)
	if err != nil {
		return nil, err
	}
	r.Log.Info().Interface("report", sum).Msg("daily report")
	return sum, nil
}
