package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txmgr/signer"
)

// gasToAdjust is far more than a setter burns; the rehearsal is a call, and pays nothing.
const gasToAdjust = 2_000_000

// emergencyMeans plans, rehearses and does actions. It connects to the chain when an action needs it.
type emergencyMeans struct {
	emergencyCommands

	node venueNode
}

// Plan implements emergency.Means.
func (m *emergencyMeans) Plan(ctx context.Context, a emergency.Action) ([]emergency.Step, error) {
	if a == emergency.Notify {
		return []emergency.Step{{Description: "post to the operators' receivers of [notify]"}}, nil
	}
	if a == emergency.LiquidateFirst {
		return m.planLiquidations(ctx)
	}
	var err error
	if m.node, err = m.dial(ctx); err != nil {
		return nil, err
	}
	var all []gmx.Adjustment
	if a == emergency.PausePositions {
		var venue gmx.Venue
		if venue, err = gmx.Locate(ctx, m.node, m.cfg.Venue.DataStore); err != nil {
			return nil, err
		}
		all, err = venue.PausePositions()
	} else {
		all, err = m.planMargin(ctx)
	}
	var steps []emergency.Step
	for _, x := range all {
		steps = append(steps, emergency.Step{Contract: m.cfg.Emergency.Contract, Calldata: x.Data, Undo: x.Undo,
			Description: x.Does})
	}
	return steps, err
}

// planLiquidations lists what is pending. Queued ones go before everything else as it is; those that have failed wait.
func (m *emergencyMeans) planLiquidations(ctx context.Context) ([]emergency.Step, error) {
	pending, err := m.store.Pending(ctx)
	if err != nil {
		return nil, err
	}
	waiting := 0
	for _, p := range pending {
		state := string(p.State)
		if p.Outcome != "" {
			waiting, state = waiting+1, "waits after "+string(p.Outcome)
		}
		if _, err := fmt.Fprintf(m.out, "%s attempt %d of account %s: %s\n", p.JobID, p.Attempt, p.Account,
			state); err != nil {
			return nil, err
		}
	}
	does := fmt.Sprintf("%d liquidations are pending and go before everything else; the pause of %d that have "+
		"failed is lifted", len(pending), waiting)
	return []emergency.Step{{Description: does}}, nil
}

func (m *emergencyMeans) planMargin(ctx context.Context) (all []gmx.Adjustment, err error) {
	head, err := m.node.Head(ctx)
	if err != nil {
		return nil, err
	}
	for _, market := range m.cfg.Emergency.Markets {
		word, err := m.node.Call(ctx, m.cfg.Venue.DataStore, gmx.AskMargin(market), head.Hash)
		if err != nil {
			return nil, err
		}
		current := chain.UintFromBytes(word)
		if len(word) != len(chain.Hash{}) || current.IsZero() {
			return nil, fmt.Errorf("market %s has no collateral factor: is it a market of this venue?", market)
		}
		all = append(all, gmx.RaiseMargin(market, current, emergency.MarginPercent))
	}
	return all, nil
}

// Rehearse implements emergency.Means.
func (m *emergencyMeans) Rehearse(ctx context.Context, d emergency.Step) error {
	if d.Contract.IsZero() {
		return nil
	}
	_, err := m.node.Simulate(ctx, m.cfg.Emergency.Account, d.Contract, d.Calldata, gasToAdjust, chain.Uint{})
	return err
}

// Do implements emergency.Means.
func (m *emergencyMeans) Do(ctx context.Context, o emergency.Order, _ emergency.Step) (string, error) {
	if o.Action == emergency.Notify {
		return m.post(ctx, o)
	}
	pending, err := m.store.Pending(ctx)
	if err != nil {
		return "", err
	}
	var failed []int64
	for _, p := range pending {
		if p.Outcome != "" {
			failed = append(failed, p.Intent)
		}
	}
	count, err := m.store.RetryNow(ctx, failed)
	return fmt.Sprintf("the pauses of %d failed liquidations were lifted: they are tried again at once, and what was "+
		"given up when a planner next finds it due", count), err
}

func (m *emergencyMeans) post(ctx context.Context, o emergency.Order) (string, error) {
	receivers := m.cfg.Notify.For(notify.Operator)
	if len(receivers) == 0 {
		return "", errors.New("no receiver of [notify] is the operators' (audience = \"operator\")")
	}
	message := notify.Message{
		ID: o.Run, Event: notify.Emergency, ChainID: m.cfg.Keeper.ChainID, AtMs: uint64(time.Now().UnixMilli()),
		Alarm: &notify.Alarm{Name: "emergency", Text: fmt.Sprintf("%s (%s)", o.Cause, o.Operator)},
	}
	failures := make([]error, len(receivers))
	var group errgroup.Group // each for itself: one that is away takes nothing from the others
	for i, to := range receivers {
		group.Go(func() error {
			var last error
			if err := m.cfg.Notify.Policy().Deliver(ctx, to, message,
				func(_ int, err error, _ time.Duration) { last = err }); err != nil {
				failures[i] = fmt.Errorf("telling %s: %w", to.Name, errors.Join(err, last))
			}
			return nil
		})
	}
	_ = group.Wait() // never fails
	if err := errors.Join(failures...); err != nil {
		return "", err
	}
	return "the operators have it", nil
}

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
func (d emergencyCommands) sender(m *emergencyMeans) (emergency.Sender, error) {
	own := d.cfg.Emergency
	if len(own.Calls) == 0 {
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
	case slices.Contains(d.cfg.Keeper.Signers, own.Account):
		return nil,
			fmt.Errorf("emergency.account %s is one of keeper.signers: the emergency signer has to be a key of "+
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

// follow waits for the transaction's block. What the nodes answered to the broadcast is printed only where no block
// shows it: a lost answer may hide a success.
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
