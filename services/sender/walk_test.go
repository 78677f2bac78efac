package sender

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

var rewrite = flag.Bool("rewrite", false, "write what the rooms do into the walk-throughs of testdata")

// walk writes down what the rooms do about one job, in the words of testdata/liquidation.txt. It stands between the
// sender and its store, its node and its results, and takes what the stages say from the log of checks. What differs
// from one run to the next (ids, hashes, numbers) is left out, and so is what comes at no certain moment: notes of
// broadcasts, and counts of what is mined.
type walk struct {
	db      *pg.DB
	mu      sync.Mutex
	job     string // the job that is followed; empty for none
	attempt int64  // its newest intent, 0 before that is seen in the queue
	raw     []byte // of its transaction
	hash    chain.Hash
	lines   []line
	checks  []checklog.Entry // of all jobs, as the log writes them: up to a second late
	over    bool             // its attempt is final: later attempts are not followed
}

// line is what a room did, and when.
type line struct {
	at   time.Time
	text string
}

// follow begins to write about a job.
func (w *walk) follow(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.job = id
}

// notef writes a line that is not there yet, if it is about the job.
func (w *walk) notef(about bool, room, format string, args ...any) {
	w.noteAtf(time.Now(), about, room, format, args...)
}

// noteAtf is notef for what happened at a time.
func (w *walk) noteAtf(at time.Time, about bool, room, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%-26s %s", room, fmt.Sprintf(format, args...))
	if about && !slices.ContainsFunc(w.lines, func(l line) bool { return l.text == text }) {
		w.lines = append(w.lines, line{at, text})
	}
}

// numbers are what a check says of this run alone: figures, and the names of price reports.
var numbers = regexp.MustCompile(`(reports )\S.*|\d+`)

// passed are the lines of the checks that let the attempt pass, each when it first did. The caller holds mu.
func (w *walk) passed() (lines []line) {
	seen := map[string]bool{}
	for _, e := range w.checks {
		if e.Intent != w.attempt || e.Verdict != "proceed" || seen[e.Check] {
			continue
		}
		seen[e.Check] = true
		room := "services/sender/preflight"
		if e.Check == checklog.Turn {
			room = "services/sender/turns"
		}
		text := fmt.Sprintf("%-26s %s: %s", room, e.Check, cmp.Or(numbers.ReplaceAllString(e.Detail, "${1}N"), "yes"))
		lines = append(lines, line{e.At, text})
	}
	return lines
}

// on puts the walk around a sender.
func (w *walk) on(s *Sender) {
	s.intents, s.node = walkedIntents{s.intents, w}, walkedNode{s.node, w}
	s.checks = checklog.New(walkedChecks{txstore.NewCheckLog(w.db), w}, s.clock, s.log)
	results := s.results
	s.results = func() (ended, givenUp txmanager.Publisher) {
		ended, givenUp = results()
		return walkedResults{ended, w}, givenUp
	}
}

type walkedIntents struct {
	txm.Store
	w *walk
}

func (i walkedIntents) Enqueue(ctx context.Context, j job.Job) (txm.Admission, error) {
	at := time.Now() // before the drain can see it, which may be faster than the answer, as may be all that follows
	i.w.mu.Lock()
	begins := j.ID == i.w.job && !i.w.over
	i.w.mu.Unlock()
	admission, err := i.Store.Enqueue(ctx, j)
	i.w.noteAtf(at, begins && admission == txm.NewAttempt, "services/sender",
		intakeLine+"a job of kind %s is stored as an intent: %s", j.Kind, admission)
	return admission, err
}

// intakeLine begins the line of a job that becomes an intent.
const intakeLine = "intake: "

func (i walkedIntents) Heads(ctx context.Context, s chain.Address, p txm.Pick) ([]txm.Intent, error) {
	heads, err := i.Store.Heads(ctx, s, p)
	for _, h := range heads {
		i.w.mu.Lock()
		mine := h.Job.ID == i.w.job && !i.w.over
		if mine && h.ID != i.w.attempt { // an attempt before this one was not to be done yet
			i.w.attempt, i.w.raw = h.ID, nil
			i.w.lines = slices.DeleteFunc(i.w.lines, func(l line) bool { return !strings.Contains(l.text, intakeLine) })
		}
		i.w.mu.Unlock()
		i.w.notef(mine, "txmanager drain", "the intent is among the most urgent: %s, lane %s", h.State,
			h.Job.Kind.Lane())
	}
	return heads, err
}

