package evm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/retry"
)

// Heads delivers new heads until ctx ends or the client is closed, and then closes the channel. It listens to the announcements of the first
// WebSocket endpoint that works and asks for the head whenever none has come for a poll interval. A slow reader gets the newest head only:
// whoever needs all blocks follows the parents. The same head is not delivered twice running; a head may be lower than the one before, or on another branch.
//
// The time of an announced head may lack its milliseconds.
func (c *Client) Heads(ctx context.Context) <-chan chain.BlockRef {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(c.life, cancel)
	out, announced := make(chan chain.BlockRef, 1), make(chan json.RawMessage)
	c.background.Go(func() { c.listen(ctx, announced) })
	c.background.Go(func() {
		defer close(out)
		defer cancel()
		defer detach()
		c.deliver(ctx, announced, out)
	})
	return out
}

// deliver is one loop, so that a head that was asked for never overtakes one that was announced later.
func (c *Client) deliver(ctx context.Context, announced <-chan json.RawMessage, out chan chain.BlockRef) {
	var last chain.Hash
	emit := func(head chain.BlockRef, via string) {
		if head.Hash == last {
			return
		}
		last = head.Hash
		c.metrics.heads.WithLabelValues(via).Inc()
		select {
		case <-out: // An unread head is replaced; nobody else writes, so that there is room now.
		default:
		}
		out <- head
	}
	silence := time.NewTimer(0)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case raw := <-announced:
			if head, err := decodeBlock(raw); err == nil {
				emit(head.BlockRef, fromAnnouncement)
			} else {
				c.log.Warn().Err(err).Msg("evm: an announced head cannot be read")
			}
		case <-silence.C:
			if head, err := c.Head(ctx); err == nil {
				emit(head, fromPoll)
			} else if ctx.Err() == nil {
				c.log.Debug().Err(err).Msg("evm: no head")
			}
		}
		silence.Reset(c.cfg.PollInterval)
	}
}

// listen keeps a subscription to new heads, on one endpoint at a time.
func (c *Client) listen(ctx context.Context, announced chan<- json.RawMessage) {
	var pushing []*endpoint
	for _, e := range c.endpoints {
		if announces(e.url) {
			pushing = append(pushing, e)
		}
	}
	if len(pushing) == 0 {
		return
	}
	tries := retry.New(retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second})
	for at := 0; tries.Next(ctx); at++ {
		heard, err := c.listenTo(ctx, pushing[at%len(pushing)], announced)
		if heard {
			tries.Reset()
		}
		tries.Failed(err)
		if ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("evm: no announcements of heads, asking for them meanwhile")
		}
	}
}

// listenTo passes on what an endpoint announces until it stops.
func (c *Client) listenTo(ctx context.Context, e *endpoint, announced chan<- json.RawMessage) (heard bool, err error) {
	heads := make(chan json.RawMessage, 16)
	sub, err := e.subscribe(ctx, heads)
	if err != nil {
		return false, err
	}
	defer sub.Unsubscribe()
	for {
		select {
		case raw := <-heads:
			heard = true
			select {
			case announced <- raw:
			case <-ctx.Done():
				return heard, ctx.Err()
			}
		case err := <-sub.Err():
			return heard, e.failed(ctx, "eth_subscribe", fmt.Errorf("the subscription ended: %w", cmp.Or(err, io.EOF)))
		case <-ctx.Done():
			return heard, ctx.Err()
		}
	}
}
