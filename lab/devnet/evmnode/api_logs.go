package evmnode

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// logAPI has the eth methods about logs, and the subscription to heads.
type logAPI struct{ n *Node }

// logFilter is the argument of eth_getLogs.
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

// GetLogs returns the logs of one block by hash, on whatever branch it is, or of a range of the chain. Nobody of the
// keeper asks for logs, so that no node's limits are played.
func (a logAPI) GetLogs(ctx context.Context, f logFilter) ([]*types.Log, error) {
	logs := []*types.Log{}
	if f.BlockHash != nil {
		h := a.n.headerByHash(*f.BlockHash)
		if h == nil {
			return nil, errUnknownBlock
		}
		return a.inBlock(logs, h, &f), nil
	}
	head := a.n.Head().Number.Uint64()
	from, to := head, head
	if f.FromBlock != nil {
		from = a.n.number(*f.FromBlock)
	}
	if f.ToBlock != nil {
		to = min(head, a.n.number(*f.ToBlock))
	}
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
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	sub := notifier.CreateSubscription()
	events := a.n.feed.subscribe()
	go func() {
		defer events.close()
		for {
			select {
			case <-events.ready:
				for _, h := range events.take() {
					_ = notifier.Notify(sub.ID, h) // A failed write ends the connection, and with it sub.Err.
				}
			case <-sub.Err(): //nolint:errcheck // Whatever it says, the client has left.
				return
			}
		}
	}()
	return sub, nil
}
