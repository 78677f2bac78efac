package exchange

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"sync/atomic"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/contracts"
)

// Client does what users do on a deployed exchange. Every method that sends returns as soon as the node has taken the
// transaction; Wait tells what became of it. It takes the nonce from the node at each call, so an account must not send
// two transactions at once, and a reorg or a restart of the node leaves nothing stale behind.
type Client struct {
	sender
	d atomic.Pointer[Deployment]
}

// NewClient checks that the backend is the chain of the deployment.
func NewClient(ctx context.Context, backend Backend, d *Deployment) (*Client, error) {
	s, err := newSender(ctx, backend)
	if err != nil {
		return nil, err
	}
	if s.chainID.Uint64() != d.ChainID {
		return nil, fmt.Errorf("the node is on chain %s, the exchange was deployed on chain %d", s.chainID, d.ChainID)
	}
	c := &Client{sender: s}
	c.Use(d)
	return c, nil
}

// Use goes on with another deployment of the exchange: after an upgrade its new handlers and router.
func (c *Client) Use(d *Deployment) { c.d.Store(d) }

// Deployment is what this client works on.
func (c *Client) Deployment() *Deployment {
	return c.d.Load()
}

// CreateOrder sends an order. An increase takes its collateral from the account, which must have approved the router.
func (c *Client) CreateOrder(ctx context.Context, key *ecdsa.PrivateKey, r OrderRequest) (common.Hash, error) {
	return c.submit(ctx, key, "creating an order", c.Deployment().orderCall(addressOf(key), r))
}

// CreateTwapOrder sends so many orders of the same terms in one transaction, each valid `interval` seconds after the
// one before. They share the collateral, and each has its own execution fee. Only v2.2c has them.
func (c *Client) CreateTwapOrder(ctx context.Context, key *ecdsa.PrivateKey, r OrderRequest,
	count, interval uint64) (common.Hash, error) {
	return c.submit(ctx, key, "creating orders", c.Deployment().twapCall(addressOf(key), r, count, interval))
}

// UpdateOrder replaces the terms of the account's waiting order, which thaws if it was frozen. What cannot change
// (kind, side, market, collateral and its amount, receiver) is ignored; an ExecutionFee is added to the order's own,
// and nil adds nothing.
func (c *Client) UpdateOrder(ctx context.Context, key *ecdsa.PrivateKey, order common.Hash,
	terms OrderRequest) (common.Hash, error) {
	return c.submit(ctx, key, "updating an order", c.Deployment().updateCall(order, terms))
}

// CancelOrder takes an order back: a waiting order at any time, a market order after the request expiration time.
func (c *Client) CancelOrder(ctx context.Context, key *ecdsa.PrivateKey, order common.Hash) (common.Hash, error) {
	return c.submit(ctx, key, "cancelling an order", c.Deployment().cancelCall("cancelOrder", order))
}

// CreateDeposit sends a deposit; the account must have approved the router for both tokens.
func (c *Client) CreateDeposit(ctx context.Context, key *ecdsa.PrivateKey, r DepositRequest) (common.Hash, error) {
	return c.submit(ctx, key, "creating a deposit", c.Deployment().depositCall(addressOf(key), r))
}

// CancelDeposit takes a deposit back after the request expiration time.
func (c *Client) CancelDeposit(ctx context.Context, key *ecdsa.PrivateKey, deposit common.Hash) (common.Hash, error) {
	return c.submit(ctx, key, "cancelling a deposit", c.Deployment().cancelCall("cancelDeposit", deposit))
}

// CreateWithdrawal sends a withdrawal; the account must have approved the router for the market token.
func (c *Client) CreateWithdrawal(ctx context.Context, key *ecdsa.PrivateKey, r WithdrawalRequest) (common.Hash,
	error) {
	return c.submit(ctx, key, "creating a withdrawal", c.Deployment().withdrawalCall(addressOf(key), r))
}

// SaveCallback names the contract that is called after each liquidation of the account in a market; the zero address
// names none.
func (c *Client) SaveCallback(ctx context.Context, key *ecdsa.PrivateKey, market, contract common.Address) (common.Hash,
	error) {
	data := pack(contracts.ExchangeRouter, "setSavedCallbackContract", market, contract)
	return c.submit(ctx, key, "saving a callback contract",
		call{to: &c.Deployment().Contracts.ExchangeRouter, data: data, gas: gasToConfigure})
}