func (i walkedIntents) Claim(ctx context.Context, f lease.Fence, b txm.Batch) error {
	err := i.Store.Claim(ctx, f, b)
	for _, c := range b.Claims {
		i.w.mu.Lock()
		mine := err == nil && c.Intent == i.w.attempt
		if mine {
			i.w.raw, i.w.hash = c.Tx.Raw, c.Tx.Hash
		}
		i.w.mu.Unlock()
		i.w.notef(mine, "txmanager claim", "nonce and signed bytes are stored, under the lease of the signer")
	}
	return err
}

func (i walkedIntents) Record(ctx context.Context, f lease.Fence, receipts ...txm.Receipt) error {
	err := i.Store.Record(ctx, f, receipts...)
	for _, r := range receipts {
		i.w.notef(err == nil && i.w.is(r.TxHash), "txmanager confirm",
			"the receipt is stored: success %t, the logs say %s, settled %t", r.OK, r.Outcome, r.Settlement != nil)
	}
	return err
}

func (i walkedIntents) Finish(ctx context.Context, f lease.Fence, finals ...txm.FinalReceipt) error {
	err := i.Store.Finish(ctx, f, finals...)
	for _, r := range finals {
		mine := txm.Refused(err) == "" && i.w.is(r.TxHash) // on a busy machine the answer may not come
		i.w.notef(mine, "txmanager confirm", "its block is final: the attempt ends as %s, its nonce is used up",
			r.Outcome)
		i.w.mu.Lock()
		i.w.over = i.w.over || mine
		i.w.mu.Unlock()
	}
	return err
}

func (i walkedIntents) Reported(ctx context.Context, f lease.Fence, intents []int64) error {
	err := i.Store.Reported(ctx, f, intents)
	i.w.mu.Lock()
	mine := txm.Refused(err) == "" && i.w.over && slices.Contains(intents, i.w.attempt)
	i.w.mu.Unlock()
	i.w.notef(mine, "txmanager report", "the store notes that it was told")
	return err
}

// is reports whether a transaction is the job's.
func (w *walk) is(hash chain.Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.raw != nil && w.hash == hash
}

// walkedChecks is a store of checks that shows what is saved.
type walkedChecks struct {
	checklog.Store
	w *walk
}

func (c walkedChecks) Save(ctx context.Context, entries []checklog.Entry) error {
	err := c.Store.Save(ctx, entries)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if err == nil {
		c.w.checks = append(c.w.checks, entries...)
	}
	return err
}

type walkedNode struct {
	node
	w *walk
}

func (n walkedNode) SendRaw(ctx context.Context, raw []byte) error {
	n.w.mu.Lock()
	mine := n.w.raw != nil && slices.Equal(raw, n.w.raw)
	n.w.mu.Unlock()
	n.w.notef(mine, "txmanager broadcast", "the stored bytes, and no others, go to the nodes")
	return n.node.SendRaw(ctx, raw)
}

type walkedResults struct {
	txmanager.Publisher
	w *walk
}

func (p walkedResults) Publish(ctx context.Context, ended []txm.Ended) error {
	err := p.Publisher.Publish(ctx, ended)
	for _, e := range ended {
		p.w.mu.Lock()
		mine := err == nil && p.w.over && e.Intent.ID == p.w.attempt
		p.w.mu.Unlock()
		p.w.notef(mine, "services/sender", "results: %s is written to the result topic, with its settlement %t",
			e.Intent.Outcome, e.Receipt != nil && e.Receipt.Settlement != nil)
	}
	return err
}

// text is what was written, in the order in which it happened.
func (w *walk) text() (text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := append(w.passed(), w.lines...)
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	for _, l := range lines {
		text += l.text + "\n"
	}
	return text
}

// must compares what was written with the walk-through of testdata, whose lines of comment explain it.
func (w *walk) must(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(text), "----\n")
	got := comment + "----\n" + w.text()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != string(text) && !*rewrite {
		t.Errorf("the rooms did\n%s\nand %s says\n%s", got, file, text)
	}
}

// isOver reports whether the store has noted that the job's result was reported, the answer to its storing has come,
// and all of its checks are written: nothing comes after that.
func (w *walk) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := func(part string) bool {
		return slices.ContainsFunc(w.lines, func(l line) bool { return strings.Contains(l.text, part) })
	}
	return has(intakeLine) && has("txmanager report") &&
		slices.ContainsFunc(w.checks, func(e checklog.Entry) bool {
			return e.Intent == w.attempt && e.Check == checklog.Call && e.Verdict == "proceed"
		})
}
