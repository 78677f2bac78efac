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

// agreement counts the endpoints that say something, each for itself, and how many of them there must be for it to be
// believed: two, where there are two.
func agreement(n Endpoints, says func(one evm.Reader) bool) (agree, need int) {
	var sources []evm.Source
	for _, e := range n.Endpoints() {
		if !e.Private {
			sources = append(sources, e.Source)
		}
	}
	for i := range sources {
		others := slices.Delete(slices.Clone(sources), i, i+1)
		if says(n.Elsewhere(others...)) {
			agree++
		}
	}
	return agree, min(2, len(sources))
}

// secondAnswerTimeout is how long a second endpoint's answer is waited for.
const secondAnswerTimeout = time.Second

// reached returns an account's next nonce in the newest block as two hosts have it: one alone that is wrong could make
// the store look as if it had gone back in time, and leave numbers out. It is not sure where there are several and only
// one answers in time.
func reached(ctx context.Context, n Node, account chain.Address) (next uint64, sure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, secondAnswerTimeout)
	defer cancel()
	mined, err := n.MinedNonce(ctx, account)
	if err != nil || !mined.Sure {
		return mined.Newest, false, err
	}
	return mined.Agreed, true, nil
}
