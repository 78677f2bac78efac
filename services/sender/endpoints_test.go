package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// headStart is how much earlier the bad endpoint answers than the good ones, so that a sender asks it first.
const headStart = 100 * time.Millisecond

// TestEndpoints: one of a sender's three endpoints is stale, lies or hangs, and answers before the good ones. Each job
// is done once all the same, at an honest price, its result says what the chain says, and nothing is called final that
// is not. Every other lie, told to whole processes, is in test/liars.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	next := 0
	run := func(name string, test func(s *site, by chain.Address, key secret.String)) {
		by, key := s.keeper(next)
		next++
		t.Run(name, func(t *testing.T) { test(s.in(t), by, key) })
	}
	for _, c := range []struct {
		name  string
		spoil spoiler
		good  time.Duration // how much later the good ones answer
	}{
		{"one hangs", hangs, 0},
		{"one says that every call is reverted", says(`{"code":3,"message":"execution reverted","data":"0x"}`),
			headStart},
		{"one says that ours were reverted", changes("eth_getTransactionReceipt", reverted), headStart},
		{"one says that more nonces were spent", changes("eth_getTransactionCount", plusOne), headStart},
	} {
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
			bad.mustHaveSpoilt(s)
		})
	}
	run("one is stale", staleEndpoint)
	run("one makes up a receipt", madeUpReceipt)
	run("one sets the price", oneSetsThePrice)
	run("one calls the head final", oneCallsTheHeadFinal)
}

// mustHaveSpoilt demands that an endpoint had a chance to do harm.
func (f *front) mustHaveSpoilt(s *site) {
	s.t.Helper()
	if f.hits.Load() == 0 {
		s.t.Error("the bad endpoint was never asked: nothing is tried here")
	}
}

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
	t.Parallel()
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
		if err := s.Shock("WETH", -1500); err != nil || !known {
			t.Fatalf("a report was there: %t, %v", known, err)
		}
		s.eventually("reports show it", func(context.Context) bool {
			now, _ := sn.quotes.Latest(weth)
			return now.Max.Less(was.Min.MulDiv(chain.U64(9), chain.U64(10)))
		})
		spoilt := only.hits.Load()
		only.become(says(`{"code":3,"message":"execution reverted","data":"0x"}`))
		j.DueSinceMs = uint64(time.Now().UnixMilli())
		s.say(j)
		s.eventually("it was asked at several heads", func(context.Context) bool { return only.hits.Load() > spoilt+6 })
		only.become(nil)
		well := s.Node().Head().Number.Uint64()
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
	bad := s.amongThree(nil)
	before, w := s.nonce(by), &witness{}
	bad.become(stale(s.Node().Head().Number.Uint64()))
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.sender([]secret.String{key}, w.on)
	s.mustEndOnce(j, by, before)
	s.mustBeStored(j, w.broadcasts())
	s.mustBeTrue(j)
	bad.mustHaveSpoilt(s)
}

// What was never broadcast is said to be mined, and final: it is not believed, and done when it really is.
func madeUpReceipt(s *site, by chain.Address, key secret.String) {
	bad := s.amongThree(nil)
	before, w := s.nonce(by), &witness{}
	w.mute.Store(true)
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.eventually("the sender has signed", func(context.Context) bool { return len(w.broadcasts()) > 0 })
	head := s.Node().Head()
	bad.become(invents(by, before, head.Number.Uint64(), head.Hash().Hex()))
	s.eventually("the lie is told, and the chain has gone on", func(context.Context) bool {
		return bad.hits.Load() > 0 && s.Node().Head().Number.Uint64() > head.Number.Uint64()+10
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

// reverted makes a receipt say that the transaction failed.
func reverted(receipt json.RawMessage) json.RawMessage {
	return edited(receipt, map[string]string{"status": `"0x0"`, "logs": `[]`})
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

// plusOne makes a number larger.
func plusOne(number json.RawMessage) json.RawMessage {
	was, err := strconv.ParseInt(strings.Trim(string(number), `"`), 0, 64)
	if err != nil {
		return number
	}
	return fmt.Appendf(nil, `"%#x"`, was+1)
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

// amongThree gives a sender one bad endpoint, which answers first, and two honest ones.
func (s *site) amongThree(spoil spoiler) (bad *front) {
	bad = s.front(0, spoil)
	s.behind(bad, s.front(headStart, nil), s.front(headStart, nil))
	return bad
}

// pricedBlocks is of how many blocks the devnet's node looks at what was paid.
const pricedBlocks = 20

func oneSetsThePrice(s *site, by chain.Address, key secret.String) {
	s.cfg.Sender.Fee = txm.DefaultPolicy()
	bad := s.amongThree(changes("eth_gasPrice",
		func(json.RawMessage) json.RawMessage { return json.RawMessage(`"0x174876e800"`) }))
	before, j := s.nonce(by), s.orderJob(s.marketOrder(100), by)
	if err := s.Node().Mine(pricedBlocks); err != nil { // what the trader has paid is not what others pay
		s.t.Fatal(err)
	}
	s.sender([]secret.String{key})
	s.say(j)
	s.mustEndOnce(j, by, before)
	if r := s.result(j.ID, 1); r.GasPrice > 2*s.cfg.Sender.Fee.Floor {
		s.t.Errorf("%d wei per gas were paid where the others suggest no more than the floor of %d", r.GasPrice,
			s.cfg.Sender.Fee.Floor)
	}
	bad.mustHaveSpoilt(s)
}

// callsHeadFinal is a node that says of its newest state that it is final.
func callsHeadFinal(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
	told := false
	for i, p := range q.Params {
		if strings.Trim(string(p), `"`) == "finalized" {
			q.Params[i], told = json.RawMessage(`"latest"`), true
		}
	}
	if told {
		result, fault := f.ask(q)
		f.answer(w, q, result, fault)
	}
	return told
}

// A transaction is in a block that one endpoint alone calls final, and that a reorg then replaces. Its number is not
// spent, and the job is done on the branch that stays.
func oneCallsTheHeadFinal(s *site, by chain.Address, key secret.String) {
	bad := s.amongThree(callsHeadFinal)
	before, w := s.nonce(by), &witness{}
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.Node().StallFinality()
	defer s.Resume()
	s.say(j)
	first := s.minedOf(sn, by, chain.Hash{})
	s.eventually("the slower endpoints have heard of it, and the chain has gone on", func(context.Context) bool {
		return s.Node().Head().Number.Uint64() > first.Mined.Block.Number+5
	})
	if early := s.results(j.ID); len(early) > 0 {
		s.t.Errorf("it ended because one endpoint calls its block final: %+v", early)
	}
	w.mute.Store(true)
	s.replace(first.Mined.Block.Number, branchOff{2, evmnode.Drop})
	bad.become(nil)
	s.eventually("the transaction has left the chain", func(context.Context) bool {
		_, known := s.receiptBlock(first.Mined.TxHash)
		return !known && s.nonce(by) == before
	})
	w.mute.Store(false)
	s.Resume()
	s.mustEndOnce(j, by, before)
	s.mustBeTrue(j)
	bad.mustHaveSpoilt(s)
}
