package jobstory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg/txstore"
)

// Point is one line of a summary. Addresses in it are whole.
type Point struct{ What, Said string }

const clock = "2006-01-02 15:04:05.000 UTC"

// Summary tells the job that was asked for by its id, else the newest of a story, in ten lines at most, with times
// since it was due: why and when it was due, by which prices, whose turn it was, when it was sent and landed, what that
// cost and came to. It is empty where no such job is known.
func (y *Story) Summary() (points []Point) {
	j, a, known := y.newest()
	if !known {
		return nil
	}
	due := time.UnixMilli(int64(j.DueSinceMs))
	since := func(at time.Time) string {
		if j.DueSinceMs == 0 { // nobody knows
			return at.UTC().Format(clock)
		}
		return fmt.Sprintf("%+.2f s", at.Sub(due).Seconds())
	}
	add := func(what, format string, args ...any) {
		if said := fmt.Sprintf(format, args...); said != "" {
			points = append(points, Point{what, said})
		}
	}
	add("job", "%s", y.describe(j))
	if j.DueSinceMs > 0 {
		add("due", "%s, block %d: %s", due.UTC().Format(clock), j.Evidence.Block.Number, j.Evidence.Reason)
	}
	add("prices", "%s", y.prices(j))
	if a == nil {
		add("result", "this keeper has not taken it up")
		return points
	}
	y.addSending(*a, since, add)
	if m := a.Mined; m != nil && a.SeenAt != nil {
		add("landed", "%s, block %d, gas price %s, tx %s", since(*a.SeenAt), m.Block.Number, text.Gwei(m.GasPrice),
			m.TxHash.Hex())
		add("cost", "%s for %s gas, fee earned %s", text.BNB(text.Cost(m.GasUsed, m.GasPrice)),
			text.Grouped(fmt.Sprint(m.GasUsed)), text.BNB(a.FeeEarned))
	}
	ours := func(hash chain.Hash) bool {
		return slices.ContainsFunc(a.Txs, func(s txstore.Signed) bool { return s.Hash == hash })
	}
	if c, closed := y.closers[j.Key]; a.Mined != nil && a.Mined.Settlement != nil {
		add("settled", "%s", y.settlement(j, a.Mined.Settlement))
	} else if closed && !ours(c.tx.Hash) {
		add("closed by", "%s, %s, block %d, gas price %s, tx %s", c.by, since(time.UnixMilli(int64(c.stamp.TimeMs))),
			c.stamp.Block, text.Gwei(c.tx.GasPrice), c.tx.Hash.Hex())
	}
	add("result", "%s", resultOf(*a, since))
	return points
}

// newest is the job of a story that was born last, of those that were asked for, and its last attempt; nil where no
// attempt is stored.
func (y *Story) newest() (j job.Job, a *txstore.Attempt, known bool) {
	other := func(id string) bool { return y.asked != "" && id != y.asked }
	for i := range y.stored {
		s := &y.stored[i]
		if other(s.Intent.Job.ID) {
			continue
		}
		if a == nil || cmp.Or(cmp.Compare(s.Intent.Job.DueSinceMs, j.DueSinceMs), s.QueuedAt.Compare(a.QueuedAt)) >= 0 {
			j, a = s.Intent.Job, s
		}
	}
	for _, said := range y.said {
		if other(said.ID) || a != nil && said.ID == j.ID {
			continue // an attempt has the due time that it was made for
		}
		if said.DueSinceMs > j.DueSinceMs || j.ID == "" {
			j, a = said, nil
		}
	}
	return j, a, j.ID != ""
}

// describe is what a job is about, and which of how many it is.
func (y *Story) describe(j job.Job) string {
	said := strings.ToLower(string(j.Kind))
	if !j.Market.IsZero() {
		said += fmt.Sprintf(" in %s, %s", j.Market, text.Side(j.IsLong))
	}
	if !j.Account.IsZero() {
		said += fmt.Sprintf(", of %s", j.Account)
	}
	if n := len(y.dueTimes); n > 1 && y.asked == "" {
		said += fmt.Sprintf("; the newest of %d jobs", n)
	}
	return said
}

// prices are those that a job was first said to be due by.
func (y *Story) prices(j job.Job) string {
	var parts []string
	seen := map[chain.Address]bool{}
	for _, r := range y.quoted[j.ID] {
		if !seen[r.Token] {
			seen[r.Token] = true
			parts = append(parts, y.Names.Token(r.Token)+" "+y.Names.Price(r.Token, r.Min))
		}
	}
	return strings.Join(parts, ", ")
}

// addSending adds whose turn it was when an attempt was taken up, and when it was sent, by whom.
func (y *Story) addSending(a txstore.Attempt, since func(time.Time) string, add func(string, string, ...any)) {
	l := Line{Job: a.Intent.Job.ID, At: a.QueuedAt}
	if age, known := y.Age(l); known {
		if turn := y.Turn(l, age); turn != "-" {
			add("turn", "tier %s", turn)
		}
	}
	sent, takenOver := "", ""
	for n, s := range a.Txs {
		if n > 0 && s.Token != a.Txs[n-1].Token {
			takenOver = fmt.Sprintf("%s, by another sender of this keeper: lease term %d, after %d", since(s.At),
				s.Token, a.Txs[n-1].Token)
		}
		if s.First != nil && sent == "" {
			sent = fmt.Sprintf("%s, nonce %d, for up to %s, by %s", since(*s.First), s.Nonce, text.Gwei(s.Cap),
				a.Intent.Signer)
		}
	}
	if n := len(a.Txs); sent != "" && n > 1 {
		sent += fmt.Sprintf("; signed %d times, last %s", n, since(a.Txs[n-1].At))
	}
	add("sent", "%s", cmp.Or(sent, "not yet"))
	add("taken over", "%s", takenOver)
}

// resultOf is how an attempt ended, or how it stands.
func resultOf(a txstore.Attempt, since func(time.Time) string) string {
	i := a.Intent
	said := strings.ToLower(string(i.State))
	if a.EndedAt != nil {
		said = fmt.Sprintf("%s %s%s", i.Outcome, since(*a.EndedAt), text.Because(i.Reason))
	}
	if a.Mined != nil {
		said += ", " + finality(a)
	}
	if i.CalledOff != "" {
		said += "; called off: " + text.FirstLine(i.CalledOff)
	}
	if i.Attempt > 1 {
		said += fmt.Sprintf("; attempt %d", i.Attempt)
	}
	if a.Archived {
		said += "; archived"
	}
	return said
}
