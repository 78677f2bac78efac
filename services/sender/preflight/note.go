package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Noted is a stage of the pipeline before the checker's, whose verdicts stand in the log of checks.
func (r *Checker) Noted(check string, stage txmanager.Stage) txmanager.Stage {
	run := stage.Run
	stage.Run = func(ctx context.Context, t *txmanager.Task) (txmanager.Verdict, error) {
		v, err := run(ctx, t)
		r.noteOwn(t, check, v, err)
		return v, err
	}
	return stage
}

// noteOwn notes this keeper's own verdict on a task; an error means that nobody could be asked.
func (r *Checker) noteOwn(t *txmanager.Task, check string, v txmanager.Verdict, err error) {
	note(r.Notes, t, checklog.Entry{Check: check, By: ownWord}, v, err)
}

// ownWord stands in place of endpoints and sources where the verdict is this keeper's own.
const ownWord = "this keeper"

// note fills an entry in, for a log that may be nil. A shadow's trials are no attempts. What waits for another
// endpoint's word is no verdict yet.
func note(log *checklog.Log, t *txmanager.Task, e checklog.Entry, v txmanager.Verdict, err error) {
	switch {
	case log == nil || t.Intent.Attempt == 0 || v.Wake != nil:
		return
	case err != nil:
		e.Verdict, e.Detail = "unknown", err.Error()
	default:
		e.Verdict, e.Detail = v.Word(), cmp.Or(v.Reason, e.Detail)
	}
	e.Intent = t.Intent.ID
	if e.Block == 0 {
		if read, is := readFor(t); is {
			e.Block = read.Progress.Watermark.Number
		}
	}
	log.Note(e)
}

// noteReports keeps what the choice of reports came to.
func (r *Checker) noteReports(t *txmanager.Task, reports []price.Report, v txmanager.Verdict) {
	head, _ := r.Head.Newest()
	e := checklog.Entry{Check: checklog.Price, By: ownWord, Block: head.Number}
	if v.Kind == txmanager.Proceed {
		var ids, sources []string
		for _, report := range reports {
			ids = append(ids, report.ID())
			if !slices.Contains(sources, report.Source) {
				sources = append(sources, report.Source)
			}
		}
		e.Detail, e.By = "reports "+strings.Join(ids, " "), strings.Join(sources, ", ")
	}
	note(r.Notes, t, e, v, nil)
}

// noteCall keeps what the simulated call came to. It was made on the newest state of whoever answered, which is that
// of the newest head or a moment older.
func (r *Checker) noteCall(t *txmanager.Task, o callResult, v txmanager.Verdict, err error) {
	head, _ := r.Head.Newest()
	e := checklog.Entry{Check: checklog.Call, By: string(o.from), Block: head.Number}
	if o.too != "" {
		e.By += ", " + string(o.too)
	}
	if v.Kind == txmanager.Proceed {
		e.Detail = fmt.Sprintf("the simulated call succeeds with %d gas", o.gas)
	}
	note(r.Notes, t, e, v, err)
}
