// Package jobstory collects the history of one job, from the log that made it to its result: what this keeper stored,
// signed and sent, what the state has of the order, request or position, what planners and senders have published, and
// who executed it in the end. Every line names where it stands: a block, a row, or a topic's partition and offset.
//
// It is for people: topics are read around the times that the stores know, by their records' clocks.
package jobstory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
)

// Source is where stories are read from.
type Source struct {
	DB      *pg.DB
	Kafka   *bus.Client
	Keeper  wire.Config
	Tier    tier.Config
	Signers []chain.Address // this keeper's own, beside those that its attempts name
	Limit   int             // most attempts of a story
	Names   *naming.Names
}

// Line is one line of a job's story: when, what, and where it stands.
type Line struct {
	At      time.Time
	Job     string // its id; empty for what is of the chain
	Attempt uint32 // 0 for what is no attempt's
	What    string
	Where   string // a block, a row, or a topic's partition and offset
	Detail  string
}

// Story is what is known of some jobs. Read it with [Source.Read]; its methods add to it. It is for one goroutine.
type Story struct {
	Source

	Keys  []chain.Hash // the positions, orders and requests it is about
	Lines []Line       // in no order until Sort

	asked    string              // the id of the job that it was asked for by; empty where it was by something else
	dueTimes map[string][]uint64 // chain's ms, by job id: those that are known
	mortal   map[string]bool     // jobs that are renewed while they are due
	signers  map[chain.Address]bool
	stored   []txstore.Attempt         // as they were added
	said     []job.Job                 // due times that planners have published, likewise
	quoted   map[string][]price.Report // that a due time of a job was first published with
	closers  map[chain.Hash]closer     // of keys that somebody closed
}

// Read reads what the stores of this keeper have.
func (s Source) Read(ctx context.Context, w txstore.Wanted) (*Story, error) {
	y := newStory(s)
	y.asked = w.JobID
	for _, own := range s.Signers {
		y.signers[own] = true
	}
	attempts, err := y.attempts(ctx, s.DB, w)
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		y.addAttempt(a)
	}
	if err := y.addChecks(ctx, s.DB, attempts); err != nil {
		return nil, err
	}
	for _, key := range y.Keys {
		if err := y.addChain(ctx, s.DB, key); err != nil {
			return nil, err
		}
	}
	return y, nil
}

func newStory(s Source) *Story {
	return &Story{Source: s, dueTimes: map[string][]uint64{}, mortal: map[string]bool{},
		signers: map[chain.Address]bool{}, quoted: map[string][]price.Report{}, closers: map[chain.Hash]closer{}}
}

// Sort puts the lines in the order in which things happened.
func (y *Story) Sort() {
	slices.SortStableFunc(y.Lines, func(a, b Line) int { return a.At.Compare(b.At) })
}

// Age is how long after the due time of its job a line happened, the last one that was then over where it was renewed;
// unknown where the due time is.
func (y *Story) Age(l Line) (age time.Duration, known bool) {
	dueTimes := y.dueTimes[l.Job]
	if len(dueTimes) == 0 {
		return 0, false
	}
	dueSince := dueTimes[0]
	for _, later := range dueTimes[1:] {
		if !l.At.Before(time.UnixMilli(int64(later))) {
			dueSince = later
		}
	}
	return l.At.Sub(time.UnixMilli(int64(dueSince))), true
}

// born notes a due time of a job, and returns its number among those that are known, from 1.
func (y *Story) born(j job.Job) int {
	id, dueSinceMs := j.ID, j.DueSinceMs
	y.mortal[id] = j.LifeEndsMs() > 0
	dueTimes := y.dueTimes[id]
	if dueSinceMs == 0 {
		y.dueTimes[id] = dueTimes // the job is known all the same
		return 0
	}
	at, known := slices.BinarySearch(dueTimes, dueSinceMs)
	if !known {
		y.dueTimes[id] = slices.Insert(dueTimes, at, dueSinceMs)
	}
	return at + 1
}

