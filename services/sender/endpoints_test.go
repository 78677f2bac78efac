package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/secret"
)

// headStart is how much earlier the bad endpoint answers than the good ones, so that a sender asks it first.
const headStart = 250 * time.Millisecond

// TestEndpoints: one of a sender's three endpoints is stale, lies, hangs or wants fewer requests, and answers before
// the good ones. Each job is done once all the same, and its result says what the chain says. The rarer kinds of
// trouble run with KEEPER_LONG=1.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	next, long := 0, os.Getenv("KEEPER_LONG") != ""
	run := func(name string, test func(s *site, by chain.Address, key secret.String)) {
		by, key := s.keeper(next)
		next = (next + 1) % 11 // the last is a rival
		t.Run(name, func(t *testing.T) { test(s.in(t), by, key) })
	}
	const always, rarely = false, true
	for _, c := range []struct {
		name  string
		spoil spoiler
		good  time.Duration // how much later the good ones answer
		rare  bool
	}{
		{"one hangs", hangs(""), 0, always},
		{"one wants no requests at all", refuses(1, 1), 0, rarely},
		{"one says that every call is reverted", says(`{"code":3,"message":"execution reverted","data":"0x"}`),
			headStart, always},
		{"one says that the signer may not", says(unauthorized), headStart, always},
		{"one says that ours were reverted", changes("eth_getTransactionReceipt", reverted), headStart, always},
		{"one says that more nonces were spent", changes("eth_getTransactionCount", plus(1)), headStart, always},
		{"one says that less nonces were spent", changes("eth_getTransactionCount", plus(-1)), headStart, rarely},
		{"one says that ours have done nothing", changes("eth_getTransactionReceipt", silenced), headStart, rarely},
		{"one hides receipts", changes("eth_getTransactionReceipt", nothing), headStart, rarely},
		{"one takes transactions and hangs", hangs("eth_sendRawTransaction"), 0, rarely},
		{"one drops what it says it has accepted", swallows, headStart, rarely},
	} {
		if c.rare && !long {
			continue
		}
		run(c.name, func(s *site, by chain.Address, key secret.String) {
			bad := s.front(0, c.spoil)
			s.behind(bad, s.front(c.good, nil), s.front(c.good, nil))
			before, w := s.nonce(by), &witness{}
			s.sender([]secret.String{key}, w.on)
			j := s.orderJob(s.marketOrder(100), by)
			s.say(j)
			s.mustEndOnce(j, by, before)
			s.mustBeStored(j, w.broadcasts())
			s.mustBeTrue(j)
			if bad.hits.Load() == 0 {
				s.t.Error("the bad endpoint was never asked: nothing is tried here")
			}
		})
	}
	run("one is stale", staleEndpoint)
	run("one makes up a receipt", madeUpReceipt)
	run("one is stuck on a branch that was left", orphanedReceipt)
	if long {
		run("two of four now and then want fewer requests", throttledEndpoints)
		run("the only one hangs for a while", silentForAWhile)
	}
}

// unauthorized is the venue's own word that the caller lacks a role.
const unauthorized = `{"code":3,"message":"execution reverted","data":"0xa35b150b` +
	`0000000000000000000000000000000000000000000000000000000000000001` +
	`0000000000000000000000000000000000000000000000000000000000000040` +
	`0000000000000000000000000000000000000000000000000000000000000000"}`

// says answers every simulated call with one error.
func says(fault string) spoiler {
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		if q.Method != "eth_call" {
			return false
		}
		f.answer(w, q, nil, []byte(fault))
		return true
	}
}