// Mint gives the account tokens of the exchange, in smallest units.
func (c *Client) Mint(ctx context.Context, key *ecdsa.PrivateKey, token common.Address, amount *big.Int) (common.Hash,
	error) {
	data := pack(contracts.MintableToken, "mint", addressOf(key), amount)
	return c.submit(ctx, key, "minting", call{to: &token, data: data, gas: gasToConfigure})
}

// Approve lets the routers take any amount of a token, or of a market token, from the account.
func (c *Client) Approve(ctx context.Context, key *ecdsa.PrivateKey, token common.Address) (common.Hash, error) {
	data := pack(contracts.MintableToken, "approve", c.Deployment().Contracts.Router, maxUint256)
	return c.submit(ctx, key, "approving", call{to: &token, data: data, gas: gasToConfigure})
}

// Pay sends native coin.
func (c *Client) Pay(ctx context.Context, key *ecdsa.PrivateKey, to common.Address, wei *big.Int) (common.Hash, error) {
	return c.submit(ctx, key, "paying", call{to: &to, value: wei, gas: 100_000})
}

// SetUint changes a parameter through Config; the account needs CONFIG_KEEPER, which the deployer has. args are the
// key's.
func (c *Client) SetUint(ctx context.Context, key *ecdsa.PrivateKey, name string, value *big.Int,
	args ...any) (common.Hash, error) {
	data := pack(contracts.Config, "setUint", contracts.BaseKey(name), contracts.Encode(args...), value)
	return c.submit(ctx, key, "setting "+name,
		call{to: &c.Deployment().Contracts.Config, data: data, gas: gasToConfigure})
}

// SetBool turns a switch through Config; the account needs CONFIG_KEEPER, which the deployer has. args are the key's.
func (c *Client) SetBool(ctx context.Context, key *ecdsa.PrivateKey, name string, on bool, args ...any) (common.Hash,
	error) {
	data := pack(contracts.Config, "setBool", contracts.BaseKey(name), contracts.Encode(args...), on)
	return c.submit(ctx, key, "setting "+name,
		call{to: &c.Deployment().Contracts.Config, data: data, gas: gasToConfigure})
}

