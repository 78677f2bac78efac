package evmnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// logAPI has the eth methods about logs, and the subscriptions.
type logAPI struct{ n *Node }

// logFilter is the argument of eth_getLogs and of the logs subscription.
type logFilter struct {
	BlockHash *common.Hash       `json:"blockHash"`
	FromBlock *rpc.BlockNumber   `json:"fromBlock"`
	ToBlock   *rpc.BlockNumber   `json:"toBlock"`
	Addresses oneOrMany[address] `json:"address"`
	Topics    []oneOrMany[topic] `json:"topics"` // By position; an empty position matches everything.
}

type (
	address = common.Address
	topic   = common.Hash
)

// oneOrMany is a JSON value, a list of them, or null; a null inside the list makes the whole list match everything.
type oneOrMany[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany[T]) UnmarshalJSON(raw []byte) error {
	var many []*T
	if err := json.Unmarshal(raw, &many); err != nil {
		one := new(T)
		if err := json.Unmarshal(raw, one); err != nil {
			return err
		}
		many = []*T{one}
	}
	*o = nil
	for _, v := range many {
		if v == nil {
			*o = nil
			return nil
		}
		*o = append(*o, *v)
	}
	return nil
}

func (f *logFilter) matches(log *types.Log) bool {
	if len(f.Addresses) > 0 && !slices.Contains(f.Addresses, log.Address) {
		return false
	}
	if len(f.Topics) > len(log.Topics) {
		return false
	}
	for i, wanted := range f.Topics {
		if len(wanted) > 0 && !slices.Contains(wanted, log.Topics[i]) {
			return false
		}
	}
	return true
}

// mayMatch is false if the bloom proves that a block has no matching log.
func (f *logFilter) mayMatch(bloom types.Bloom) bool {
	if len(f.Addresses) > 0 &&
		!slices.ContainsFunc(f.Addresses, func(a address) bool { return types.BloomLookup(bloom, a) }) {
		return false
	}
	for _, wanted := range f.Topics {
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(t topic) bool { return types.BloomLookup(bloom, t) }) {
			return false
		}
	}
	return true
}

var (
	errHashAndRange = errors.New("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
	errTopics       = errors.New("exceed max topics")
	errRange        = errors.New("invalid block range params")
)

// GetLogs returns the logs of one block by hash, on whatever branch it is, or of a range of the chain.
func (a logAPI) GetLogs(ctx context.Context, f logFilter) ([]*types.Log, error) {
	if len(f.Topics) > 4 {
		return nil, errTopics
	}
	if f.BlockHash == nil {
		return a.findInRange(ctx, f)
	}
	if f.FromBlock != nil || f.ToBlock != nil {
		return nil, errHashAndRange
	}
	h := a.n.headerByHash(*f.BlockHash)
	if h == nil {
		return nil, errUnknownBlock
	}
	return a.inBlock([]*types.Log{}, h, &f), nil
}

func (a logAPI) findInRange(ctx context.Context, f logFilter) ([]*types.Log, error) {
	from, to, err := a.span(f.FromBlock, f.ToBlock)
	if err != nil {
		return nil, err
	}
	logs := []*types.Log{}
	for number := from; number <= to; number++ {
		h := a.n.chain.GetHeaderByNumber(number)
		if h == nil || ctx.Err() != nil {
			// A fork is just shortening the chain, or the client left.
			return nil, errors.Join(ctx.Err(), errHeaderNotFound)
		}
		logs = a.inBlock(logs, h, &f)
	}
	return logs, nil
}

// span turns tags into numbers. As in a node, `latest` counts as infinite when the width is checked, so a number with
// `latest` is always too wide, and blocks beyond the head are left out silently.
func (a logAPI) span(from, to *rpc.BlockNumber) (first, last uint64, err error) {
	bounds := [2]uint64{math.MaxUint64, math.MaxUint64}
	for i, tag := range []*rpc.BlockNumber{from, to} {
		switch {
		case tag == nil || *tag == rpc.LatestBlockNumber:
		case *tag == rpc.PendingBlockNumber:
			return 0, 0, errUnsupportedTags
		default:
			bounds[i] = a.n.number(*tag)
		}
	}
	if bounds[0] > bounds[1] {
		return 0, 0, errRange
	}
	if bounds[1]-bounds[0] > a.n.cfg.LogRange {
		return 0, 0, fmt.Errorf("exceed maximum block range: %d", a.n.cfg.LogRange)
	}
	head := a.n.Head().Number.Uint64()
	if bounds[0] == math.MaxUint64 {
		bounds[0] = head
	}
	return bounds[0], min(bounds[1], head), nil
}

// inBlock appends the matching logs of a block.
func (a logAPI) inBlock(logs []*types.Log, h *types.Header, f *logFilter) []*types.Log {
	if !f.mayMatch(h.Bloom) {
		return logs
	}
	for _, log := range a.n.blockLogs(h.Hash()) {
		if f.matches(log) {
			logs = append(logs, log)
		}
	}
	return logs
}

// NewHeads is the newHeads subscription. A replayed fork announces its tip only: parents have to be asked for.
func (a logAPI) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	return a.subscribe(ctx, func(e event, send func(any)) {
		for _, h := range e.heads {
			send(h)
		}
	})
}

// Logs is the logs subscription. Logs of blocks that a replayed fork took away come again, oldest first, with removed
// set.
func (a logAPI) Logs(ctx context.Context, f logFilter) (*rpc.Subscription, error) {
	return a.subscribe(ctx, func(e event, send func(any)) {
		for _, log := range e.logs {
			if f.matches(log) {
				send(log)
			}
		}
	})
}

// subscribe gives every coming event to each until the client leaves.
func (a logAPI) subscribe(ctx context.Context, each func(event, func(any))) (*rpc.Subscription, error) {
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	sub := notifier.CreateSubscription()
	events := a.n.feed.subscribe()
	send := func(v any) { _ = notifier.Notify(sub.ID, v) } // A failed write ends the connection, and with it sub.Err.
	go func() {
		defer events.close()
		for {
			select {
			case <-events.ready:
				for _, e := range events.take() {
					each(e, send)
				}
			case <-sub.Err(): //nolint:errcheck // Whatever it says, the client has left.
				return
			}
		}
	}()
	return sub, nil
}
