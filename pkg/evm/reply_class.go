package evm

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// throttledTexts are what nodes and providers answer that want fewer requests, in lower case, anywhere in a message.
// Nothing rests on them alone: who answers with errors only is found without them, see [ownErrors].
var throttledTexts = []string{
	"rate limit", "rate-limit", "ratelimit", "too many requests", "request limit", "requests per second",
	"compute units per second", "quota", "request rate", "rps limit", "capacity limit", "daily limit",
	"monthly limit", "usage limit", "out of credits", "capacity exceeded", "throttle",
}

// wantsFewer reports whether a node's own error says that it wants fewer requests.
func wantsFewer(err error) bool {
	const tooMany, codeLimit = 429, -32005
	reply, is := errors.AsType[rpc.Error](err)
	if !is {
		return false
	}
	code, text := reply.ErrorCode(), strings.ToLower(reply.Error())
	return !strings.HasPrefix(text, revertText) && // a contract may say anything
		(code == tooMany || containsAny(text, throttledTexts) || code == codeLimit &&
			phraseAt(text, "limit exceeded") >= 0)
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// ownErrors are the errors of its own that an endpoint has answered for a purpose since it last answered anything else.
type ownErrors struct {
	since time.Time
	count int
}

// How many errors in a row, and over how long, say that an endpoint serves a purpose no more: in whatever words, and
// however politely.
const (
	refusedOften = 3
	refusedLong  = 5 * time.Second
)

// add notes one more, and reports whether they are all that the endpoint has to say.
func (o *ownErrors) add(now time.Time) bool {
	if o.count++; o.count == 1 {
		o.since = now
	}
	return o.count >= refusedOften && now.Sub(o.since) >= refusedLong
}

// served is when each endpoint of a pool last answered for a purpose. It is safe for concurrent use.
type served struct {
	alone bool // there is one endpoint

	mu   sync.Mutex
	last map[Purpose]map[Source]time.Time
}

func (s *served) note(p Purpose, by Source, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[p] == nil {
		s.last[p] = map[Source]time.Time{}
	}
	s.last[p][by] = now
}

// byOthers reports whether another endpoint has answered for a purpose since, or there is no other. Where nobody
// serves what is asked, as receipts of a block that are not there yet, an exclusion would name the honest.
func (s *served) byOthers(p Purpose, than Source, since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for by, at := range s.last[p] {
		if by != than && !at.Before(since) {
			return true
		}
	}
	return s.alone
}

// tooEarly are words of nodes for what they will have in a moment, such as the receipts of the newest block.
var tooEarly = []string{"not there yet", "not yet available", "not available yet", "not found", "unknown block",
	"indexing is in progress"}

// aboutRequest reports whether an error that a node gave is an answer about what was asked, and no refusal to answer:
// what came of a call, or of a transaction, or that it is too early to ask.
func aboutRequest(failed *callError) bool {
	_, reverted := RevertData(failed)
	early := slices.ContainsFunc(tooEarly, func(words string) bool {
		return strings.Contains(strings.ToLower(failed.err.Error()), words)
	})
	return reverted || early || OutOfGas(failed) || failed.method == methodSend || failed.method == methodBundle
}
