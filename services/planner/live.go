package planner

import (
	"slices"

	"perpkeeper/pkg/job"
)

// live is the set of jobs published and still due. It decides what a pass publishes: a new job at once, the others at sweeps.
type live struct {
	ids map[string]bool
}

// update takes the jobs of a pass and returns those to publish, most urgent first: all of them at a sweep, else those that were not live.
func (l *live) update(jobs []job.Job, sweep bool) []job.Job {
	before := l.ids
	l.ids = make(map[string]bool, len(jobs))
	var publish []job.Job
	for _, j := range jobs {
		l.ids[j.ID] = true
		if sweep || !before[j.ID] {
			publish = append(publish, j)
		}
	}
	slices.SortFunc(publish, func(a, b job.Job) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return publish
}

// forget makes the next pass publish everything again, because it is unknown what of the last one arrived.
func (l *live) forget() { l.ids = nil }
