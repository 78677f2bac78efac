package keeperctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
)

// happening is one line of a job's story: when, what, and where it stands.
type happening struct {
	at    time.Time
	job   string // its id; empty for what is of the chain
	arm   uint32 // 0 for what is no arm's
	what  string
	where string // a block, a row, or a topic's partition and offset
	said  string
}

// jobStory is what is known of some jobs.
type jobStory struct {
	*session

	client  topicReader
	since   time.Time // how far back topics are read
	keys    []chain.Hash
	births  map[string]uint64 // chain's ms, by job id: the newest that is known
	signers map[chain.Address]bool
	lines   []happening
}

func (y *jobStory) addf(at time.Time, job string, arm uint32, what, where, format string, args ...any) {
	y.lines = append(y.lines, happening{at, job, arm, what, where, fmt.Sprintf(format, args...)})
}

// jobCommand tells what is stored of a job, in the order in which it happened.
func jobCommand(cmd *cobra.Command) runner {
	since := cmd.Flags().Duration("since", 10*time.Minute, "how far back topics are read for a job that this "+
		"keeper's database does not know")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) != 1 {
			return usagef("name one job: its id, the key of its position, order or request, a transaction, or an " +
				"account")
		}
		wanted, err := wantedJob(args[0])
		if err != nil {
			return err
		}
		ctx, cancel := s.within(ctx)
		defer cancel()
		db, err := s.database(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		client, err := s.kafka()
		if err != nil {
			return err
		}
		defer client.Close()
		y := &jobStory{session: s, client: topicReader{client}, since: time.Now().Add(-*since),
			births: map[string]uint64{}, signers: map[chain.Address]bool{}}
		for _, own := range s.Own.Signers {
			y.signers[own] = true
		}
		return y.print(ctx, db, wanted)
	}
}

// wantedJob reads what a job is named by.
func wantedJob(text string) (w pg.Wanted, err error) {
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
		return w, usagef("%q is no job: an id such as order:0x…:1, a key or transaction (0x and 64 digits), or an "+
			"account (0x and 40)", text)
	}
	return w, nil
}

func (y *jobStory) print(ctx context.Context, db *pg.DB, w pg.Wanted) error {
	arms, err := y.arms(ctx, db, w)
	if err != nil {
		return err
	}
	for _, a := range arms {
		y.addArm(a)
	}
	for _, key := range y.keys {
		if err := y.addChain(ctx, db, key); err != nil {
			return err
		}
	}
	if err := y.addTopics(ctx); err != nil {
		return notAsked(err)
	}
	if len(y.lines) == 0 {
		return errors.New("nothing is known of it here: neither the state nor the database nor the topics of the " +
			"last " +
			"minutes (--since) have it")
	}
	slices.SortStableFunc(y.lines, func(a, b happening) int { return a.at.Compare(b.at) })
	return y.out.table(y.table())
}

// arms are those that are stored, and the keys they are about. Of a transaction they are what it acted on.
func (y *jobStory) arms(ctx context.Context, db *pg.DB, w pg.Wanted) ([]pg.Arm, error) {
	id := w.JobID
	if id != "" {
		w = pg.Wanted{JobID: id}
	}
	arms, err := db.Arms(ctx, w, y.Own.Limit)
	if err != nil {
		return nil, err
	}
	var keys []chain.Hash
	if !w.Key.IsZero() {
		if keys, err = db.ActedOn(ctx, w.Key); err != nil {
			return nil, err
		}
		if len(keys) == 0 && !slices.ContainsFunc(arms, func(a pg.Arm) bool { return a.Intent.Job.Key != w.Key }) {
			keys = append(keys, w.Key)
		}
		for _, key := range keys {
			if len(arms) == 0 && key != w.Key {
				if arms, err = db.Arms(ctx, pg.Wanted{Key: key}, y.Own.Limit); err != nil {
					return nil, err
				}
			}
		}
	}
	if whole, err := wantedJob(id); err == nil && !whole.Key.IsZero() {
		keys = append(keys, whole.Key)
	}
	for _, a := range arms {
		keys = append(keys, a.Intent.Job.Key)
	}
	slices.SortFunc(keys, func(a, b chain.Hash) int { return slices.Compare(a[:], b[:]) })
	y.keys = slices.Compact(keys)
	return arms, nil
}

