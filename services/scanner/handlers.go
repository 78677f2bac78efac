package scanner

import (
	"context"
	"fmt"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// Which version of the contracts a handler is of stands in the topic like a parameter, because what it reports is
// folded by the rules of its version: in every partition, in the block in which the handler is first heard or before
// it. The code of contracts shows it. A block waits where nobody serves that; two hosts have to agree where there are
// two. Beside it stands the version of the handler that would be called, by whose rules verdicts are.

// handlers reads versions, and remembers them. It is safe for concurrent use.
type handlers struct {
	node *evm.Client

	reading  sync.Mutex // held while nodes are asked: whoever publishes a block of known handlers does not wait for it
	versions gmx.Versions

	mu     sync.Mutex
	called perp.Version // of the handler that would be called; 0 = not known yet
}

// version is the version of a handler after a block; of a block whose state nobody keeps it is read after the newest
// final one, because code does not change.
func (h *handlers) version(ctx context.Context, handler chain.Address, block chain.BlockRef) (perp.Version, error) {
	h.reading.Lock()
	defer h.reading.Unlock()
	v, err := h.versions.Version(ctx, h.node.Settled(block.Hash), handler)
	if err == nil || ctx.Err() != nil {
		return v, err
	}
	final, unknown := h.node.Finalized(ctx)
	if unknown != nil || final.Number <= block.Number {
		return v, err
	}
	return h.versions.Version(ctx, h.node.Settled(final.Hash), handler)
}

// look reads the versions of the handlers of a venue after a block, so that no block waits for those that have not
// spoken yet, and notes that of the one that would be called. Where none is known it is the newest of those that spoke.
func (h *handlers) look(ctx context.Context, venue gmx.Venue, block chain.BlockRef) error {
	for _, executor := range venue.Executors() {
		if executor.IsZero() {
			continue
		}
		if _, err := h.version(ctx, executor, block); err != nil {
			return err
		}
	}
	for _, kind := range []job.Kind{job.Liquidation, job.Order} {
		called, is := venue.Handler(kind)
		if !is {
			continue
		}
		v, err := h.version(ctx, called.Address, block)
		if err == nil {
			h.mu.Lock()
			h.called = v
			h.mu.Unlock()
		}
		return err
	}
	return nil
}

// inForce is the version of the handler that would be called; 0 while it is not known.
func (h *handlers) inForce() perp.Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called
}

// heard notes that a handler has spoken, of which alone follows which one would be called where the venue's are not
// known.
func (h *handlers) heard(v perp.Version, venue gmx.Venue) {
	if _, is := venue.Handler(job.Liquidation); is {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.called = max(h.called, v)
}

// addVersions puts into blocks the versions of the handlers that are heard in them and that the topic does not have.
func (w *writer) addVersions(ctx context.Context, blocks []content) error {
	added := map[chain.Address]bool{}
	for i := range blocks {
		c := &blocks[i]
		for _, l := range c.logs {
			handler, is := gmx.Speaker(l.Log)
			if !is || added[handler] {
				continue
			}
			added[handler] = true
			if _, known := w.words.said(perp.HandlerVersion(handler, 0).Key); known {
				continue
			}
			v, err := w.collector.handlers.version(ctx, handler, c.block)
			if err != nil {
				return fmt.Errorf("block %d waits: which version of the contracts %s is of, which speaks in it, "+
					"cannot be read: %w", c.block.Number, handler, err)
			}
			w.collector.handlers.heard(v, w.collector.venue.Venue())
			c.params = append(c.params, versionParam(c.block, handler, v))
		}
	}
	return nil
}

// addInForce puts the version of the handler that would be called into a block that all partitions get, if the topic
// has another one.
func (w *writer) addInForce(c *content) {
	v := w.collector.handlers.inForce()
	if v == 0 {
		return
	}
	param := versionParam(c.block, chain.Address{}, v)
	if said, known := w.words.said(param.Key); !known || said != param.Value {
		c.params = append(c.params, param)
	}
}

// versionParam says which version a handler is of; the zero address is the one that would be called.
func versionParam(block chain.BlockRef, handler chain.Address, v perp.Version) wire.Param {
	p := perp.HandlerVersion(handler, v)
	name := "HANDLER_VERSION"
	if !handler.IsZero() {
		name += "(" + handler.Hex() + ")"
	}
	return wire.Param{Block: block, Key: p.Key, Value: p.Value, Name: name}
}
