package evm

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// headerError is a header that does not hash to the hash the node gave with it.
type headerError struct {
	number            uint64
	claimed, computed chain.Hash
}

func (e *headerError) Error() string {
	return fmt.Sprintf("the header of block %d hashes to %s, the node says %s", e.number, e.computed, e.claimed)
}

// unknownHeaders distinguishes liars from a fork of the chain whose headers this build cannot read: one endpoint whose
// header does not hash to what it says lies; two of different hosts that say the same hash of a header that comes to
// the same other one here do not. Then nobody is excluded for it, nothing of such a block is believed, and Health says
// what to do. It is over with the first header of that height that can be read.
type unknownHeaders struct {
	log zerolog.Logger

	mu     sync.Mutex
	claims map[headerError][]*endpoint // who claims it
	known  *headerError                // two hosts claim it; nil while there is none
}

// mostHeaders bounds what is remembered of headers that nobody else bears out.
const mostHeaders = 256

// note takes in what an endpoint says, and reports whether that is a fork. The endpoints are those that were excluded
// for it before.
func (u *unknownHeaders) note(e *endpoint, header headerError) (fork bool, excluded []*endpoint) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known != nil {
		return true, nil
	}
	if u.claims == nil || len(u.claims) >= mostHeaders {
		u.claims = map[headerError][]*endpoint{}
	}
	for _, other := range u.claims[header] {
		fork = fork || other.host != e.host
	}
	if !fork {
		u.claims[header] = append(u.claims[header], e)
		return false, nil
	}
	excluded, u.claims, u.known = u.claims[header], nil, &header
	u.log.Error().Uint64("block", header.number).Stringer("said", header.claimed).Stringer("computed", header.computed).
		Msg("evm: " + u.text())
	return true, excluded
}

// read notes a head whose hash could be recomputed.
func (u *unknownHeaders) read(number uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known != nil && number >= u.known.number {
		u.known = nil
		u.log.Info().Uint64("block", number).Msg("evm: headers can be read again")
	}
}

// err reports that the chain has forked to what this build cannot read, if it has.
func (u *unknownHeaders) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		return nil
	}
	return errors.New(u.text())
}

// text is the line for the operator. The mutex is held.
func (u *unknownHeaders) text() string {
	return fmt.Sprintf("two hosts agree on block %d %s, and this build computes %s of its header: the chain has a "+
		"header that this build does not know, and no block of "+
		"it is believed (install a build that knows the chain's fork; endpoints are not at fault)", u.known.number,
		u.known.claimed, u.known.computed)
}

// forked notes a failure that may be a fork's, and takes back who was excluded for the same before.
func (e *endpoint) forked(failed *callError) bool {
	header, is := errors.AsType[*headerError](failed.err)
	if !is {
		return false
	}
	fork, excluded := e.unknownHeaders.note(e, *header)
	for _, other := range excluded {
		other.mu.Lock()
		other.readmit(func(x Exclusion) bool {
			return x.Reason == ReasonLied &&
				x.Detail == scrub(header.Error(), other.url)
		})
		other.mu.Unlock()
	}
	return fork
}
