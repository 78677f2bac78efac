package traders

import (
	"context"
	"errors"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/perp"
)

// keeper executes whatever can be executed, one round at a time. It asks the node by simulation, which is all its
// cleverness. A job that a reorg takes away from it is lost.
type keeper struct {
	*stage
	d       *exchange.Deployment
	decoder *gmx.Decoder
	names   map[common.Hash]string
	next    uint64
	// requests by their key, and positions that may have to be liquidated by theirs.
	requests, positions map[common.Hash]job
	open                map[common.Hash]perp.Position
	rounds              int
}

// job is a call that may succeed now or later, with prices to be filled in.
type job struct {
	to   common.Address
	data func(exchange.OracleParams) ([]byte, error)
}

func newKeeper(s *stage, d *exchange.Deployment) *keeper {
	k := &keeper{
		stage: s, d: d, decoder: gmx.NewDecoder(chain.Address(d.Contracts.EventEmitter)),
		names: map[common.Hash]string{},
		next:  d.Block, requests: map[common.Hash]job{}, positions: map[common.Hash]job{},
		open: map[common.Hash]perp.Position{},
	}
	for _, name := range []string{
		"OrderCreated", "OrderUpdated", "OrderExecuted", "OrderCancelled", "OrderFrozen", "PositionIncrease",
		"PositionDecrease",
		"SwapInfo", "DepositCreated", "DepositExecuted", "WithdrawalCreated", "WithdrawalExecuted", "ShiftCreated",
		"ShiftExecuted", "GlvDepositCreated",
		"GlvDepositExecuted", "GlvWithdrawalCreated", "GlvWithdrawalExecuted", "GlvShiftCreated", "GlvShiftExecuted",
	} {
		k.names[crypto.Keccak256Hash([]byte(name))] = name
	}
	return k
}

// round learns from new blocks and executes what can be executed. What the node refuses is tried again in the next
// round.
func (k *keeper) round() {
	ctx := context.Background()
	head, err := k.chain.HeaderByNumber(ctx, nil)
	if err != nil || head.Number.Uint64() < k.next {
		return
	}
	logs, err := k.chain.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(k.next), ToBlock: head.Number,
		Addresses: []common.Address{k.d.Contracts.EventEmitter},
	})
	if err != nil {
		return
	}
	k.next = head.Number.Uint64() + 1
	for _, log := range logs {
		k.learn(log)
	}
	for len(logs) > 0 {
		end := slices.IndexFunc(logs, func(l types.Log) bool { return l.TxHash != logs[0].TxHash })
		if end < 0 {
			end = len(logs)
		}
		k.learnPositions(logs[:end])
		logs = logs[end:]
	}
	params := k.reports(head.Time)
	k.trySome(ctx, k.positions, params)
	k.trySome(ctx, k.requests, params)
	k.deleverage(ctx, params)
}

func (k *keeper) learn(log types.Log) {
	name := k.names[log.Topics[1]]
	k.count(name, 1)
	c := k.d.Contracts
	switch name {
	case "OrderCreated":
		k.requests[log.Topics[2]] = request(contracts.OrderHandler, c.OrderHandler, "executeOrder", log.Topics[2])
	case "DepositCreated":
		k.requests[log.Topics[2]] = request(contracts.DepositHandler, c.DepositHandler, "executeDeposit", log.Topics[2])
	case "WithdrawalCreated":
		k.requests[log.Topics[2]] = request(contracts.WithdrawalHandler, c.WithdrawalHandler, "executeWithdrawal",
			log.Topics[2])
	case "ShiftCreated":
		k.requests[log.Topics[2]] = request(contracts.ShiftHandler, c.ShiftHandler, "executeShift", log.Topics[2])
	case "GlvDepositCreated":
		k.requests[log.Topics[2]] = request(contracts.GlvDepositHandler, c.GlvDepositHandler, "executeGlvDeposit",
			log.Topics[2])
	case "GlvWithdrawalCreated":
		k.requests[log.Topics[2]] = request(contracts.GlvWithdrawalHandler, c.GlvWithdrawalHandler,
			"executeGlvWithdrawal", log.Topics[2])
	case "GlvShiftCreated":
		k.requests[log.Topics[2]] = request(contracts.GlvShiftHandler, c.GlvShiftHandler, "executeGlvShift",
			log.Topics[2])
	}
}

