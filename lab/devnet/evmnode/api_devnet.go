package evmnode

import (
	"context"
	"errors"
	"time"
)

// devnetAPI has the devnet methods, which no real node has: forks and stalls. Faults never hit these methods.
type devnetAPI struct{ n *Node }

type reorgArgs struct {
	Depth uint64    `json:"depth"`
	Style ForkStyle `json:"style"` // Default Replay.
	Final bool      `json:"final"` // Whether final blocks may be replaced, which no honest chain does.
}

// Reorg is Node.ReorgUnfinalized, or Node.Reorg when final blocks may be replaced.
func (a devnetAPI) Reorg(ctx context.Context, args reorgArgs) (Fork, error) {
	if args.Final {
		return a.n.Reorg(args.Depth, orDefault(args.Style, Replay))
	}
	return a.n.ReorgUnfinalized(ctx, args.Depth, orDefault(args.Style, Replay))
}

type stallArgs struct {
	Seconds float64 `json:"seconds"`
}

// Stall is Node.Stall.
func (a devnetAPI) Stall(args stallArgs) (bool, error) {
	if args.Seconds < 0 {
		return false, errors.New("cannot stall for a negative time")
	}
	a.n.Stall(time.Duration(args.Seconds * float64(time.Second)))
	return true, nil
}

// Resume is Node.Resume.
func (a devnetAPI) Resume() bool {
	a.n.Resume()
	return true
}

// StallFinality is Node.StallFinality.
func (a devnetAPI) StallFinality() bool {
	a.n.StallFinality()
	return true
}

type laneArgs struct {
	Percent uint64 `json:"percent"`
}

// PaymentLane is Node.SetPaymentLane: the fork under way.
func (a devnetAPI) PaymentLane(args laneArgs) (bool, error) {
	return true, a.n.SetPaymentLane(args.Percent)
}