// table is the story, each line with its age since the birth of its job, and whose turn that is.
func (y *jobStory) table() *table {
	rows := newTable("at", "age", "turn", "job", "arm", "what", "where", "said")
	for _, h := range y.lines {
		age, turn := "-", "-"
		if birth := y.births[h.job]; birth > 0 {
			since := h.at.Sub(time.UnixMilli(int64(birth)))
			age, turn = since.Round(100*time.Millisecond).String(), y.turn(since)
		}
		arm := any("-")
		if h.arm > 0 {
			arm = h.arm
		}
		rows.add(h.at.UTC().Format("2006-01-02T15:04:05.000Z"), age, turn, cmp.Or(h.job, "-"), arm, h.what, h.where,
			firstLine(h.said))
	}
	return rows
}

// turn is the tier whose window an age is in, where keepers share by windows, as if nobody were suspected.
func (y *jobStory) turn(age time.Duration) string {
	t := y.Tier
	if !t.Enabled || t.Policy != "windows" || age < 0 {
		return "-"
	}
	tier := int(age/t.Window)%t.Tiers + 1
	if tier == t.Priority {
		return fmt.Sprintf("%d, ours", tier)
	}
	return fmt.Sprint(tier)
}

// addArm tells what is stored of an arm: when it was admitted, what was signed and sent for it, what was seen of it on
// the chain, and how it ended.
func (y *jobStory) addArm(a pg.Arm) {
	i := a.Intent
	id, row := i.Job.ID, fmt.Sprintf("keeper.tx_intent %d", i.ID)
	y.births[id] = max(y.births[id], i.Job.BirthMs)
	y.signers[i.Signer] = true
	y.addf(time.UnixMilli(int64(i.Job.BirthMs)), id, 0, "born", fmt.Sprintf("block %d", i.Job.Evidence.Block.Number),
		"%s; found in generation %d, by reports %s", i.Job.Evidence.Reason, i.Job.Evidence.Generation,
		cmp.Or(strings.Join(i.Job.Evidence.Reports, " "), "none"))
	y.addf(a.QueuedAt, id, i.Arm, "admitted", row, "%s of %s, for signer %s, after %d failed arms", i.Job.Kind,
		i.Job.Account, i.Signer, i.Tries)
	for _, s := range a.Attempts {
		what := "signed"
		if s.Seq > 1 {
			what = "signed again"
		}
		y.addf(s.At, id, i.Arm, what, "tx "+s.Hash.Hex(), "nonce %d, %s, gas %d at up to %d wei (tip %d), tenure %d",
			s.Nonce, strings.ToLower(s.Kind), s.Gas, s.Cap, s.Tip, s.Token)
		if s.First != nil {
			y.addf(*s.First, id, i.Arm, "sent", "tx "+s.Hash.Hex(), "%d times, last %s: %s", s.Sends, s.Last.UTC().
				Format("15:04:05.000"), cmp.Or(s.LastClass, "taken"))
		}
	}
	if m := a.Mined; m != nil && a.SeenAt != nil {
		y.addf(*a.SeenAt, id, i.Arm, "mined", fmt.Sprintf("block %d %s", m.Block.Number, m.Block.Hash),
			"%s%s, gas %d, cost %s, fee earned %s, %s", m.Outcome, because(m.Reason), m.GasUsed,
			coins(costOf(m.GasUsed, m.GasPrice)), coins(a.FeeEarned), map[bool]string{true: "final",
				false: "not final yet"}[a.Final])
		if s := m.Settlement; s != nil {
			y.addf(*a.SeenAt, id, i.Arm, "settled", fmt.Sprintf("block %d", m.Block.Number), "%s", settlementText(s))
		}
	}
	if i.CalledOff != "" {
		y.addf(a.QueuedAt, id, i.Arm, "called off", row, "%s", i.CalledOff)
	}
	switch {
	case a.EndedAt != nil:
		y.addf(*a.EndedAt, id, i.Arm, "ended", row, "%s%s", i.Outcome, because(i.Reason))
	default:
		y.addf(time.Now(), id, i.Arm, "now", row, "%s", i.State)
	}
	if a.Reported != nil {
		y.addf(*a.Reported, id, i.Arm, "reported", row, "its result is on the result topic")
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + firstLine(reason)
}
