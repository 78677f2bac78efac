package devnet

import (
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/exchange"
)

// cast is who takes part: each account has one job.
type cast struct {
	deployer, faucet, feedSigner, glvManager Account
	keepers                                  []Account
}

func newCast() (cast, error) {
	first, err := Accounts(0, FirstKeeper+Keepers)
	if err != nil {
		return cast{}, err
	}
	return cast{
		deployer: first[DeployerIndex], faucet: first[FaucetIndex], feedSigner: first[FeedSignerIndex],
		glvManager: first[glvManagerIndex],
		keepers:    first[FirstKeeper:],
	}, nil
}

// alloc gives a fortune to those who pay for gas; the feed signer only signs.
func (c cast) alloc() types.GenesisAlloc {
	alloc := types.GenesisAlloc{}
	for _, account := range append([]Account{c.deployer, c.faucet, c.glvManager}, c.keepers...) {
		coins := new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)
		alloc[account.Address] = types.Account{Balance: coins.Mul(coins, big.NewInt(1_000_000))}
	}
	return alloc
}

// exchangeKeepers holds every role: one keeper may do all jobs.
func (c cast) exchangeKeepers() []exchange.Keeper {
	keepers := make([]exchange.Keeper, 0, len(c.keepers))
	for _, account := range c.keepers {
		keepers = append(keepers, exchange.Keeper{
			Address: account.Address, Roles: exchange.KeeperRoles,
		})
	}
	return keepers
}

func (c cast) record() []RecordAccount {
	accounts := make([]RecordAccount, 0, 4+len(c.keepers))
	accounts = append(accounts, recordAccount("deployer", c.deployer), recordAccount("faucet", c.faucet),
		recordAccount("feed signer", c.feedSigner))
	for _, keeper := range c.keepers {
		accounts = append(accounts, recordAccount("keeper", keeper))
	}
	return append(accounts, recordAccount("GLV manager", c.glvManager))
}
