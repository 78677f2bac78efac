package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// tap sees the transactions that come by a front, on the node's side of the connection.
type tap struct {
	mu   sync.Mutex
	seen []chain.Hash
	// arrived is told of a transaction before the node is, and says whether the node hears of it and whether the answer
	// goes back.
	arrived func() (pass, answer bool)
}

func (w *tap) spoil(f *front, out http.ResponseWriter, r *http.Request, q query) bool {
	if q.Method != "eth_sendRawTransaction" {
		return false
	}
	var raw hexutil.Bytes
	if json.Unmarshal(q.Params[0], &raw) != nil {
		return false
	}
	hash := chain.Keccak256(raw)
	w.mu.Lock()
	w.seen = append(w.seen, hash)
	w.mu.Unlock()
	pass, answer := true, true
	if w.arrived != nil {
		pass, answer = w.arrived()
	}
	result, fault := json.RawMessage(fmt.Sprintf("%q", hash.Hex())), json.RawMessage(nil)
	if pass {
		result, fault = f.ask(q)
	}
	if !answer {
		<-r.Context().Done()
		return true
	}
	f.answer(out, q, result, fault)
	return true
}

func (w *tap) hashes() []chain.Hash {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// death is a moment at which a process is killed, and how the world is around it.
type death struct {
	moment string
	// where it kills itself; without one the test kills it when the transaction has reached the node and before that
	// has answered
	point string
	// swallowed: the node says that it has what this process sends, and loses it.
	swallowed bool
	raised    bool // the price is raised every two blocks
	forked    bool // the block with the transaction leaves the chain
	// stored is how many transactions the store has afterwards, and heard whether the node was told of one.
	stored int
	heard  bool
}

// NON-13, NON-14: a sender's process is killed by SIGKILL before and after each of sign, commit, send, reply and
// receipt, and at every other labelled point. The next one brings the job to its end in one transaction, and what the
// node is given is what was stored, by whichever process. It builds a binary and waits for leases of a real length:
// KEEPER_LONG=1. TestKilledAnywhere does the same with more moments, within one process.
func TestProcessKilled(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("builds and kills processes: run it with KEEPER_LONG=1")
	}
	deaths := []death{
		{moment: "before sign", point: "sender.sign.before"},
		{moment: "after sign", point: "sender.sign.after"},
		{moment: "before commit", point: "sender.commit.before"},
		{moment: "after commit", point: "sender.commit.after", stored: 1},
		{moment: "before send", point: "sender.send.before", stored: 1},
		{moment: "after send", stored: 1, heard: true},
		{moment: "after send, and the node loses it", swallowed: true, stored: 1, heard: true},
		{moment: "before the reply is noted", point: "sender.reply.before", swallowed: true, stored: 1, heard: true},
		{moment: "after the reply is noted", point: "sender.reply.after", swallowed: true, stored: 1, heard: true},
		{moment: "before the receipt is recorded", point: "sender.receipt.before", stored: 1, heard: true},
		{moment: "after the receipt is recorded", point: "sender.receipt.after", stored: 1, heard: true},
		{moment: "before a raise is stored", point: "sender.replace.before", swallowed: true, raised: true, stored: 1,
			heard: true},
		{moment: "after a raise is stored", point: "sender.replace.after", swallowed: true, raised: true, stored: 2,
			heard: true},
		{moment: "before a receipt is taken back", point: "sender.unmine.before", forked: true, stored: 1,
			heard: true},
		{moment: "after a receipt is taken back", point: "sender.unmine.after", forked: true, stored: 1,
			heard: true},
		{moment: "before the end", point: "sender.finish.before", stored: 1, heard: true},
		{moment: "after the end", point: "sender.finish.after", stored: 1, heard: true},
		{moment: "before the report", point: "sender.report.before", stored: 1, heard: true},
		{moment: "within the report", point: "sender.report.published", stored: 1, heard: true},
		{moment: "after the report", point: "sender.report.after", stored: 1, heard: true},
	}
	for _, label := range labels(t) {
		if strings.HasPrefix(label, "sender.retry.") {
			continue // a job that failed on the chain; pkg/txmgr/txmanager's TestRetriesOutliveTheirProcess
		}
		if !slices.ContainsFunc(deaths, func(d death) bool { return d.point == label }) {
			t.Errorf("nobody is killed at %s", label)
		}
	}
	s := newSite(t)
	binary := buildBinary(t, "failpoint")
	by, key := s.keeper(0)
	for _, d := range deaths {
		t.Run(d.moment, func(t *testing.T) { s.in(t).outlive(d, binary, by, key) })
	}
}

