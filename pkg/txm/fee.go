package txm

import (
	"errors"
	"fmt"
	"time"
)

// Gwei in wei.
const Gwei = 1_000_000_000

// Policy is what a keeper pays, and how long it waits. Start from [DefaultPolicy].
type Policy struct {
	// Floor and Cap are wei per gas.
	Floor uint64 `toml:"min_price" help:"least price that is offered, in wei per gas"`
	Cap   uint64 `toml:"max_price" help:"highest price that is offered, in wei per gas"`
	// Resend is after how long an unmined transaction is broadcast again.
	Resend time.Duration `toml:"resend" help:"after how long an unmined transaction is broadcast again"`
	// Doubt is how long a nonce must have been spent in finalized blocks, with no receipt of ours to be found, before that is believed.
	Doubt time.Duration `toml:"doubt" help:"how long a nonce must have been spent without a receipt of ours before somebody else is suspected"`
}

// DefaultPolicy offers BSC's practical floor of 0.05 gwei, at most 5 gwei, and broadcasts again after about two blocks.
func DefaultPolicy() Policy {
	return Policy{Floor: Gwei / 20, Cap: 5 * Gwei, Resend: time.Second, Doubt: 30 * time.Second}
}

// Validate names what cannot work.
func (p Policy) Validate() error {
	var problems []error
	if p.Floor == 0 {
		problems = append(problems, fmt.Errorf("min_price: is 0 (BSC takes nothing below %d wei)", Gwei/20))
	}
	if p.Cap < p.Floor {
		problems = append(problems, fmt.Errorf("max_price: %d is below min_price %d", p.Cap, p.Floor))
	}
	if p.Resend <= 0 {
		problems = append(problems, fmt.Errorf("resend: %s is not positive", p.Resend))
	}
	if p.Doubt <= 0 {
		problems = append(problems, fmt.Errorf("doubt: %s is not positive", p.Doubt))
	}
	return errors.Join(problems...)
}

// Price is what the first attempt offers, in wei per gas, as tip and as cap: what the node suggests, within the floor and the cap.
func (p Policy) Price(suggested uint64) uint64 { return min(max(p.Floor, suggested), p.Cap) }
