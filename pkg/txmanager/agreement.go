package txmanager

import (
	"context"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// Endpoints is a node of several endpoints, each of which can be asked by itself.
type Endpoints interface {
	Endpoints() []evm.EndpointStatus
	Elsewhere(than ...evm.Source) evm.Reader
}

// oneByOne returns, for each endpoint that is read from, a reader that asks it and no other.
func oneByOne(n Endpoints) []evm.Reader {
	var sources []evm.Source
	for _, e := range n.Endpoints() {
		if !e.Private {
			sources = append(sources, e.Source)
		}
	}
	readers := make([]evm.Reader, len(sources))
	for i := range sources {
		readers[i] = n.Elsewhere(slices.Delete(slices.Clone(sources), i, i+1)...)
	}
	return readers
}

// agreement counts the endpoints that say something, each for itself, and how many of them there must be for it to be
// believed: two, where there are two.
func agreement(n Endpoints, says func(one evm.Reader) bool) (agree, need int) {
	readers := oneByOne(n)
	for _, one := range readers {
		if says(one) {
			agree++
		}
	}
	return agree, min(2, len(readers))
}

// secondAnswerTimeout is how long a second endpoint's answer is waited for.
const secondAnswerTimeout = time.Second

// reached returns an account's next nonce in the newest block as two hosts have it: one alone that is wrong could make
// the store look as if it had gone back in time, and leave numbers out. It is not sure where there are several and only
// one answers in time.
func reached(ctx context.Context, n interface {
	MinedNonce(ctx context.Context, account chain.Address) (evm.MinedNonce, error)
}, account chain.Address) (next uint64, sure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, secondAnswerTimeout)
	defer cancel()
	mined, err := n.MinedNonce(ctx, account)
	switch {
	case err != nil:
		return 0, false, err
	case mined.Sure:
		return mined.Agreed, true, nil
	default:
		return mined.Newest, false, nil
	}
}