// labels are the points in the sources.
func labels(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../pkg/txmgr/txmanager/*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
	}
	if len(all) < 16 {
		t.Fatalf("only %d points: %v", len(all), all)
	}
	return all
}

func (s *site) outlive(d death, binary string, by chain.Address, key secret.String) {
	s.t.Helper()
	before := s.nonce(by)
	j := s.orderJob(s.marketOrder(100), by)
	heard := make(chan struct{}, 1000)
	victims := &tap{arrived: func() (pass, answer bool) {
		heard <- struct{}{}
		return !d.swallowed, d.point != ""
	}}
	if d.forked {
		s.devnet.Node().StallFinality()
		defer s.devnet.Resume()
	}
	s.behind(s.front(0, victims.spoil))
	if d.raised {
		s.impatient()
	}
	s.say(j)
	victim := s.launch(binary, key, d.point)
	if d.forked {
		f := s.minedOf(&running{Sender: &Sender{outside: outside{intents: txstore.NewIntents(s.db)}}}, by, chain.Hash{})
		s.replace(f.Mined.Block.Number, branchOff{1, evmnode.Drop})
	}
	if d.point == "" {
		select {
		case <-heard:
		case <-s.t.Context().Done():
		}
		_ = victim.cmd.Process.Kill()
	}
	victim.dies()
	s.devnet.Resume()

	stored := s.storedFor(by)
	given := victims.hashes()
	if (len(given) > 0) != d.heard {
		s.t.Errorf("the node was given %v", given)
	}
	if len(stored) > 0 && len(stored) != d.stored || len(stored) == 0 && d.stored > 1 {
		s.t.Errorf("stored are %v, want %d", stored, d.stored)
	}
	heirs := &tap{}
	s.behind(s.front(0, heirs.spoil))
	s.cfg.Sender.Fee.Order.Patience = 10_000
	s.sender([]secret.String{key})
	s.mustEndOnce(j, by, before)
	s.mustBeTrue(j)
	mined := s.result(j.ID, 1).TxHash
	if len(stored) == 0 {
		stored = []chain.Hash{mined}
	}
	for _, hash := range append(given, heirs.hashes()...) {
		if !slices.Contains(stored, hash) {
			s.t.Errorf("the node was given %s, stored are %v", hash, stored)
		}
	}
	if lost := d.swallowed || !d.heard || d.forked; lost && !slices.Contains(heirs.hashes(), mined) {
		s.t.Errorf("the heir broadcast %v, mined is %s", heirs.hashes(), mined)
	}
	s.eventually("it is noted that it was published, so that the next victim has nothing else to do",
		func(ctx context.Context) bool {
			left, err := txstore.NewIntents(s.db).Unreported(ctx, by, 1)
			return err == nil && len(left) == 0
		})
}

// storedFor are the transactions of the signer's only pending transaction; none where it has none.
func (s *site) storedFor(by chain.Address) []chain.Hash {
	s.t.Helper()
	var inFlight []txm.PendingTx
	s.eventually("the store answers", func(ctx context.Context) (ok bool) {
		var err error
		inFlight, err = txstore.NewIntents(s.db).InFlight(ctx, by)
		return err == nil
	})
	if len(inFlight) > 1 {
		s.t.Fatalf("in flight: %+v", inFlight)
	}
	if len(inFlight) == 0 {
		return nil
	}
	return inFlight[0].Hashes()
}
