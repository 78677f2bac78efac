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
	Excluding(than ...evm.Source) evm.Reader
}

// agreement counts the hosts whose endpoints say something, each for itself, and how many of them there must be for it
// to be believed: two, where there are two.
func agreement(n Endpoints, says func(one evm.Reader) bool) (agree, need int) {
	var sources []evm.Source
	var hosts []string
	for _, e := range n.Endpoints() {
		if !e.Private {
			sources, hosts = append(sources, e.Source), append(hosts, e.Host)
		}
	}
	said := map[string]bool{} // by host
	for i, host := range hosts {
		others := slices.Delete(slices.Clone(sources), i, i+1)
		said[host] = said[host] || says(n.Excluding(others...))
	}
	for _, yes := range said {
		if yes {
			agree++
		}
	}
	return agree, min(2, len(said))
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