// SetSilently writes a bytes32 word into the DataStore without any event, as deployments do. The account must be the
// deployer, who gives itself the role for it and takes it away again. args are the key's.
func (c *Client) SetSilently(ctx context.Context, deployer *ecdsa.PrivateKey, name string, value common.Hash,
	args ...any) error {
	own, roles := addressOf(deployer), c.Deployment().Contracts.RoleStore
	for _, step := range []call{
		{to: &roles, data: pack(contracts.RoleStore, "grantRole", own, contracts.RoleKey("CONTROLLER")),
			gas: gasToConfigure},
		{to: &c.Deployment().Contracts.DataStore,
			data: pack(contracts.DataStore, "setBytes32", contracts.Key(name, args...), value), gas: gasToConfigure},
		{to: &roles, data: pack(contracts.RoleStore, "revokeRole", own, contracts.RoleKey("CONTROLLER")),
			gas: gasToConfigure},
	} {
		hash, err := c.submit(ctx, deployer, "setting "+name+" silently", step)
		if err == nil {
			_, err = c.Wait(ctx, hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Wait waits until the transaction is in a block. It returns the receipt with a *RevertError if the transaction failed.
// A later reorg may undo what it reports.
func (c *Client) Wait(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	receipt, err := c.receipt(ctx, hash)
	if err != nil {
		return nil, err
	}
	if receipt.Status == types.ReceiptStatusSuccessful {
		return receipt, nil
	}
	tx, _, err := c.backend.TransactionByHash(ctx, hash)
	if err != nil {
		return receipt, &RevertError{Hash: hash, Reason: "unknown"}
	}
	from, err := types.Sender(types.LatestSignerForChainID(c.chainID), tx)
	if err != nil {
		return receipt, fmt.Errorf("sender of %s: %w", hash, err)
	}
	return receipt, c.succeeded(ctx, from, call{to: tx.To(), data: tx.Data(), value: tx.Value(), gas: tx.Gas()},
		receipt)
}

// RequestKey finds the key of the request that a transaction created; event is "OrderCreated", "DepositCreated" or
// "WithdrawalCreated".
func (c *Client) RequestKey(receipt *types.Receipt, event string) (common.Hash, bool) {
	return eventTopic(c.Deployment().Contracts.EventEmitter, receipt, event)
}

// RequestKeys finds the keys of all requests of a kind that a transaction created, in their order.
func (c *Client) RequestKeys(receipt *types.Receipt, event string) []common.Hash {
	return eventTopics(c.Deployment().Contracts.EventEmitter, receipt, event)
}

// Uint reads a number from the DataStore at the head.
func (c *Client) Uint(ctx context.Context, name string, args ...any) (*big.Int, error) {
	return c.readUint(ctx, contracts.DataStore, c.Deployment().Contracts.DataStore, "getUint",
		contracts.Key(name, args...))
}

// Balance reads an account's balance of a token or market token, in smallest units, at the head.
func (c *Client) Balance(ctx context.Context, token, account common.Address) (*big.Int, error) {
	return c.readUint(ctx, contracts.MintableToken, token, "balanceOf", account)
}

// Approved reports whether the routers may take any amount of a token or market token from the account, at the head.
func (c *Client) Approved(ctx context.Context, token, account common.Address) (bool, error) {
	allowance, err := c.readUint(ctx, contracts.MintableToken, token, "allowance", account,
		c.Deployment().Contracts.Router)
	if err != nil {
		return false, err
	}
	return allowance.Cmp(maxUint256) == 0, nil
}

// NativeBalance reads an account's native coin in wei, at the head.
func (c *Client) NativeBalance(ctx context.Context, account common.Address) (*big.Int, error) {
	balance, err := c.backend.BalanceAt(ctx, account, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the balance of %s: %w", account, err)
	}
	return balance, nil
}

// Position is an open position, as the contracts keep it: sizes in USD with 30 decimals and in smallest units of the
// index token, collateral in smallest units, times in seconds.
type Position struct {
	Account         common.Address
	Market          common.Address
	CollateralToken common.Address
	IsLong          bool

	SizeInUsd, SizeInTokens, CollateralAmount, IncreasedAtTime, DecreasedAtTime *big.Int
	// FundingFeeAmountPerSize is its side's when it last paid.
	FundingFeeAmountPerSize *big.Int
}

// Position reads a position at the head. It reports false if there is none.
func (c *Client) Position(ctx context.Context, account, market, collateral common.Address, isLong bool) (Position, bool,
	error) {
	key := contracts.PositionKey(account, market, collateral, isLong)
	var p Position
	out, err := c.read(ctx, contracts.PositionBook, c.Deployment().Contracts.PositionBook, "getPosition", key)
	if err != nil {
		return p, false, err
	}
	//nolint:forcetypeassert // of the type asked for, or it has panicked
	p = *abi.ConvertType(out[0], new(Position)).(*Position)
	return p, p.SizeInUsd.Sign() > 0, nil
}

// readUint calls a method that returns one number.
func (c *Client) readUint(ctx context.Context, name contracts.Name, at common.Address, method string,
	args ...any) (*big.Int, error) {
	out, err := c.read(ctx, name, at, method, args...)
	if err != nil {
		return nil, err
	}
	number, ok := out[0].(*big.Int)
	if !ok {
		return nil, fmt.Errorf("answer of %s.%s: a %T, want a number", name, method, out[0])
	}
	return number, nil
}

func (c *Client) read(ctx context.Context, name contracts.Name, at common.Address, method string, args ...any) ([]any,
	error) {
	result, err := c.backend.CallContract(ctx, ethereum.CallMsg{To: &at, Data: pack(name, method, args...)}, nil)
	if err != nil {
		return nil, fmt.Errorf("calling %s.%s: %w", name, method, err)
	}
	out, err := contracts.Get(name).ABI.Unpack(method, result)
	if err != nil {
		return nil, fmt.Errorf("answer of %s.%s: %w", name, method, err)
	}
	return out, nil
}

func (c *Client) submit(ctx context.Context, key *ecdsa.PrivateKey, what string, request call) (common.Hash, error) {
	nonce, err := c.backend.PendingNonceAt(ctx, addressOf(key))
	if err != nil {
		return common.Hash{}, fmt.Errorf("%s: reading the nonce: %w", what, err)
	}
	hash, err := c.send(ctx, key, nonce, request)
	if err != nil {
		return common.Hash{}, fmt.Errorf("%s: %w", what, err)
	}
	return hash, nil
}
