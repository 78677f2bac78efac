package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/secret"
)

// keeps takes the transactions of an account, and keeps them to itself.
func keeps(of chain.Address, chainID uint64) spoiler {
	return sentBy(of, chainID, func(f *front, w http.ResponseWriter, q query, raw []byte) {
		f.answer(w, q, fmt.Appendf(nil, "%q", chain.Keccak256(raw).Hex()), nil)
	})
}

// sentBy answers to the transactions of an account.
func sentBy(of chain.Address, chainID uint64, answer func(*front, http.ResponseWriter, query, []byte)) spoiler {
	format := types.LatestSignerForChainID(new(big.Int).SetUint64(chainID))
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		var raw hexutil.Bytes
		var tx types.Transaction
		if q.Method != "eth_sendRawTransaction" || json.Unmarshal(q.Params[0], &raw) != nil ||
			tx.UnmarshalBinary(raw) != nil {
			return false
		}
		if from, err := types.Sender(format, &tx); err != nil || from != common.Address(of) {
			return false
		}
		answer(f, w, q, raw)
		return true
	}
}

// LIQ-6: all places of the signer of orders are taken by what does not land, and more of it waits. The liquidation of
// the same account has a signer of its own, and is done meanwhile.
func TestLiquidationsHaveASignerOfTheirOwn(t *testing.T) {
	s := newSite(t)
	s.cfg.Sender.MaxInFlight, s.cfg.Sender.Reserved, s.cfg.Sender.Volatile.MaxInFlight = 2, 0, 2
	first, firstKey := s.keeper(0)
	second, secondKey := s.keeper(1)
	all, account := []chain.Address{first, second}, chain.Address(s.trader.Address)
	// without lanes the liquidation would be the order signer's
	orders := job.Route(account, all)
	liquidations := all[0]
	if liquidations == orders {
		liquidations = all[1]
	}
	signers := job.NewSigners(all, map[chain.Address][]job.Lane{
		liquidations: {job.LiquidationLane}, orders: {job.OrderLane, job.MaintenanceLane}})
	by := func(k job.Kind) chain.Address { return signers.Route(k, account) }
	stuck := s.front(0, nil)
	s.behind(stuck)
	s.sender([]secret.String{firstKey, secondKey})
	opening := s.orderJob(s.marketOrder(1000), by(job.Order))
	s.say(opening)
	s.result(opening.ID, 1)
	stuck.become(keeps(orders, s.cfg.Keeper.ChainID))
	var waiting []job.Job
	short := func(r *exchange.OrderRequest) { r.IsLong = false }
	for range 2 * s.cfg.Sender.MaxInFlight {
		waiting = append(waiting, s.orderJob(s.marketOrder(10, short), by(job.Order)))
	}
	s.say(waiting...)
	full := func(ctx context.Context) bool {
		pending, err := txstore.NewIntents(s.db).Pending(ctx, orders)
		depth, failed := txstore.NewIntents(s.db).Depth(ctx, orders)
		return err == nil && failed == nil && pending == s.cfg.Sender.MaxInFlight && depth == len(waiting)-pending
	}
	s.eventually("the places for orders are taken", full)
	if err := s.devnet.Shock("WETH", -1500); err != nil {
		t.Fatal(err)
	}
	liquidation, asked := s.liquidationJob(by(job.Liquidation)), 0
	s.eventually("the position is liquidated", func(ctx context.Context) bool {
		if asked++; asked%25 == 1 { // as the planner's sweep does
			s.say(liquidation)
		}
		_, open, err := s.venue.Position(ctx, s.trader.Address, s.market.Address, s.market.Short, true)
		return err == nil && !open
	})
	if !full(t.Context()) {
		t.Error("the places for orders are no longer taken: nothing was tried here")
	}
}