// Wanted reads what a job is named by.
func Wanted(text string) (w txstore.Wanted, err error) {
	if strings.Contains(text, ":") {
		w.JobID = text
		if parts := strings.Split(text, ":"); len(parts) > 1 {
			w.Key, _ = chain.ParseHash(parts[1]) // that of adlState is a market, and its id is enough
		}
		return w, nil
	}
	if w.Account, err = chain.ParseAddress(text); err == nil {
		return w, nil
	}
	if w.Key, err = chain.ParseHash(text); err != nil {
		return w, fmt.Errorf("%q is no job: an id such as order:0x…:1, a key or transaction (0x and 64 digits), or an "+
			"account (0x and 40)", text)
	}
	return w, nil
}

// attempts are those that are stored, and the keys they are about. Of a transaction they are what it acted on.
func (y *Story) attempts(ctx context.Context, db *pg.DB, w txstore.Wanted) ([]txstore.Attempt, error) {
	id := w.JobID
	if id != "" {
		w = txstore.Wanted{JobID: id}
	}
	intents := txstore.NewIntents(db)
	attempts, err := intents.Attempts(ctx, w, y.Limit)
	if err != nil {
		return nil, err
	}
	var keys []chain.Hash
	if !w.Key.IsZero() {
		if keys, err = db.ActedOn(ctx, w.Key); err != nil {
			return nil, err
		}
		other := func(a txstore.Attempt) bool { return a.Intent.Job.Key != w.Key }
		if len(keys) == 0 && !slices.ContainsFunc(attempts, other) {
			keys = append(keys, w.Key)
		}
		for _, key := range keys {
			if len(attempts) == 0 && key != w.Key {
				if attempts, err = intents.Attempts(ctx, txstore.Wanted{Key: key}, y.Limit); err != nil {
					return nil, err
				}
			}
		}
	}
	if whole, err := Wanted(id); err == nil && !whole.Key.IsZero() {
		keys = append(keys, whole.Key)
	}
	for _, a := range attempts {
		keys = append(keys, a.Intent.Job.Key)
	}
	slices.SortFunc(keys, func(a, b chain.Hash) int { return slices.Compare(a[:], b[:]) })
	y.Keys = slices.Compact(keys)
	return attempts, nil
}

// Turn is the tier whose window a line is in, by the age of its job, where keepers share by windows, as if nobody were
// suspected; nobody's where the job is to be renewed.
func (y *Story) Turn(l Line, age time.Duration) string {
	t := y.Tier
	switch {
	case !t.Enabled || t.Policy != "windows" || age < 0:
		return "-"
	case y.mortal[l.Job] && age >= job.RenewedAfter:
		return "nobody until it is renewed"
	}
	tier := int(age/t.Window)%t.Tiers + 1
	if tier == t.Priority {
		return fmt.Sprintf("%d, ours", tier)
	}
	return fmt.Sprint(tier)
}

