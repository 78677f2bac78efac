package txmanager

import (
	"context"
	"errors"
	"fmt"
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

// OneByOne returns, for each endpoint that is read from, a reader that asks it and no other.
func OneByOne(n Endpoints) []evm.Reader {
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
	readers := OneByOne(n)
	for _, one := range readers {
		if says(one) {
			agree++
		}
	}
	return agree, min(2, len(readers))
}

// secondOpinion is how long a second endpoint's answer is waited for.
const secondOpinion = time.Second

// endpointCounter also counts transactions, as any endpoint has it.
type endpointCounter interface {
	Endpoints
	Counter
}

// reached returns an account's next nonce in the newest block as two endpoints have it, the lower of the first two
// answers: one alone that is wrong could make the store look as if it had gone back in time, and leave numbers out. It
// is not sure where there are several and only one answers in time.
func reached(ctx context.Context, n endpointCounter, account chain.Address) (next uint64, sure bool, err error) {
	readers := OneByOne(n)
	if len(readers) < 2 {
		next, err = n.NonceAt(ctx, account, evm.Latest)
		return next, true, err
	}
	ctx, cancel := context.WithTimeout(ctx, secondOpinion)
	defer cancel()
	type answer struct {
		next uint64
		err  error
	}
	answers := make(chan answer, len(readers))
	for _, one := range readers {
		go func() {
			next, err := one.NonceAt(ctx, account, evm.Latest)
			answers <- answer{next, err}
		}()
	}
	var said []uint64
	var problems []error
	for range readers {
		a := <-answers
		if a.err != nil {
			problems = append(problems, a.err)
			continue
		}
		if said = append(said, a.next); len(said) == 2 {
			break
		}
	}
	if len(said) == 0 {
		return 0, false, fmt.Errorf("asking how far the account is: %w", errors.Join(problems...))
	}
	return slices.Min(said), len(said) > 1, nil
}
