package traders

import (
	"context"
	"crypto/ecdsa"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/exchange"
)

var (
	// An account below lowFunds is paid up to full, in wei: 2 and 10 of the native coin, enough for some hundred
	// actions.
	lowFunds = new(big.Int).Mul(big.NewInt(2), big.NewInt(1e18))
	full     = new(big.Int).Mul(big.NewInt(10), big.NewInt(1e18))
)

// errNothingToDo ends an action that found no order, no position or no price to work on.
var errNothingToDo = errors.New("nothing to do")

// account is one trader. One goroutine at a time uses it.
type account struct {
	t       *Traders
	key     *ecdsa.PrivateKey
	address common.Address
	random  *rand.Rand
	log     zerolog.Logger
	// ready is false until the account is known to have what it needs, and again after a failure.
	ready bool
	// orders are the waiting orders this account has placed and not seen end, oldest first.
	orders []order
	// places are where this account may have a position: an order that would open it was sent.
	places map[place]bool
	// step is the next one of the tour of a provider of liquidity, waited how often it found nothing to do.
	step, waited int
	// stake is a winner's.
	stake stake
}

// order is what an account remembers of a waiting order.
type order struct {
	key     common.Hash
	request exchange.OrderRequest
}

// place identifies a position of an account.
type place struct {
	market     exchange.Market
	collateral common.Address
	isLong     bool
}

// newAccount derives an account's key from the seed and its number.
func newAccount(t *Traders, number uint64) (*account, error) {
	entropy := []byte("devnet trader")
	entropy = binary.BigEndian.AppendUint64(entropy, t.seed)
	entropy = binary.BigEndian.AppendUint64(entropy, number)
	key, err := crypto.ToECDSA(crypto.Keccak256(entropy))
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	address := crypto.PubkeyToAddress(key.PublicKey)
	return &account{
		t: t, key: key, address: address, random: rand.New(rand.NewPCG(t.seed, number+1)), places: map[place]bool{},
		log: t.deps.Log.With().Stringer("trader", address).Logger(),
	}, nil
}

// act does one thing within the time allowed and logs what came of it.
func (a *account) act(ctx context.Context, do action) {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	err := a.prepare(ctx)
	if err == nil {
		err = do.run(a, ctx)
	}
	switch {
	case err == nil:
		a.log.Debug().Str("action", do.name).Msg("done")
	case errors.Is(err, errNothingToDo), errors.Is(err, context.Canceled):
		a.log.Debug().Err(err).Str("action", do.name).Msg("not done")
	default:
		a.ready = false
		a.log.Warn().Err(err).Str("action", do.name).Msg("action failed and is dropped")
	}
}

// prepare gives the account native coin, tokens and approvals where it lacks them.
func (a *account) prepare(ctx context.Context) error {
	if err := a.fund(ctx); err != nil {
		return err
	}
	if a.ready {
		return nil
	}
	d := a.client().Deployment()
	for _, token := range d.Tokens {
		if err := a.stock(ctx, token); err != nil {
			return err
		}
		if err := a.approve(ctx, token.Address); err != nil {
			return err
		}
	}
	for _, m := range d.Markets {
		if err := a.approve(ctx, m.Address); err != nil {
			return err
		}
	}
	for _, g := range d.Glvs {
		if err := a.approve(ctx, g.Address); err != nil {
			return err
		}
	}
	a.ready = true
	return nil
}

// fund has the faucet pay the account up; one account at a time, because the faucet has one nonce.
func (a *account) fund(ctx context.Context) error {
	balance, err := a.client().NativeBalance(ctx, a.address)
	if err != nil || balance.Cmp(lowFunds) >= 0 {
		return err
	}
	a.t.faucet.Lock()
	defer a.t.faucet.Unlock()
	hash, err := a.client().Pay(ctx, a.t.deps.Faucet, a.address, new(big.Int).Sub(full, balance))
	return a.wait(ctx, hash, err)
}

// stock mints a thousand million tokens to an account that has less than half of that.
func (a *account) stock(ctx context.Context, token exchange.Token) error {
	plenty := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(token.Decimals)+9), nil)
	balance, err := a.client().Balance(ctx, token.Address, a.address)
	if err != nil || balance.Cmp(new(big.Int).Rsh(plenty, 1)) >= 0 {
		return err
	}
	hash, err := a.client().Mint(ctx, a.key, token.Address, plenty)
	return a.wait(ctx, hash, err)
}

func (a *account) approve(ctx context.Context, token common.Address) error {
	approved, err := a.client().Approved(ctx, token, a.address)
	if err != nil || approved {
		return err
	}
	hash, err := a.client().Approve(ctx, a.key, token)
	return a.wait(ctx, hash, err)
}

// wait takes the outcome of sending a transaction and waits until it has succeeded.
func (a *account) wait(ctx context.Context, hash common.Hash, err error) error {
	if err != nil {
		return err
	}
	_, err = a.client().Wait(ctx, hash)
	return err
}

// positions reads the account's open positions.
func (a *account) positions(ctx context.Context) (map[place]exchange.Position, error) {
	open := map[place]exchange.Position{}
	for where := range a.places {
		p, found, err := a.client().Position(ctx, a.address, where.market.Address, where.collateral, where.isLong)
		if err != nil {
			return nil, err
		}
		if found {
			open[where] = p
		}
	}
	return open, nil
}

func (a *account) client() *exchange.Client {
	return a.t.deps.Client
}

// between draws from [low, high].
func (a *account) between(low, high int64) int64 {
	return low + a.random.Int64N(high-low+1)
}

func (a *account) flip() bool {
	return a.random.IntN(2) == 0
}
