package scanner

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/retry"
)

// stretch is a range of blocks as it was read from nodes: every block linked to the one before, every block of concern
// read.
type stretch struct {
	refs   []chain.BlockRef
	blocks []found // those of which something was found
	bytes  int     // about what it holds in memory
}

// add appends what follows, and reports whether it does follow.
func (s *stretch) add(next stretch) bool {
	if n := len(s.refs); n > 0 && !next.refs[0].Follows(s.refs[n-1]) {
		return false
	}
	s.refs, s.blocks = append(s.refs, next.refs...), append(s.blocks, next.blocks...)
	s.bytes += next.bytes
	return true
}

// stretch reads a range. A part that fails is tried again without end in smaller pieces, and from the beginning when
// pieces do not fit together.
func (c *collector) stretch(ctx context.Context, from, to uint64, failed func(error)) (stretch, error) {
	tries := retry.New(retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second})
	var all stretch
	width := to - from + 1
	for at := from; at <= to && tries.Next(ctx); {
		part, err := c.readStretch(ctx, at, min(at+width-1, to))
		switch {
		case evm.WrongChain(err):
			return stretch{}, retry.Stop(err)
		case err != nil:
			failed(err)
			tries.Failed(err)
			width = max(width/2, 1)
			continue
		case !all.add(part):
			tries.Failed(fmt.Errorf("block %d does not follow the one before", at))
			all, at = stretch{}, from
			continue
		}
		at = all.refs[len(all.refs)-1].Number + 1
		if at <= to {
			tries = retry.New(retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second})
		}
	}
	if ctx.Err() != nil {
		return stretch{}, tries.Err(ctx)
	}
	return all, nil
}

// readStretch reads a range once: all headers, linked, and the blocks whose blooms may hold logs of ours.
func (c *collector) readStretch(ctx context.Context, from, to uint64) (stretch, error) {
	headers, err := c.chain.Blocks(ctx, from, to)
	if err != nil {
		return stretch{}, err
	}
	read, err := c.readThose(ctx, headers)
	if err != nil {
		return stretch{}, err
	}
	var s stretch
	for i, f := range read {
		s.refs, s.bytes = append(s.refs, headers[i].BlockRef), s.bytes+sizeOfRef
		if f != nil && len(f.logs)+len(f.txs) > 0 {
			s.blocks = append(s.blocks, *f)
			s.bytes += f.size()
		}
	}
	return s, nil
}

// readThose reads the blocks that may hold logs of ours, side by side; the places of the others stay empty.
func (c *collector) readThose(ctx context.Context, headers []evm.Header) ([]*found, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.own.Backfill.Workers)
	read := make([]*found, len(headers))
	for i, header := range headers {
		if !c.concerns(header) {
			continue
		}
		group.Go(func() error {
			f, err := c.readOld(ctx, header)
			read[i] = &f
			return err
		})
	}
	return read, group.Wait()
}

// readOld reads a block of history, by its header.
func (c *collector) readOld(ctx context.Context, header evm.Header) (found, error) {
	if !send(ctx, c.readers, struct{}{}) {
		return found{}, context.Cause(ctx)
	}
	defer func() { <-c.readers }()
	return c.read(ctx, header)
}

// What values take in memory, roughly.
const (
	sizeOfRef = 80
	sizeOfTx  = 160
	sizeOfLog = 300 // without its data
)

func (f found) size() int {
	total := sizeOfRef + len(f.txs)*sizeOfTx
	for _, l := range f.logs {
		total += sizeOfLog + len(l.Data)
	}
	return total
}