// addAttempt adds what is stored of an attempt: when it was admitted, what was signed and sent for it, what was seen
// of it on the chain, and how it ended.
func (y *Story) addAttempt(a txstore.Attempt) {
	i := a.Intent
	id, row := i.Job.ID, fmt.Sprintf("keeper.tx_intent %d", i.ID)
	if a.Archived {
		row = fmt.Sprintf("archived: keeper.archived_intent %d", i.ID)
	}
	y.born(i.Job)
	y.stored = append(y.stored, a)
	y.signers[i.Signer] = true
	y.addf(time.UnixMilli(int64(i.Job.DueSinceMs)), id, 0, "born", fmt.Sprintf("block %d", i.Job.Evidence.Block.Number),
		"%s; found in generation %d, by reports %s", i.Job.Evidence.Reason, i.Job.Evidence.Generation,
		cmp.Or(strings.Join(i.Job.Evidence.Reports, " "), "none"))
	y.addf(a.QueuedAt, id, i.Attempt, "admitted", row, "%s of %s, for signer %s, after %d failed attempts", i.Job.Kind,
		i.Job.Account, i.Signer, i.Tries)
	for n, s := range a.Txs {
		if n > 0 && s.Token != a.Txs[n-1].Token {
			y.addf(s.At, id, i.Attempt, "taken over", row, "another sender holds signer %s now: lease term %d, "+
				"after %d", i.Signer, s.Token, a.Txs[n-1].Token)
		}
		what := "signed"
		if s.Seq > 1 {
			what = "signed again"
		}
		y.addf(s.At, id, i.Attempt, what, "tx "+s.Hash.Hex(),
			"nonce %d, %s, gas %d at up to %s (tip %s), lease term %d",
			s.Nonce, strings.ToLower(s.Kind), s.Gas, text.Gwei(s.Cap), text.Gwei(s.Tip), s.Token)
		if s.First != nil {
			y.addf(*s.First, id, i.Attempt, "sent", "tx "+s.Hash.Hex(), "%d times, last %s: %s", s.Sends, s.Last.UTC().
				Format("15:04:05.000"), cmp.Or(s.LastClass, "taken"))
		}
	}
	if m := a.Mined; m != nil && a.SeenAt != nil {
		y.addf(*a.SeenAt, id, i.Attempt, "mined", fmt.Sprintf("block %d %s", m.Block.Number, m.Block.Hash),
			"%s%s, gas %d, cost %s, fee earned %s, %s", m.Outcome, text.Because(m.Reason), m.GasUsed,
			text.BNB(text.Cost(m.GasUsed, m.GasPrice)), text.BNB(a.FeeEarned), finality(a))
		if s := m.Settlement; s != nil {
			y.addf(*a.SeenAt, id, i.Attempt, "settled", fmt.Sprintf("block %d", m.Block.Number), "%s",
				y.settlement(i.Job, s))
		}
	}
	if i.CalledOff != "" {
		y.addf(a.QueuedAt, id, i.Attempt, "called off", row, "%s", i.CalledOff)
	}
	switch {
	case a.EndedAt != nil:
		y.addf(*a.EndedAt, id, i.Attempt, "ended", row, "%s%s", i.Outcome, text.Because(i.Reason))
	default:
		y.addf(time.Now(), id, i.Attempt, "now", row, "%s", i.State)
	}
	if a.Reported != nil {
		y.addf(*a.Reported, id, i.Attempt, "reported", row, "its result is on the result topic")
	}
}

func (y *Story) addf(at time.Time, job string, attempt uint32, what, where, format string, args ...any) {
	y.Lines = append(y.Lines, Line{at, job, attempt, what, where, fmt.Sprintf(format, args...)})
}

func finality(a txstore.Attempt) string {
	if a.Final {
		return "final"
	}
	return "not final yet"
}

// addChecks adds the verdicts on each attempt before it got its nonce: of the gate, of whose turn it was, of the
// state, of the choice of reports, of the simulated call. A verdict that repeats with other figures is added once.
func (y *Story) addChecks(ctx context.Context, db *pg.DB, attempts []txstore.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	ids, byID := make([]int64, len(attempts)), map[int64]txstore.Attempt{}
	for n, a := range attempts {
		ids[n], byID[a.Intent.ID] = a.Intent.ID, a
	}
	entries, err := txstore.NewCheckLog(db).Of(ctx, ids)
	for _, e := range entries {
		where := fmt.Sprintf("keeper.preflight_check of %d", e.Intent)
		if e.Block > 0 {
			where += fmt.Sprintf(", block %d", e.Block)
		}
		i := byID[e.Intent].Intent
		y.addf(e.At, i.Job.ID, i.Attempt, "checked", where, "%s, %s%s; says %s", e.Check, e.Verdict,
			text.Because(e.Detail),
			cmp.Or(e.By, "nobody by name"))
	}
	return err
}
