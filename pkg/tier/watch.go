package tier

import (
	"fmt"
	"maps"
	"time"

	"perpkeeper/pkg/job"
)

// AlarmName is what a monitor finds wrong (TIER-19).
type AlarmName string

// The alarms.
const (
	// MasterSilent: the Master let so many jobs running pass its window that it would be suspected, and others executed
	// them.
	MasterSilent AlarmName = "master_silent"
	// BackupExecutes: a tier other than the Master executed something.
	BackupExecutes AlarmName = "backup_executes"
	// NobodyExecutes: a job is due although every tier has had its window, and no keeper has executed anything since it
	// was born.
	NobodyExecutes AlarmName = "nobody_executes"
	// Blind: this monitor does not see the chain's records, so that its silence means nothing.
	Blind AlarmName = "blind"
)

// alarmNames lists them.
func alarmNames() []AlarmName {
	return []AlarmName{MasterSilent, BackupExecutes, NobodyExecutes, Blind}
}

// Critical reports whether somebody has to act at once. That a backup executes shows that it works.
func (n AlarmName) Critical() bool { return n != BackupExecutes }

// clearAfter is for how long, of chain time, the cause of an alarm must be gone before the alarm is over, so that
// alarms do not flap.
func (n AlarmName) clearAfter() time.Duration {
	switch n {
	case BackupExecutes:
		return 5 * time.Minute
	case MasterSilent:
		return time.Minute
	default:
		return 30 * time.Second
	}
}

const (
	// jobTimeout is after how long a job that no planner publishes any more is taken for gone: it recovered, or was
	// executed before this monitor learnt of it.
	jobTimeout = 6 * job.SaidEvery
	// blindAfter is by how much what was read of the chain may be behind its head.
	blindAfter = 30 * time.Second
)

// Alarm is one that was raised, or is over.
type Alarm struct {
	Name    AlarmName
	SinceMs uint64 // chain time (ms) at which it was raised
	Over    bool
	Text    string
}

// Watch raises alarms about the keepers of a venue, for a keeper that never sends: jobs and executions in, alarms out.
// All times are the chain's (Unix ms), so that a chain that stands still alarms nobody here. It is for one goroutine at
// a time.
//
// Not guaranteed: that a job nobody can execute is distinguished from one that nobody executes. While any keeper
// executes anything else it raises no alarm.
type Watch struct {
	tiers  int
	window uint64

	beganMs  uint64 // the first look
	now      uint64
	open     map[string]openJob
	missed   int    // jobs in a row that others executed after the Master's window
	masterMs uint64 // when the Master last executed; 0 = not seen
	anyMs    uint64 // when any keeper did
	backup   string // of a backup's last execution; empty when it has been reported
	backupMs uint64
	raised   map[AlarmName]raisedAlarm
}

// openJob is a job that is due. DueMs is the time (Unix ms) of the newest state in which a planner found it due.
type openJob struct{ dueSinceMs, dueMs uint64 }

// raisedAlarm is an alarm that is not over.
type raisedAlarm struct {
	sinceMs, lastMs uint64 // when it was raised, and when there was last reason for it
	text            string
}

// NewWatch returns a watch over so many tiers, which knows nothing yet.
func NewWatch(tiers int, window time.Duration) *Watch {
	return &Watch{tiers: tiers, window: uint64(window.Milliseconds()), open: map[string]openJob{},
		raised: map[AlarmName]raisedAlarm{}}
}

// Due notes that a planner published a job as due, in the state at a time (Unix ms). A job that is born anew begins
// anew.
func (w *Watch) Due(id string, dueSinceMs, dueMs uint64) {
	w.open[id] = openJob{dueSinceMs: max(dueSinceMs, w.open[id].dueSinceMs), dueMs: max(dueMs, w.open[id].dueMs)}
}

// Executed notes that a tier ended a job on the chain, in a block of that time. Tier 0 is somebody else, such as the
// owner of an order who takes it back.
func (w *Watch) Executed(id string, by int, atMs uint64) {
	j, known := w.open[id]
	delete(w.open, id)
	switch by {
	case 0:
		return
	case 1:
		w.missed, w.masterMs = 0, max(w.masterMs, atMs)
	default:
		age := "unknown age"
		if known {
			age = milliseconds(atMs - min(atMs, j.dueSinceMs)).Round(100 * time.Millisecond).String()
		}
		w.backupMs = max(w.backupMs, atMs)
		w.backup = fmt.Sprintf("tier %d executed %s at the age of %s", by, id, age)
		if known && atMs >= j.dueSinceMs+w.window {
			w.missed++
		}
	}
	w.anyMs = max(w.anyMs, atMs)
}

