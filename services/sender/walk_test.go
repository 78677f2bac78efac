package sender

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/txmanager"
)

var rewrite = flag.Bool("rewrite", false, "write what the rooms do into the walk-throughs of testdata")

// walk writes down what the rooms do about one job, in the words of testdata/liquidation.txt. It stands between the
// sender and its store, its node and its results. What differs from one run to the next (ids, hashes, numbers) is left
// out, and so is what comes at no certain moment: notes of broadcasts, and counts of what is mined.
type walk struct {
	mu    sync.Mutex
	job   string // the job that is followed; empty for none
	arm   int64  // its newest intent, 0 before that is seen in the queue
	raw   []byte // of its transaction
	hash  chain.Hash
	lines []string
	// simulated says that its call has succeeded: before it was queued, meanwhile or after it was picked.
	simulated bool
	over      bool // its arm is final: later arms are not followed
}

// follow begins to write about a job.
func (w *walk) follow(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.job = id
}

// notef writes a line that is not there yet, if it is about the job.
func (w *walk) notef(about bool, room, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%-26s %s", room, fmt.Sprintf(format, args...))
	if about && !slices.Contains(w.lines, line) {
		w.lines = append(w.lines, line)
	}
}

// on puts the walk around a sender.
func (w *walk) on(s *Sender) {
	s.intents, s.node = walkedIntents{s.intents, w}, walkedNode{s.node, w, s.cfg.Venue.LiquidationHandler}
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
	admission, err := i.Store.Enqueue(ctx, j)
	i.w.mu.Lock()
	begins := j.ID == i.w.job && admission == txm.NewArm && !i.w.over
	if begins { // an arm before this one was not to be done yet
		i.w.arm, i.w.raw, i.w.lines = 0, nil, nil
	}
	i.w.mu.Unlock()
	i.w.notef(begins, "services/sender", "intake: a job of kind %s is stored as an intent: %s", j.Kind, admission)
	return admission, err
}

func (i walkedIntents) Heads(ctx context.Context, s chain.Address, p txm.Pick) ([]txm.Intent, error) {
	heads, err := i.Store.Heads(ctx, s, p)
	for _, h := range heads {
		i.w.mu.Lock()
		mine := h.Job.ID == i.w.job && !i.w.over
		if mine {
			i.w.arm = h.ID
		}
		i.w.mu.Unlock()
		i.w.notef(mine, "pkg/txmanager drain", "the intent is among the most urgent: %s, lane %s", h.State,
			txm.LaneOf(h.Job.Kind))
	}
	return heads, err
}

func (i walkedIntents) Claim(ctx context.Context, f lease.Fence, b txm.Batch) error {
	err := i.Store.Claim(ctx, f, b)
	for _, c := range b.Claims {
		i.w.mu.Lock()
		mine := err == nil && c.Intent == i.w.arm
		if mine {
			i.w.raw, i.w.hash = c.Tx.Raw, c.Tx.Hash
		}
		simulated := i.w.simulated
		i.w.mu.Unlock()
		i.w.notef(mine && simulated, "services/sender/preflight",
			"with fresh reports and enough gas, the simulated call succeeds")
		i.w.notef(mine, "pkg/txmanager claim", "nonce and signed bytes are stored, under the lease of the signer")
	}
	return err
}

func (i walkedIntents) Record(ctx context.Context, f lease.Fence, receipts ...txm.Receipt) error {
	err := i.Store.Record(ctx, f, receipts...)
	for _, r := range receipts {
		i.w.notef(err == nil && i.w.is(r.TxHash), "pkg/txmanager confirm",
			"the receipt is stored: success %t, the logs say %s, settled %t", r.OK, r.Outcome, r.Settlement != nil)
	}
	return err
}

func (i walkedIntents) Finish(ctx context.Context, f lease.Fence, finals ...txm.FinalReceipt) error {
	err := i.Store.Finish(ctx, f, finals...)
	for _, r := range finals {
		mine := err == nil && i.w.is(r.TxHash)
		i.w.notef(mine, "pkg/txmanager confirm", "its block is final: the arm ends as %s, its nonce is used up",
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
	mine := err == nil && i.w.over && slices.Contains(intents, i.w.arm)
	i.w.mu.Unlock()
	i.w.notef(mine, "pkg/txmanager record", "the store notes that it was told")
	return err
}

// is tells whether a transaction is the job's.
func (w *walk) is(hash chain.Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.raw != nil && w.hash == hash
}

type walkedNode struct {
	node
	w       *walk
	handler chain.Address // of liquidations
}

func (n walkedNode) Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64,
	value perp.Uint) (evm.Source, error) {
	one, err := n.node.Simulate(ctx, from, to, data, gas, value)
	n.w.mu.Lock()
	n.w.simulated = n.w.simulated || err == nil && to == n.handler && n.w.job != "" && n.w.raw == nil
	n.w.mu.Unlock()
	return one, err
}

func (n walkedNode) SendRaw(ctx context.Context, raw []byte) error {
	n.w.mu.Lock()
	mine := n.w.raw != nil && slices.Equal(raw, n.w.raw)
	n.w.mu.Unlock()
	n.w.notef(mine, "pkg/txmanager broadcast", "the stored bytes, and no others, go to the nodes")
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
		mine := err == nil && p.w.over && e.Intent.ID == p.w.arm
		p.w.mu.Unlock()
		p.w.notef(mine, "services/sender", "results: %s is written to the result topic, with its settlement %t",
			e.Intent.Outcome, e.Receipt != nil && e.Receipt.Settlement != nil)
	}
	return err
}

// must compares what was written with the walk-through of testdata, whose lines of comment explain it.
func (w *walk) must(t *testing.T, name string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	file := filepath.Join("testdata", name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(text), "----\n")
	got := comment + "----\n" + strings.Join(w.lines, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != string(text) && !*rewrite {
		t.Errorf("the rooms did\n%s\nand %s says\n%s", got, file, text)
	}
}

// told tells whether the store has noted that the job's result was told: nothing comes after that.
func (w *walk) told() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines) > 0 && strings.HasPrefix(w.lines[len(w.lines)-1], "pkg/txmanager record")
}
