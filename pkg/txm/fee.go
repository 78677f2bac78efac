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
	// Floor is the least price that is offered.
	Floor uint64
	// Cap is the most.
	Cap uint64
	// Resend is after how long an unmined transaction is broadcast again.
	Resend time.Duration
	// Doubt is how long a nonce must have been spent in finalized blocks, with no receipt of ours to be found, before that is believed.
	Doubt time.Duration
}

// DefaultPolicy offers BSC's practical floor of 0.05 gwei, at most 5 gwei, and broadcasts again after about two blocks.
func DefaultPolicy() Policy {
	return Policy{Floor: Gwei / 20, Cap: 5 * Gwei, Resend: time.Second, Doubt: 30 * time.Second}
}

// Validate names what cannot work.
func (p Policy) Validate() error {
	var problems []error
	if p.Floor == 0 || p.Floor > p.Cap {
		problems = append(problems, fmt.Errorf("price: a floor of %d wei and a cap of %d make no range", p.Floor, p.Cap))
	}
	if p.Resend <= 0 || p.Doubt <= 0 {
		problems = append(problems, fmt.Errorf("resend %s, doubt %s: both must be positive", p.Resend, p.Doubt))
	}
	return errors.Join(problems...)
}

// Price is what the first attempt offers, in wei per gas, as tip and as cap: what the node suggests, within the floor and the cap.
func (p Policy) Price(suggested uint64) uint64 { return min(max(p.Floor, suggested), p.Cap) }
