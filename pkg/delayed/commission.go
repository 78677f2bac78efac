package delayed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/check"
)

// CommissionConfig is the [commission] section: whose signers earn for whom.
type CommissionConfig struct {
	Hold   time.Duration `toml:"hold" help:"how long a booked fee stays frozen before it is released to the agent"`
	Agents []Agent       `toml:"agents" help:"who is paid for which signers; without any, no fee is booked"`
}

// Agent is a wallet that is paid for some signers.
type Agent struct {
	Agent   string          `toml:"agent" help:"name of the wallet"`
	Signers []chain.Address `toml:"signers" help:"signers whose execution fees are the agent's"`
}

// DefaultCommissionConfig holds fees for a day and pays nobody.
func DefaultCommissionConfig() CommissionConfig { return CommissionConfig{Hold: 24 * time.Hour} }

// Validate names every setting that cannot work.
func (c CommissionConfig) Validate() error {
	problems := []error{check.Refuse(c.Hold < 0 || c.Hold > 365*24*time.Hour, "hold: %s is not between 0 and a year",
		c.Hold)}
	owner := map[chain.Address]string{}
	for i, a := range c.Agents {
		problems = append(problems, check.Refuse(a.Agent == "" || len(a.Signers) == 0,
			"agents[%d]: agent and signers are needed (agent = \"name\", signers = [\"0x…\"])", i))
		for _, s := range a.Signers {
			other, taken := owner[s]
			problems = append(problems, check.Refuse(taken, "agents[%d]: signer %s is %s's already", i, s, other))
			owner[s] = a.Agent
		}
	}
	return errors.Join(problems...)
}

// Owners returns the agent of each signer.
func (c CommissionConfig) Owners() map[chain.Address]string {
	owners := map[chain.Address]string{}
	for _, a := range c.Agents {
		for _, s := range a.Signers {
			owners[s] = a.Agent
		}
	}
	return owners
}

// Release is the payload of a commission's release.
type Release struct {
	Agent  string     `json:"agent"`
	Amount chain.Uint `json:"amount"` // wei
}

// Commissions releases booked fees (DLY-2). The key of a job is the identity of the fee's log.
type Commissions struct{}

// CommissionRelease is the name of the kind.
const CommissionRelease = "commission_release"

// Name implements Kind.
func (Commissions) Name() string { return CommissionRelease }

// Do implements Kind.
func (Commissions) Do(ctx context.Context, tx Tx, j Job) (any, error) {
	var r Release
	if err := j.Read(&r); err != nil {
		return nil, err
	}
	if r.Agent == "" || r.Amount.IsZero() {
		return nil, Anomalyf("a release of %s wei to agent %q", r.Amount, r.Agent)
	}
	return r, tx.Release(ctx, r.Agent, r.Amount, j.Key)
}

// Booking is a request to book fees.
type Booking struct {
	ChainID uint64
	Owners  map[chain.Address]string
	Hold    time.Duration
	// From is the first block of Generation to look at: fees of blocks before are known to be booked. Of any other
	// generation all blocks are looked at, because it may hold what that one lacked.
	Generation int
	From       uint64
}

// Booked is the result of a booking.
type Booked struct {
	Fees int
	// Generation and Final are how far it looked: to this block of this generation. Final is 0 when it did not look,
	// because nothing is final or the state is halted. More says that there are final blocks above it.
	Generation int
	Final      uint64
	More       bool
}

// Books books the fees that are final, each once.
type Books interface {
	Book(ctx context.Context, b Booking) (Booked, error)
}

// Bookings is the source that books fees (DLY-2).
func Bookings(books Books, chainID uint64, c CommissionConfig) Source {
	b := Booking{ChainID: chainID, Owners: c.Owners(), Hold: c.Hold}
	return Source{Name: "fees", Feed: func(ctx context.Context) (int, error) {
		if len(b.Owners) == 0 {
			return 0, nil
		}
		booked, err := books.Book(ctx, b)
		switch {
		case err != nil:
			return booked.Fees, fmt.Errorf("booking fees: %w", err)
		case booked.Final == 0: // it has looked at nothing
			return 0, nil
		}
		b.Generation, b.From = booked.Generation, booked.next()
		return booked.Fees, nil
	}}
}

// next is the block from which on to look the next time.
func (b Booked) next() uint64 {
	if b.More {
		return b.Final + 1
	}
	// what is final may still be taken back, by a reorg that the operator accepts
	return b.Final - min(b.Final, chain.UndoHorizon)
}