// Look judges at the chain's time, with everything read up to the block of another: 0 while the past is still being
// read. It returns what has changed since the last look.
func (w *Watch) Look(nowMs, readMs uint64) (changed []Alarm) {
	if nowMs == 0 {
		return nil
	}
	if w.beganMs == 0 {
		w.beganMs = nowMs
	}
	w.now = max(w.now, nowMs)
	causes := map[AlarmName]string{Blind: w.blindCause(readMs)}
	if readMs > 0 {
		at := min(w.now, readMs)
		w.forget(at)
		causes[MasterSilent], causes[BackupExecutes], causes[NobodyExecutes] = w.masterCause(), w.backupCause(at),
			w.idleCause(at)
	}
	for _, name := range alarmNames() {
		if a, isNew := w.update(name, causes[name]); isNew {
			changed = append(changed, a)
		}
	}
	return changed
}

// update raises an alarm for which there is a cause, and ends one for which there has been none for long enough.
func (w *Watch) update(name AlarmName, cause string) (a Alarm, isNew bool) {
	s, stands := w.raised[name]
	switch {
	case cause != "" && stands:
		s.lastMs, s.text = w.now, cause
		w.raised[name] = s
	case cause != "":
		w.raised[name] = raisedAlarm{sinceMs: w.now, lastMs: w.now, text: cause}
		return Alarm{Name: name, SinceMs: w.now, Text: cause}, true
	case stands && w.now-s.lastMs >= uint64(name.clearAfter().Milliseconds()):
		delete(w.raised, name)
		return Alarm{Name: name, SinceMs: s.sinceMs, Over: true, Text: "no longer: " + s.text}, true
	}
	return a, false
}

// Alarms returns the alarms that are not over.
func (w *Watch) Alarms() (all []Alarm) {
	for _, name := range alarmNames() {
		if s, stands := w.raised[name]; stands {
			all = append(all, Alarm{Name: name, SinceMs: s.sinceMs, Text: s.text})
		}
	}
	return all
}

// blindCause is why this monitor cannot judge; empty if it can.
func (w *Watch) blindCause(readMs uint64) string {
	behind := milliseconds(w.now - min(w.now, max(readMs, w.beganMs)))
	if behind < blindAfter {
		return ""
	}
	return fmt.Sprintf("what was read of the chain is %s behind its head: this monitor sees nothing",
		behind.Round(time.Second))
}

// backupCause is what a backup has executed since the last look; empty for nothing. Executions from before the watch
// began do not count.
func (w *Watch) backupCause(at uint64) string {
	text := w.backup
	w.backup = ""
	if at > w.backupMs+uint64(BackupExecutes.clearAfter().Milliseconds()) {
		return ""
	}
	return text
}

// MasterSilent reports whether the Master would be suspected: others stand in for it, and need not wait.
func (w *Watch) MasterSilent() bool { return w.missed >= missesToSuspect }

// masterCause is why the Master is taken for silent; empty if it is not.
func (w *Watch) masterCause() string {
	if !w.MasterSilent() {
		return ""
	}
	last := "it was not seen to execute anything"
	if w.masterMs > 0 {
		last = fmt.Sprintf("it last executed %s ago", milliseconds(w.now-min(w.now, w.masterMs)).Round(time.Second))
	}
	return fmt.Sprintf("the Master let %d jobs running pass its window; %s", w.missed, last)
}

// idleCause is why nobody is taken to execute anything: the oldest job for which every tier has had its window, and
// that nothing was executed after. A planner must have published it again after all these windows: a condition that
// held for a moment is published then, and not again.
func (w *Watch) idleCause(at uint64) string {
	all := uint64(w.tiers)*w.window + uint64(Guard.Milliseconds())
	oldest, stuck := "", 0
	for id, j := range w.open {
		if min(at, j.dueMs) < j.dueSinceMs+all || w.anyMs >= j.dueSinceMs {
			continue
		}
		stuck++
		first := w.open[oldest].dueSinceMs
		if oldest == "" || j.dueSinceMs < first || j.dueSinceMs == first && id < oldest {
			oldest = id
		}
	}
	if stuck == 0 {
		return ""
	}
	return fmt.Sprintf("nobody executes: %d jobs are older than the windows of all %d tiers, the oldest is %s, due "+
		"for %s", stuck, w.tiers, oldest,
		milliseconds(at-w.open[oldest].dueSinceMs).Round(time.Second))
}

// forget drops the jobs that no planner publishes any more.
func (w *Watch) forget(at uint64) {
	maps.DeleteFunc(w.open, func(_ string, j openJob) bool { return at > j.dueMs+uint64(jobTimeout.Milliseconds()) })
}
