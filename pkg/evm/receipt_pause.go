package evm

import (
	"errors"
	"sync"
	"time"
)

// Pauses between tries where no endpoint serves single receipts, as all of them build their index of transactions anew:
// every transaction under way would be asked for at every block.
const (
	firstReceiptPause   = 500 * time.Millisecond
	longestReceiptPause = 8 * time.Second
)

// receiptPause is until when nobody is asked for single receipts, for every transaction alike. The zero value is ready.
type receiptPause struct {
	mu     sync.Mutex
	err    error // what all endpoints said; nil while receipts are served
	until  time.Time
	pause  time.Duration
	trying bool // somebody was let through at the end of the pause
}

// over is nil if a receipt may be asked for now, and otherwise what was said when one was asked for last. One is let
// through at the end of a pause; the others wait for what it is told.
func (p *receiptPause) over(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err == nil:
		return nil
	case now.Before(p.until):
		return p.err
	}
	p.trying, p.until = true, now.Add(p.pause)
	return nil
}

// ended takes note of how asking for a receipt ended: errors of their own from every endpoint make the next pause twice
// as long, any answer ends it. Other errors say nothing.
func (p *receiptPause) ended(err error, now time.Time) {
	refused := func(err error) bool {
		failed, is := errors.AsType[*callError](err)
		return is && failed.class == failedReply
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil || NotFound(err):
		p.err, p.pause = nil, 0
	case everyAnswer(err, refused) && (p.err == nil || p.trying):
		p.pause = min(max(2*p.pause, firstReceiptPause), longestReceiptPause)
		p.err, p.until, p.trying = err, now.Add(p.pause), false
	}
}
