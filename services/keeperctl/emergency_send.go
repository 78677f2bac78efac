package keeperctl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/emergency"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/signer"
)

const (
	// sendPatience is for how long a call that was broadcast is looked for in blocks.
	sendPatience = 2 * time.Minute
	lookEvery    = 500 * time.Millisecond
)

// sendingNode is what it takes to send a call.
type sendingNode interface {
	NonceAt(ctx context.Context, account chain.Address, tag evm.Tag) (uint64, error)
	GasPrice(ctx context.Context) (uint64, error)
	SendRaw(ctx context.Context, raw []byte) error
	Receipt(ctx context.Context, tx chain.Hash) (*evm.Receipt, error)
}

// emergencySender sends the calls of an action with a key that is for nothing else (LIQ-15). It signs what is
// configured and nothing else.
type emergencySender struct {
	key     signer.Signer
	chainID uint64
	node    func() sendingNode // there once an action was planned
}

// sender is the emergency signer's, or nil where calls are handed over.
func (d emergencyDesk) sender(m *emergencyMeans) (emergency.Sender, error) {
	own := d.cfg.Emergency
	if !own.Send {
		return nil, nil //nolint:nilnil // no sender is what hands over
	}
	keys, err := signer.Open(d.cfg.Own.EmergencySigner)
	if err != nil {
		return nil, fmt.Errorf("opening keeperctl.emergency_signer: %w", err)
	}
	switch {
	case len(keys) != 1:
		return nil, fmt.Errorf("keeperctl.emergency_signer has %d keys: it takes one, that of emergency.account",
			len(keys))
	case keys[0].Address() != own.Account:
		return nil, fmt.Errorf("keeperctl.emergency_signer is the key of %s, and emergency.account is %s",
			keys[0].Address(),
			own.Account)
	case slices.Contains(d.cfg.Planner.Signers, own.Account):
		return nil,
			fmt.Errorf("emergency.account %s is one of planner.signers: the emergency signer has to be a key of "+
				"its own, because both would give out the same nonces", own.Account)
	}
	return emergencySender{key: signer.Restrict(keys[0], own.MaySign), chainID: d.cfg.Keeper.ChainID,
		node: func() sendingNode { return m.node }}, nil
}

// Send implements emergency.Sender.
func (s emergencySender) Send(ctx context.Context, d emergency.Step, signed func(chain.Hash) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendPatience)
	defer cancel()
	node := s.node()
	nonce, err := node.NonceAt(ctx, s.key.Address(), evm.Pending)
	if err != nil {
		return fmt.Errorf("asking for the nonce of %s: %w", s.key.Address(), err)
	}
	price, err := node.GasPrice(ctx)
	if err != nil {
		return fmt.Errorf("asking for the gas price: %w", err)
	}
	price *= 2 // it is to land at once
	raw, hash, err := s.key.Sign(ctx, signer.Tx{ChainID: s.chainID, Nonce: nonce, To: d.Contract, Data: d.Calldata,
		Gas: gasToAdjust, Tip: price, Cap: price})
	if err != nil {
		return err
	}
	if err := signed(hash); err != nil {
		return err
	}
	answer := node.SendRaw(ctx, raw)
	return s.follow(ctx, node, hash, answer)
}

// follow waits for the transaction's block. What the nodes answered to the broadcast is told only where no block shows
// it: a lost answer may hide a success.
func (s emergencySender) follow(ctx context.Context, node sendingNode, hash chain.Hash, answer error) error {
	for {
		switch r, err := node.Receipt(ctx, hash); {
		case err == nil && r != nil && r.OK:
			return nil
		case err == nil && r != nil:
			return fmt.Errorf("transaction %s: %w", hash, emergency.ErrReverted)
		}
		if !retry.Sleep(ctx, lookEvery) {
			return fmt.Errorf("transaction %s is in no block after %s; it may still come (broadcast: %v): look for it "+
				"before this is run again", hash, sendPatience, answer)
		}
	}
}