// learnPositions remembers every open position of a transaction as a liquidation that may succeed.
func (k *keeper) learnPositions(logs []types.Log) {
	transaction := make([]chain.Log, len(logs))
	for i, log := range logs {
		transaction[i] = chain.Log{
			Address: chain.Address(log.Address), Data: log.Data, Block: log.BlockNumber, TxHash: chain.Hash(log.TxHash),
			Index: uint32(log.Index),
		}
		for _, topic := range log.Topics {
			transaction[i].Topics = append(transaction[i].Topics, chain.Hash(topic))
		}
	}
	events, err := k.decoder.Transaction(transaction, 0)
	if err != nil {
		k.t.Errorf("decoding a transaction: %v", err)
		return
	}
	for _, e := range events {
		switch e := e.(type) {
		case perp.PositionIncreased:
			p := e.Position
			k.open[common.Hash(p.PositionKey)] = p
			k.positions[common.Hash(p.PositionKey)] = request(contracts.LiquidationHandler,
				k.d.Contracts.LiquidationHandler, "executeLiquidation",
				common.Address(p.Account), common.Address(p.Market), common.Address(p.CollateralToken), p.IsLong)
		case perp.OrderEnded:
			if e.SecondaryOrderType == perp.U64(1) {
				k.count("deleveraging", 1)
			}
		case perp.PositionDecreased:
			k.open[common.Hash(e.Position.PositionKey)] = e.Position
			if e.OrderType == perp.Liquidation {
				k.count("liquidation", 1)
			}
		}
	}
}

func request(name contracts.Name, to common.Address, method string, args ...any) job {
	return job{to: to, data: func(params exchange.OracleParams) ([]byte, error) {
		return contracts.Get(name).ABI.Pack(method, append(slices.Clip(args), params)...)
	}}
}

// deleverage keeps the venue's word on the longs of the small market up to date, and closes a tenth of some position of
// it while it may.
func (k *keeper) deleverage(ctx context.Context, params exchange.OracleParams) {
	m, err := k.d.MarketByName("SOL/USD")
	if err != nil {
		k.t.Error(err)
		return
	}
	handler := k.d.Contracts.AdlHandler
	for _, p := range k.open {
		if p.Market == chain.Address(m.Address) && p.IsLong {
			k.done(ctx, request(contracts.AdlHandler, handler, "executeAdl", common.Address(p.Account), m.Address,
				common.Address(p.CollateralToken),
				true, p.SizeInUsd.Div(perp.U64(10)).Big()), params)
		}
	}
	if k.rounds++; k.rounds%4 == 0 {
		k.done(ctx, request(contracts.AdlHandler, handler, "updateAdlState", m.Address, true), params)
	}
}

// trySome tries a few jobs: a simulation takes long under the race detector, and a map yields its entries in random
// order.
func (k *keeper) trySome(ctx context.Context, jobs map[common.Hash]job, params exchange.OracleParams) {
	tries := 0
	for key, j := range jobs {
		if tries++; tries > 4 {
			return
		}
		if k.done(ctx, j, params) {
			delete(jobs, key)
		}
	}
}

// done simulates a job and sends it if it would succeed. It reports true for a job that was done before.
func (k *keeper) done(ctx context.Context, j job, params exchange.OracleParams) bool {
	data, err := j.data(params)
	if err != nil {
		k.t.Errorf("packing a job: %v", err)
		return true
	}
	from := addressOf(k.keys["keeper"])
	_, err = k.chain.CallContract(ctx, ethereum.CallMsg{From: from, To: &j.to, Gas: keeperGas, Data: data}, nil)
	if err != nil {
		switch revertName(err) {
		case "EmptyOrder", "EmptyDeposit", "EmptyWithdrawal", "EmptyPosition", "EmptyShift", "GlvDepositNotFound",
			"GlvWithdrawalNotFound", "GlvShiftNotFound":
			return true
		}
		return false
	}
	nonce, err := k.chain.PendingNonceAt(ctx, from)
	if err != nil {
		return false
	}
	tx, err := types.SignNewTx(k.keys["keeper"], types.LatestSignerForChainID(big.NewInt(int64(k.d.ChainID))),
		&types.LegacyTx{
			Nonce: nonce, GasPrice: big.NewInt(5e9), Gas: keeperGas, To: &j.to, Data: data,
		})
	if err != nil {
		k.t.Errorf("signing: %v", err)
		return true
	}
	// The node may be down, or mine what makes this fail: the job stays until it is found done.
	_ = k.chain.SendTransaction(ctx, tx)
	return false
}

const keeperGas = 14_000_000

// reports are the present prices of all tokens as of a second.
func (k *keeper) reports(second uint64) exchange.OracleParams {
	var params exchange.OracleParams
	for _, token := range k.d.Tokens {
		low, high := k.marks.Mark(token.Address)
		report := exchange.SignReport(k.keys["reporter"], new(big.Int).SetUint64(k.d.ChainID), token.Address,
			exchange.Price{Min: low, Max: high}, second)
		params.Add(token.Address, k.d.Contracts.OracleProvider, report)
	}
	return params
}

func revertName(err error) string {
	var data rpc.DataError
	if !errors.As(err, &data) {
		return ""
	}
	text, _ := data.ErrorData().(string)
	name, _, _ := contracts.RevertReason(common.FromHex(text))
	return name
}
