package chaos

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/exchange"
)

// executor executes what the devnet's traders ask for, so that positions, pools and open interest move. It sends
// without simulating: what fails is a transaction of a watched signer that leaves no log, which the keeper records too.
type executor struct {
	t        *testing.T
	d        *devnet.Devnet
	chain    *ethclient.Client
	key      *devnet.Account
	reporter *devnet.Account
	address  common.Address
	methods  map[common.Hash]method // by the event of the request
	next     uint64                 // the first block not looked at
	orders   int                    // whose execution was sent
}

type method struct {
	contract contracts.Name
	at       common.Address
	name     string
}

func newExecutor(t *testing.T, d *devnet.Devnet) *executor {
	t.Helper()
	accounts, err := devnet.Accounts(0, devnet.FirstKeeper+1)
	if err != nil {
		t.Fatal(err)
	}
	client := ethclient.NewClient(d.Node().Attach())
	t.Cleanup(client.Close)
	c := d.Deployment().Contracts
	return &executor{
		t: t, d: d, chain: client, key: &accounts[devnet.FirstKeeper], reporter: &accounts[devnet.FeedSignerIndex],
		address: accounts[devnet.FirstKeeper].Address,
		methods: map[common.Hash]method{
			crypto.Keccak256Hash([]byte("OrderCreated")): {contracts.OrderHandler, c.OrderHandler, "executeOrder"},
			crypto.Keccak256Hash([]byte("DepositCreated")): {contracts.DepositHandler, c.DepositHandler,
				"executeDeposit"},
			crypto.Keccak256Hash([]byte("WithdrawalCreated")): {contracts.WithdrawalHandler, c.WithdrawalHandler,
				"executeWithdrawal"},
		},
		next: d.Deployment().Block,
	}
}

// round executes the requests that have come since the last one, whichever can be. What a reorg takes back is not tried
// again.
func (x *executor) round() {
	x.t.Helper()
	ctx := x.t.Context()
	head := x.d.Node().Head()
	if head.Number.Uint64() < x.next {
		return
	}
	logs, err := x.chain.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(x.next), ToBlock: head.Number,
		Addresses: []common.Address{x.d.Deployment().Contracts.EventEmitter},
	})
	if err != nil {
		return // the chain has changed meanwhile
	}
	x.next = head.Number.Uint64() + 1
	reports := x.reports(head.Time)
	for _, l := range logs {
		if m, is := x.methods[l.Topics[1]]; is {
			x.send(ctx, m, l.Topics[2], reports)
		}
	}
}

// send is without an answer: the transaction may come too late, or the pool refuse it.
func (x *executor) send(ctx context.Context, m method, request common.Hash, reports exchange.OracleParams) {
	x.t.Helper()
	data, err := contracts.Get(m.contract).ABI.Pack(m.name, request, reports)
	if err != nil {
		x.t.Fatal(err)
	}
	nonce, err := x.chain.PendingNonceAt(ctx, x.address)
	if err != nil {
		return
	}
	const gas = 6_000_000
	chainID := new(big.Int).SetUint64(x.d.Deployment().ChainID)
	tx, err := types.SignNewTx(x.key.Key, types.LatestSignerForChainID(chainID), &types.LegacyTx{
		Nonce: nonce, GasPrice: big.NewInt(5e9), Gas: gas, To: &m.at, Data: data,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	if x.chain.SendTransaction(ctx, tx) == nil && m.contract == contracts.OrderHandler {
		x.orders++
	}
}

// reports are the present prices of all tokens as of a second.
func (x *executor) reports(second uint64) (params exchange.OracleParams) {
	d := x.d.Deployment()
	for _, token := range d.Tokens {
		low, high := x.d.Prices().Mark(token.Address)
		report := exchange.SignReport(x.reporter.Key, new(big.Int).SetUint64(d.ChainID), token.Address,
			exchange.Price{Min: low, Max: high}, second)
		params.Add(token.Address, d.Contracts.OracleProvider, report)
	}
	return params
}