// A single endpoint gives odd answers for a while: whatever they are they end nothing, and the job is executed by its
// first attempt when they stop.
func TestOddAnswers(t *testing.T) {
	s := newSite(t)
	by, key := s.keeper(0)
	only := s.front(0, nil)
	s.behind(only)
	sn := s.sender([]secret.String{key})
	before := s.nonce(by)
	for i, c := range []struct{ name, fault string }{
		{"an arithmetic error", `{"code":3,"message":"execution reverted","data":"0x4e487b71` +
			strings.Repeat("0", 62) + `11"}`},
		{"no reason", `{"code":3,"message":"execution reverted","data":"0x"}`},
		{"out of gas", `{"code":-32000,"message":"err: out of gas (supplied gas 6000000)"}`},
		{"an unknown error", `{"code":3,"message":"execution reverted","data":"0xdeadbeef"}`},
		{"too little gas for a cancellation", `{"code":3,"message":"execution reverted","data":"0xe73a05d5` +
			strings.Repeat("0", 128) + `"}`},
		{"an error of the node", `{"code":-32000,"message":"missing trie node"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			j := s.orderJob(s.marketOrder(100), by)
			spoilt := only.hits.Load()
			only.become(says(c.fault))
			s.say(j)
			s.eventually("it was asked at several heads",
				func(context.Context) bool { return only.hits.Load() > spoilt+5 })
			if early := s.results(j.ID); len(early) > 0 {
				t.Errorf("it ended for that: %+v", early)
			}
			only.become(nil)
			s.mustEndOnce(j, by, before+uint64(i))
		})
	}
	t.Run("a liquidation is not put off", func(t *testing.T) {
		s := s.in(t)
		j, weth := s.liquidationJob(by), chain.Address(s.market.Index)
		was, known := sn.quotes.Latest(weth)
		if err := s.devnet.Shock("WETH", -1500); err != nil || !known {
			t.Fatalf("a report was there: %t, %v", known, err)
		}
		s.eventually("reports show it", func(context.Context) bool {
			now, _ := sn.quotes.Latest(weth)
			return now.Max.Less(was.Min.MulDiv(perp.U64(9), perp.U64(10)))
		})
		spoilt := only.hits.Load()
		only.become(says(`{"code":3,"message":"execution reverted","data":"0x"}`))
		j.DueSinceMs = uint64(time.Now().UnixMilli())
		s.say(j)
		s.eventually("it was asked at several heads", func(context.Context) bool { return only.hits.Load() > spoilt+6 })
		only.become(nil)
		well := s.devnet.Node().Head().Number.Uint64()
		if r := s.result(j.ID, 1); r.Outcome != job.Done || r.Block.Number > well+60 {
			t.Errorf("the node was well from block %d on: %+v", well, r)
		}
	})
}

// mustBeTrue demands that a job's result is what the node itself says of the transaction.
func (s *site) mustBeTrue(j job.Job) {
	s.t.Helper()
	r := s.result(j.ID, 1)
	if at, known := s.receiptBlock(r.TxHash); !known || at != r.Block.Hash {
		s.t.Errorf("the result names block %s, the chain has it in %s (%t)", r.Block.Hash, at, known)
	}
}

// A node that stopped before the order was born does not know it, and knows no receipt.
func staleEndpoint(s *site, by chain.Address, key secret.String) {
	bad := s.front(0, nil)
	s.behind(bad, s.front(headStart, nil), s.front(headStart, nil))
	before, w := s.nonce(by), &witness{}
	bad.become(stale(s.devnet.Node().Head().Number.Uint64()))
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.sender([]secret.String{key}, w.on)
	s.mustEndOnce(j, by, before)
	s.mustBeStored(j, w.broadcasts())
	s.mustBeTrue(j)
	if bad.hits.Load() == 0 {
		s.t.Error("the stale endpoint was never asked: nothing is tried here")
	}
}

func throttledEndpoints(s *site, by chain.Address, key secret.String) {
	one, two := s.front(0, refuses(2, 3)), s.front(0, refuses(1, 2))
	s.behind(one, two, s.front(headStart, nil), s.front(headStart, nil))
	before := s.nonce(by)
	s.sender([]secret.String{key})
	var said []job.Job
	for range 3 {
		said = append(said, s.orderJob(s.marketOrder(100), by))
	}
	s.say(said...)
	s.mustAllEndOnce(said, by, before)
	if one.hits.Load() == 0 || two.hits.Load() == 0 {
		s.t.Error("nobody was refused: nothing is tried here")
	}
}

// What was never broadcast is said to be mined, and final: it is not believed, and done when it really is.
func madeUpReceipt(s *site, by chain.Address, key secret.String) {
	bad := s.front(0, nil)
	s.behind(bad, s.front(headStart, nil), s.front(headStart, nil))
	before, w := s.nonce(by), &witness{}
	w.mute.Store(true)
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("the sender has signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	head := s.devnet.Node().Head()
	bad.become(invents(by, before, head.Number.Uint64(), head.Hash().Hex()))
	s.eventually("the lie is told, and the chain has gone on", func(context.Context) bool {
		return bad.hits.Load() > 0 && s.devnet.Node().Head().Number.Uint64() > head.Number.Uint64()+10
	})
	if early := s.results(j.ID); len(early) > 0 {
		s.t.Errorf("a receipt that nobody else has was believed: %+v", early)
	}
	if inFlight, err := sn.intents.InFlight(s.t.Context(), by); err != nil || len(inFlight) != 1 {
		s.t.Errorf("in flight: %+v, %v", inFlight, err)
	}
	bad.become(nil)
	w.mute.Store(false)
	s.mustEndOnce(j, by, before)
	s.mustBeStored(j, w.broadcasts())
	s.mustBeTrue(j)
}

// A node that does not follow the chain to its new branch goes on saying that ours was mined. That the number of its
// block is final says nothing of that block.
func orphanedReceipt(s *site, by chain.Address, key secret.String) {
	log := &sayings{said: map[string]json.RawMessage{}}
	bad := s.front(0, log.remember)
	s.behind(bad, s.front(headStart, nil), s.front(headStart, nil))
	before, w := s.nonce(by), &witness{}
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.devnet.Node().StallFinality()
	defer s.devnet.Resume()
	s.say(j)
	first := s.minedOf(sn, by, chain.Hash{})
	s.eventually("the slow endpoint has heard of it as well", func(context.Context) bool {
		return s.devnet.Node().Head().Number.Uint64() > first.Mined.Block.Number+5
	})
	bad.become(log.repeat)
	s.replace(first.Mined.Block.Number, branchOff{2, evmnode.Drop})
	s.devnet.Resume()
	s.mustEndOnce(j, by, before)
	s.mustBeStored(j, w.broadcasts())
	s.mustBeTrue(j)
	if bad.hits.Load() == 0 {
		s.t.Error("the stuck endpoint was never asked: nothing is tried here")
	}
}

// sayings are what an endpoint has last said of everything.
type sayings struct {
	mu   sync.Mutex
	said map[string]json.RawMessage
}

func (a *sayings) remember(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
	result, fault := f.ask(q)
	a.mu.Lock()
	a.said[fmt.Sprintf("%s %s", q.Method, q.Params)] = result
	a.mu.Unlock()
	f.answer(w, q, result, fault)
	return true
}

// repeat answers as before, and what was not asked before like the node.
func (a *sayings) repeat(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
	a.mu.Lock()
	result, known := a.said[fmt.Sprintf("%s %s", q.Method, q.Params)]
	a.mu.Unlock()
	if known && q.Method != "eth_sendRawTransaction" {
		f.answer(w, q, result, nil)
	}
	return known && q.Method != "eth_sendRawTransaction"
}

func silentForAWhile(s *site, by chain.Address, key secret.String) {
	only := s.front(0, nil)
	s.behind(only)
	before, w := s.nonce(by), &witness{}
	sn := s.sender([]secret.String{key}, w.on)
	first := s.orderJob(s.marketOrder(100), by)
	s.say(first)
	s.mustEndOnce(first, by, before)
	only.become(hangs(""))
	second := s.orderJob(s.marketOrder(100), by)
	s.say(second)
	s.eventually("the reason is given", func(context.Context) bool { return sn.notices.has("deadline exceeded") })
	only.become(nil)
	s.mustEndOnce(second, by, before+1)
}

// A call that runs out of gas is no revert: the node answers with an error of its own, however often it is asked. As
// many jobs with such calls as a batch takes keep none that is less urgent from being executed, and end like all that
// wait (TIER-11).
func unanswerable(t *testing.T, s *site, by chain.Address, key secret.String) {
	s.cfg.Sender.Batch, s.cfg.Sender.MaxJobAge = 2, 3*time.Second
	poison := []job.Job{s.orderJob(s.marketOrder(100), by), s.orderJob(s.marketOrder(100), by)}
	j := s.orderJob(s.marketOrder(100), by)
	s.behind(s.front(0, runsOutOfGas(poison[0].Key, poison[1].Key)))
	before := s.nonce(by)
	s.say(append(poison, j)...)
	s.sender([]secret.String{key})
	s.mustEndOnce(j, by, before)
	for _, p := range poison {
		if r := s.result(p.ID, 1); r.Outcome != job.Expired || !strings.Contains(r.Reason, "out of gas") {
			t.Errorf("result %+v", r)
		}
	}
}

// runsOutOfGas refuses to simulate calls that name one of these keys.
func runsOutOfGas(keys ...chain.Hash) spoiler {
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		about := func(key chain.Hash) bool {
			return strings.Contains(string(q.Params[0]), strings.TrimPrefix(key.Hex(), "0x"))
		}
		if q.Method != "eth_call" || !slices.ContainsFunc(keys, about) {
			return false
		}
		f.answer(w, q, nil, []byte(`{"code":-32000,"message":"err: out of gas (supplied gas 6000000)"}`))
		return true
	}
}

// nothing is the answer of a node that does not know what it is asked for.
func nothing(json.RawMessage) json.RawMessage { return nil }

// reverted makes a receipt say that the transaction failed.
func reverted(receipt json.RawMessage) json.RawMessage {
	return edited(receipt, map[string]string{"status": `"0x0"`, "logs": `[]`})
}

// silenced makes a receipt say that the transaction left no logs.
func silenced(receipt json.RawMessage) json.RawMessage {
	return edited(receipt, map[string]string{"logs": `[]`})
}

// edited replaces fields of an object; null stays null.
func edited(object json.RawMessage, fields map[string]string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil || all == nil {
		return object
	}
	for name, value := range fields {
		all[name] = json.RawMessage(value)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return object
	}
	return raw
}

// plus makes a number larger, or smaller, but not below nothing.
func plus(n int64) func(json.RawMessage) json.RawMessage {
	return func(number json.RawMessage) json.RawMessage {
		was, err := strconv.ParseInt(strings.Trim(string(number), `"`), 0, 64)
		if err != nil {
			return number
		}
		return fmt.Appendf(nil, `"%#x"`, max(0, was+n))
	}
}

// swallows accepts transactions and keeps them.
func swallows(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
	if q.Method != "eth_sendRawTransaction" {
		return false
	}
	var raw hexutil.Bytes
	if json.Unmarshal(q.Params[0], &raw) != nil {
		return false
	}
	f.answer(w, q, fmt.Appendf(nil, "%q", chain.Keccak256(raw).Hex()), nil)
	return true
}

// invents says of every transaction that it was mined and has failed, as the first of a block, and that its sender has
// spent its nonce for good.
func invents(by chain.Address, spent, block uint64, hash string) spoiler {
	at := map[string]string{
		"blockHash": fmt.Sprintf("%q", hash), "blockNumber": fmt.Sprintf(`"%#x"`, block), "transactionIndex": `"0x0"`,
		"from":  fmt.Sprintf("%q", by.Hex()),
		"nonce": fmt.Sprintf(`"%#x"`, spent), "status": `"0x0"`, "type": `"0x2"`, "gasUsed": `"0x5208"`,
		"cumulativeGasUsed": `"0x5208"`,
		"effectiveGasPrice": `"0x2faf080"`, "logs": `[]`, "logsBloom": fmt.Sprintf(`"0x%0512d"`, 0), "to": "null",
		"contractAddress": "null",
	}
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		switch q.Method {
		case "eth_getTransactionCount":
			f.answer(w, q, fmt.Appendf(nil, `"%#x"`, spent+1), nil)
		case "eth_getTransactionReceipt":
			receipt := maps.Clone(at)
			receipt["transactionHash"] = string(q.Params[0])
			f.answer(w, q, edited(json.RawMessage(`{}`), receipt), nil)
		default:
			return false
		}
		return true
	}
}
