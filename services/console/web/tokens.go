package web

import (
	"context"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/operator/contract"
)

// tokens knows how many decimals tokens have. No page waits for it: it asks in the background, one question at a time,
// and keeps the answer.
type tokens struct {
	mutex sync.Mutex
	known map[chain.Address]int // -1 where there is no contract that says
	next  time.Time             // not asked again before
}

// askAgain is when tokens are asked for again that could not be, and askFor for how long.
const (
	askAgain = time.Minute
	askFor   = 10 * time.Second
)

// decimals returns a token's; known is false where nothing has set them.
func (t *tokens) decimals(token chain.Address) (decimals int, known bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	decimals, asked := t.known[token]
	if !asked || decimals < 0 {
		return 0, false
	}
	return decimals, true
}

// learn asks for the tokens that are not known yet.
func (t *tokens) learn(ctx context.Context, node Node, wanted []chain.Address) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var unknown []chain.Address
	for _, token := range wanted {
		if _, asked := t.known[token]; !asked {
			unknown = append(unknown, token)
		}
	}
	if node == nil || len(unknown) == 0 || time.Now().Before(t.next) {
		return
	}
	t.next = time.Now().Add(askAgain)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer cancel()
		t.ask(ctx, node, unknown)
	}()
}

func (t *tokens) ask(ctx context.Context, node Node, unknown []chain.Address) {
	head, err := node.Head(ctx)
	if err != nil {
		return // asked for again
	}
	at := contract.Asker{Node: node, Block: head.Hash}
	for _, token := range unknown {
		decimals, known, err := gmx.Decimals(ctx, at, token)
		if err != nil {
			return
		}
		if !known {
			decimals = -1
		}
		t.mutex.Lock()
		if t.known == nil {
			t.known = map[chain.Address]int{}
		}
		t.known[token] = decimals
		t.mutex.Unlock()
	}
}
