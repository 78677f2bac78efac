package evm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/agreement"
	"perpkeeper/pkg/chain"
)

// shownBody is a block whose transactions are not proven, and who shows it so.
type shownBody struct {
	Block
	by    *endpoint
	shown chain.Hash // digest of all that is read of its transactions
}

func shownBy(b Block, by *endpoint) shownBody {
	var all []byte
	for _, tx := range b.Txs {
		all = append(append(append(all, tx.Hash[:]...), tx.From[:]...), tx.To[:]...)
		all = binary.BigEndian.AppendUint64(all, tx.Nonce)
	}
	return shownBody{b, by, chain.Keccak256(all)}
}

// settleBody asks the other endpoints for a block whose transactions are not proven. Where one of them proves its own,
// the others are held against that. Where none does and two hosts show the same, the chain has what this build does not
// know, and the block is taken as they show it, unproven: one endpoint cannot bring that about, because an honest one
// shows the same only where it cannot be proven either. Else see oneWord. Who has another block of the number says
// nothing of this one.
func (r Reader) settleBody(ctx context.Context, q question[Block], first shownBody) (Block, *endpoint, error) {
	all, by := []shownBody{first}, first.by
	var otherwise shownBody // the number's block as somebody else has it, proven; nobody's while there is none
	for {
		r.without = append(slices.Clone(r.without), by.name)
		var block Block
		var err error
		block, by, err = ask(ctx, r, q)
		switch {
		case err != nil: // nobody is left who answers
		case block.Hash != first.Hash:
			if block.BodyProven() {
				otherwise = shownBy(block, by)
			}
			continue
		case block.BodyProven():
			holdAgainst(ctx, &block, all)
			return block, by, nil
		default:
			all = append(all, shownBy(block, by))
			if !r.pool.unknownBodies.lately() {
				continue
			}
		}
		if word, agreed := ofTwoHosts(all); agreed {
			r.pool.unknownBodies.took(word)
			_ = accuse(ctx, all, word.shown)
			return word.Block, word.by, nil
		}
		if err != nil {
			return oneWord(ctx, all, otherwise, err)
		}
	}
}

// ofTwoHosts returns the body that most hosts show alike, two at least.
func ofTwoHosts(all []shownBody) (word shownBody, agreed bool) {
	const hosts = 2
	answers := make([]agreement.Answer[chain.Hash], len(all))
	for i, s := range all {
		answers[i] = agreement.Answer[chain.Hash]{From: string(s.by.name), Host: s.by.host, Value: s.shown}
	}
	shown, _, agreed := agreement.Same(answers, hosts)
	if !agreed {
		return shownBody{}, false
	}
	return all[slices.IndexFunc(all, func(s shownBody) bool { return s.shown == shown })], true
}

// oneWord is what is left where nobody proves a body and no two hosts show the same: the first that this build cannot
// read. One that contradicts itself is a lie, and where there is no other the number's block is as somebody else has
// it. Last is why no further endpoint has answered.
func oneWord(ctx context.Context, all []shownBody, otherwise shownBody, last error) (Block, *endpoint, error) {
	problems := accuse(ctx, all, chain.Hash{})
	if at := slices.IndexFunc(all, func(s shownBody) bool { return s.body.unreadable() }); at >= 0 {
		return all[at].Block, all[at].by, nil
	}
	if otherwise.by != nil {
		return otherwise.Block, otherwise.by, nil
	}
	if several, is := errors.AsType[*exhaustedError](last); is {
		problems = append(problems, several.answers...)
	} else if !NoEndpoint(last) {
		problems = append(problems, last)
	}
	return Block{}, nil, exhausted(problems)
}

// accuse excludes who shows a body that contradicts itself, and is not what two hosts show.
func accuse(ctx context.Context, all []shownBody, agreed chain.Hash) (lies []error) {
	for _, s := range all {
		if s.body.unfit != "" && s.shown != agreed {
			lies = append(lies, s.by.failed(ctx, methodBlock, bodyLie("%s", s.body.unfit), 0))
		}
	}
	return lies
}

// holdAgainst draws the consequences of a proven body for who has shown the block otherwise. What is not so is a lie.
// What is not shown, or so that this build cannot read it, is none, but for bodies such an endpoint comes last.
func holdAgainst(ctx context.Context, truth *Block, all []shownBody) {
	for _, s := range all {
		if wrong := s.differs(truth); wrong != "" {
			_ = s.by.failed(ctx, methodBlock, bodyLie("%s", wrong), 0)
			continue
		}
		s.by.bar(ForBodies, ReasonUnreadable, fmt.Sprintf("block %d %s has %s, which another endpoint shows in full",
			s.Number, s.Hash, s.body.unknown.why))
	}
}

// differs says what of an unproven body is not so; empty where all that can be read of it is.
func (b *Block) differs(truth *Block) string {
	switch {
	case b.body.unfit != "":
		return b.body.unfit
	case len(b.Txs) != len(truth.Txs):
		return fmt.Sprintf("block %d has %d transactions, and not %d", b.Number, len(truth.Txs), len(b.Txs))
	}
	for i, tx := range truth.Txs {
		said := b.Txs[i]
		if said.Hash != tx.Hash || said.Nonce != tx.Nonce || said.To != tx.To && !said.To.IsZero() {
			return fmt.Sprintf("transaction %d of block %d is %s (nonce %d, to %s), and not %s (nonce %d, to %s)", i,
				b.Number, tx.Hash, tx.Nonce, tx.To, said.Hash, said.Nonce, said.To)
		}
	}
	unknown := b.body.unknown
	if kind, _ := truth.kind(unknown.at); unknown.typed && kind != unknown.kind {
		return fmt.Sprintf("transaction %d of block %d is of type %d, and not %d", unknown.at, b.Number, kind,
			unknown.kind)
	}
	return ""
}

// unknownBodies tells of blocks that were taken as two hosts show them.
type unknownBodies struct {
	log   zerolog.Logger
	taken prometheus.Counter
	often time.Duration // how often everybody is asked

	mu    sync.Mutex
	until time.Time // when everybody is asked again
}

// lately reports whether nobody could prove such a body a short while ago. Then two hosts are asked for the next ones,
// and not everybody.
func (u *unknownBodies) lately() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.until)
}

// took counts a block, and says what is wrong each time that everybody was asked.
func (u *unknownBodies) took(word shownBody) {
	u.taken.Inc()
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now(); !now.Before(u.until) {
		u.until = now.Add(u.often)
		u.log.Error().Uint64("block", word.Number).Stringer("hash", word.Hash).Str("cause", word.body.doubt()).
			Msg("evm: two hosts show the same transactions of a block, and this build cannot prove them: such blocks " +
				"are taken unproven (install a build that knows the chain's transactions; endpoints are not at fault)")
	}
}
