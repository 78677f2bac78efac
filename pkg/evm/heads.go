package evm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/retry"
)

// Heads delivers new heads until ctx ends or the client is closed, and then closes the channel. It listens to the
// announcements of every WebSocket endpoint at once, the first to announce a block wins, and asks for the head whenever
// none has come for a poll interval. A slow reader gets the newest head only: whoever needs all blocks follows the
// parents. The same head is not delivered twice running; a head may be lower than the one before, or on another branch.
//
// The endpoint that announced a block is the first to be asked for it and its logs. Endpoints that are excluded are not
// listened to while another one is good. The time of an announced head may lack its milliseconds.
func (c *Client) Heads(ctx context.Context) <-chan chain.BlockRef {
	p := c.pool
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(p.life, cancel)
	out, announced := make(chan chain.BlockRef, 1), make(chan announcement)
	for _, e := range p.public {
		if announces(e.url) {
			p.background.Go(func() { p.listen(ctx, e, announced) })
		}
	}
	p.background.Go(func() {
		defer close(out)
		defer cancel()
		defer detach()
		d := delivery{pool: p, out: out, by: map[chain.Hash]map[*endpoint]bool{}}
		d.run(ctx, announced, c.Head)
	})
	return out
}

// announcement is a head that an endpoint pushed.
type announcement struct {
	head chain.BlockRef
	from *endpoint
}

// delivery is the merging of what several endpoints say into one channel.
type delivery struct {
	pool  *pool
	out   chan chain.BlockRef
	last  chain.Hash
	by    map[chain.Hash]map[*endpoint]bool // who announced a block
	order []chain.Hash                      // the blocks of by, oldest first
}

// run is one loop, so that a head that was asked for never overtakes one that was announced later.
func (d *delivery) run(ctx context.Context, announced <-chan announcement,
	head func(context.Context) (chain.BlockRef, error)) {
	silence := time.NewTimer(0)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-announced:
			if !d.takes(a) {
				continue // the silence goes on
			}
			d.emit(a.head)
		case <-silence.C:
			if head, err := head(ctx); err == nil {
				d.emit(head)
			} else if ctx.Err() == nil {
				d.pool.log.Debug().Err(err).Msg("evm: no head")
			}
		}
		silence.Reset(d.pool.cfg.PollInterval)
	}
}

// takes reports whether an announcement is news. What another endpoint has announced before is none; but an endpoint
// that announces a block again has gone back to it.
func (d *delivery) takes(a announcement) bool {
	if a.from.usable(ForHeads) != good && d.pool.subscribes() {
		return false
	}
	who := d.by[a.head.Hash]
	if who == nil {
		const enough = 256
		if len(d.order) == enough {
			delete(d.by, d.order[0])
			d.order = d.order[1:]
		}
		who = map[*endpoint]bool{}
		d.by[a.head.Hash], d.order = who, append(d.order, a.head.Hash)
	}
	isNew := len(who) == 0 || who[a.from]
	who[a.from] = true
	return isNew
}

// subscribes reports whether an endpoint that can push heads is good.
func (p *pool) subscribes() bool {
	for _, e := range p.public {
		if announces(e.url) && e.usable(ForHeads) == good {
			return true
		}
	}
	return false
}

func (d *delivery) emit(head chain.BlockRef) {
	if head.Hash == d.last {
		return
	}
	d.last = head.Hash
	select {
	case <-d.out: // An unread head is replaced; nobody else writes, so that there is room now.
	default:
	}
	d.out <- head
}

// listen keeps a subscription to an endpoint's new heads.
func (p *pool) listen(ctx context.Context, e *endpoint, announced chan<- announcement) {
	tries := retry.New(retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second})
	for tries.Next(ctx) {
		received, err := p.listenTo(ctx, e, announced)
		if received {
			tries.Reset()
		}
		tries.Failed(err)
		if level := zerolog.DebugLevel; ctx.Err() == nil {
			if tries.Attempt() <= 1 {
				level = zerolog.WarnLevel
			}
			e.log.WithLevel(level).Err(err).Msg("evm: no announcements of heads from this endpoint for now")
		}
	}
}

// listenTo passes on what an endpoint announces until it stops, or falls silent while the chain goes on.
func (p *pool) listenTo(ctx context.Context, e *endpoint, announced chan<- announcement) (received bool, err error) {
	heads := make(chan json.RawMessage, 16)
	sub, err := e.subscribe(ctx, heads)
	if err != nil {
		return false, err
	}
	defer sub.Unsubscribe()
	silence := time.NewTimer(p.cfg.MaxLag)
	defer silence.Stop()
	var newest uint64
	for {
		select {
		case raw := <-heads:
			silence.Reset(p.cfg.MaxLag)
			head, err := decodeBlock(raw)
			if err != nil {
				return received, e.failed(ctx, methodSubscribe, err, 0)
			}
			received, newest = true, head.Number
			if !p.sawHead(e, head.BlockRef) {
				continue
			}
			p.memory.announce(head.Header, e)
			select {
			case announced <- announcement{head.BlockRef, e}:
			case <-ctx.Done():
				return received, ctx.Err()
			}
		case <-silence.C:
			if received && p.highest() > newest {
				return received, e.failed(ctx, methodSubscribe,
					fmt.Errorf("nothing was announced for %s while the chain went on", p.cfg.MaxLag), 0)
			}
			silence.Reset(p.cfg.MaxLag)
		case err := <-sub.Err():
			return received, e.failed(ctx, methodSubscribe,
				fmt.Errorf("the subscription ended: %w", cmp.Or(err, io.EOF)), 0)
		case <-ctx.Done():
			return received, ctx.Err()
		}
	}
}

// highest is the number of the best head.
func (p *pool) highest() uint64 {
	return p.bestHead(nil, chain.BlockRef{}).Number
}

// subscribe asks the endpoint to push new heads.
func (e *endpoint) subscribe(ctx context.Context, heads chan json.RawMessage) (sub *rpc.ClientSubscription, err error) {
	err = e.exchange(ctx, methodSubscribe, func(ctx context.Context, c *connection) (err error) {
		open, is := c.caller.(socket)
		if !is {
			return errBroken // only a WebSocket pushes
		}
		sub, err = open.EthSubscribe(ctx, heads, "newHeads")
		return err
	})
	return sub, err
}
