package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// One of three endpoints, the fastest, is wrong about a fact that costs money or cannot be taken back. Each job is
// executed once, at an honest price, and nothing is called final that is not.
func TestOneEndpointDecidesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	next := 0
	run := func(name string, test func(s *site, by chain.Address, key secret.String)) {
		by, key := s.keeper(next)
		next++
		t.Run(name, func(t *testing.T) { test(s.in(t), by, key) })
	}
	run("the gas price", oneSetsThePrice)
	run("the head", oneMakesUpTheHead)
	run("what is final", oneCallsTheHeadFinal)
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
	if err := s.devnet.Node().Mine(pricedBlocks); err != nil { // what the trader has paid is not what others pay
		s.t.Fatal(err)
	}
	s.sender([]secret.String{key})
	s.say(j)
	s.mustEndOnce(j, by, before)
	if r := s.result(j.ID, 1); r.GasPrice > 2*s.cfg.Sender.Fee.Floor {
		s.t.Errorf("%d wei per gas were paid where the others suggest no more than the floor of %d", r.GasPrice,
			s.cfg.Sender.Fee.Floor)
	}
	if bad.hits.Load() == 0 {
		s.t.Error("the bad endpoint was never asked: nothing is tried here")
	}
}

func oneMakesUpTheHead(s *site, by chain.Address, key secret.String) {
	bad := s.amongThree(aheadBy(100, 600))
	before := s.nonce(by)
	sn := s.sender([]secret.String{key})
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	s.mustEndOnce(j, by, before)
	s.mustBeTrue(j)
	if bad.hits.Load() == 0 {
		s.t.Error("the bad endpoint was never asked: nothing is tried here")
	}
	for _, e := range sn.Sender.node.Endpoints() {
		for _, x := range e.Excluded {
			if is := e.Source == evm.Source(bad.URL); is != (x.Reason == evm.ReasonAhead) {
				s.t.Errorf("%s is excluded: %+v", e.Source, x)
			}
		}
	}
}

// aheadBy is a node that makes up the newest block.
func aheadBy(blocks int64, seconds uint64) spoiler {
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		if q.Method != "eth_getBlockByNumber" || strings.Trim(string(q.Params[0]), `"`) != "latest" {
			return false
		}
		result, fault := f.ask(q)
		var h types.Header
		if fault != nil || json.Unmarshal(result, &h) != nil {
			return false
		}
		h.Number = new(big.Int).Add(h.Number, big.NewInt(blocks))
		h.Time += seconds
		f.answer(w, q, edited(result, map[string]string{
			"number": fmt.Sprintf(`"%#x"`, h.Number), "timestamp": fmt.Sprintf(`"%#x"`, h.Time),
			"milliTimestamp": fmt.Sprintf(`"%#x"`, h.Time*1000),
			"hash":           fmt.Sprintf("%q", h.Hash().Hex()), "transactions": "[]",
		}), nil)
		return true
	}
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
	s.devnet.Node().StallFinality()
	defer s.devnet.Resume()
	s.say(j)
	first := s.minedOf(sn, by, chain.Hash{})
	s.eventually("the slower endpoints have heard of it, and the chain has gone on", func(context.Context) bool {
		return s.devnet.Node().Head().Number.Uint64() > first.Mined.Block.Number+5
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
	s.devnet.Resume()
	s.mustEndOnce(j, by, before)
	s.mustBeTrue(j)
	if bad.hits.Load() == 0 {
		s.t.Error("the bad endpoint was never asked: nothing is tried here")
	}
}
