package traders

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

func TestAccountsFollowFromTheSeed(t *testing.T) {
	addresses := func(seed uint64) map[common.Address]bool {
		traders, err := New(seed, 2, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[common.Address]bool{}
		for range accounts {
			all[(<-traders.idle).address] = true
		}
		return all
	}
	first := addresses(1)
	if len(first) != accounts || !maps.Equal(first, addresses(1)) {
		t.Error("the same seed gives other accounts")
	}
	for address := range addresses(2) {
		if first[address] {
			t.Errorf("%s belongs to two seeds", address)
		}
	}
}

// TestPickFollowsTheWeights: every action is drawn, about as often as its weight says.
func TestPickFollowsTheWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	drawn := map[string]int{}
	for range 100_000 {
		drawn[pick(random).name]++
	}
	for _, a := range actions {
		if n := drawn[a.name]; n < a.weight*900 || n > a.weight*1_100 {
			t.Errorf("%s was drawn %d times of 100 000, weight %d %%", a.name, n, a.weight)
		}
	}
}
