package scanner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// sentChain is a chain of which all that counts are the nonces that accounts use in each block, and the transactions
// among them: a nonce without one is a delegation's.
type sentChain struct {
	accounts []chain.Address
	rises    []map[chain.Address]uint64 // by block
	txs      []chain.Tx
	// said is how an endpoint changes what it says; nil where it is honest.
	said  func(a evm.AccountAt, honest uint64) uint64
	asked int
}

func sentChains(t *rapid.T) *sentChain {
	c := &sentChain{}
	for i := range rapid.IntRange(1, 3).Draw(t, "accounts") {
		c.accounts = append(c.accounts, chain.Address{0xa0, byte(i)})
	}
	nonces := map[chain.Address]uint64{}
	for block := range uint64(rapid.IntRange(2, 200).Draw(t, "blocks")) {
		rises := map[chain.Address]uint64{}
		for _, a := range c.accounts {
			if rapid.IntRange(0, 12).Draw(t, "quiet") > 0 {
				continue
			}
			rises[a] = uint64(rapid.IntRange(1, 3).Draw(t, "rise"))
			for range rises[a] {
				if rapid.IntRange(0, 9).Draw(t, "delegation") > 0 {
					c.txs = append(c.txs, chain.Tx{From: a, Nonce: nonces[a], Block: block})
				}
				nonces[a]++
			}
		}
		c.rises = append(c.rises, rises)
	}
	return c
}

func (c *sentChain) nonce(a evm.AccountAt) (n uint64) {
	for _, rises := range c.rises[:a.Block+1] {
		n += rises[a.Account]
	}
	return n
}

func (c *sentChain) SettledNonces(_ context.Context, asked []evm.AccountAt) (nonces []uint64, err error) {
	for _, a := range asked {
		nonces = append(nonces, c.nonce(a))
	}
	return nonces, nil
}

func (c *sentChain) OldNonces(_ context.Context, asked []evm.AccountAt) (nonces []uint64, err error) {
	c.asked += len(asked)
	for _, a := range asked {
		n := c.nonce(a)
		if c.said != nil {
			n = c.said(a, n)
		}
		nonces = append(nonces, n)
	}
	return nonces, nil
}

// twin looks at every block of a range.
func (c *sentChain) twin(from, to uint64) (steps, used) {
	in, all := steps{}, used{}
	for _, a := range c.accounts {
		for block := from; block <= to; block++ {
			if rise := c.rises[block][a]; rise > 0 {
				if in[a] == nil {
					in[a] = map[uint64]uint64{}
				}
				in[a][block] = rise
			}
		}
		if in[a] != nil {
			all[a] = struct{ first, next uint64 }{c.nonce(evm.AccountAt{Account: a, Block: from - 1}),
				c.nonce(evm.AccountAt{Account: a, Block: to})}
		}
	}
	return in, all
}

func sameSteps(a, b steps) bool { return maps.EqualFunc(a, b, maps.Equal) }

// Whatever signers have sent, and whatever one endpoint says of it: the blocks found are all of them and no others, or
// it is said that they cannot be found.
func TestNoncesFindWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sentChains(t)
		liar := rapid.IntRange(0, 4).Draw(t, "lie")
		c.said = map[int]func(evm.AccountAt, uint64) uint64{
			1: func(a evm.AccountAt, _ uint64) uint64 { // it lags, and says so of no block
				return c.nonce(evm.AccountAt{Account: a.Account, Block: a.Block - min(a.Block, 3)})
			},
			2: func(a evm.AccountAt, _ uint64) uint64 { // it knows no old states
				return c.nonce(evm.AccountAt{Account: a.Account, Block: uint64(len(c.rises) - 1)})
			},
			3: func(evm.AccountAt, uint64) uint64 { return 0 },
			4: func(_ evm.AccountAt, honest uint64) uint64 { return honest / 2 },
		}[liar]
		settled := newNonceHistory()
		last := uint64(len(c.rises) - 1)
		for from := uint64(1); from <= last; {
			to := min(from+uint64(rapid.IntRange(0, 80).Draw(t, "width")), last)
			in, all := c.twin(from, to)
			got, err := usedBetween(t.Context(), c, settled, c.accounts, from, to)
			if err != nil || !maps.Equal(got, all) {
				t.Fatalf("blocks %d to %d: used %v, %v; want %v", from, to, got, err, all)
			}
			found, err := searchSteps(t.Context(), c, settled, slices.Collect(maps.Keys(all)), all, from, to)
			switch {
			case liar > 0 && errors.Is(err, errNonces):
			case err != nil || !sameSteps(found, in):
				t.Fatalf("blocks %d to %d: %v, %v; want %v", from, to, found, err, in)
			}
			from = to + 1
		}
	})
}

// What bodies show beside what was used: all of it, less, or what cannot be.
func TestNoncesAreHeldAgainstTransactions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sentChains(t)
		in, all := c.twin(1, uint64(len(c.rises)-1))
		txs := slices.DeleteFunc(slices.Clone(c.txs), func(tx chain.Tx) bool { return tx.Block == 0 })
		lacking, err := all.check(txs, c.accounts, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range c.accounts {
			count := uint64(0)
			for _, tx := range txs {
				if tx.From == a {
					count++
				}
			}
			if want := count < all[a].next-all[a].first; slices.Contains(lacking, a) != want {
				t.Fatalf("%s has %d of %v: lacking %v", a, count, all[a], lacking)
			}
		}
		if len(txs) == 0 {
			return
		}
		wrong := rapid.SampledFrom(txs).Draw(t, "transaction")
		switch rapid.IntRange(0, 2).Draw(t, "wrong") {
		case 0:
			wrong.Nonce = all[wrong.From].next
		case 1: // the same once more
		case 2:
			wrong.Block = uint64(len(c.rises))
			txs = slices.DeleteFunc(txs, func(tx chain.Tx) bool {
				return tx.From == wrong.From && tx.Nonce == wrong.Nonce
			})
		}
		if lacking, err := all.check(append(txs, wrong), c.accounts, in); !errors.Is(err, errNonces) {
			t.Fatalf("%+v is taken: lacking %v, %v", wrong, lacking, err)
		}
	})
}

// Few questions are asked: none of whoever has sent nothing, and by quarters of the rest.
func TestNoncesAreAskedForSparingly(t *testing.T) {
	c := &sentChain{accounts: []chain.Address{{1}, {2}}, rises: make([]map[chain.Address]uint64, 2001)}
	for i := range c.rises {
		c.rises[i] = map[chain.Address]uint64{}
	}
	c.rises[777][chain.Address{1}] = 1
	_, all := c.twin(1, 2000)
	in, err := searchSteps(t.Context(), c, newNonceHistory(), []chain.Address{{1}}, all, 1, 2000)
	if err != nil || !sameSteps(in, steps{{1}: {777: 1}}) || c.asked > 18 {
		t.Errorf("%v after %d questions, %v", in, c.asked, err)
	}
}

// A history answers what is known without being asked again, and takes no nonce that falls.
func TestNonceHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sentChains(t)
		h := newNonceHistory()
		known := map[evm.AccountAt]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			a := evm.AccountAt{Account: rapid.SampledFrom(c.accounts).Draw(t, "account"),
				Block: uint64(rapid.IntRange(0, len(c.rises)-1).Draw(t, "block"))}
			n, is := h.at(a)
			if is && n != c.nonce(a) || known[a] && !is {
				t.Fatalf("%v: %d, %t; it is %d", a, n, is, c.nonce(a))
			}
			if is {
				continue
			}
			if err := h.note(a, c.nonce(a)); err != nil {
				t.Fatal(err)
			}
			known[a] = true
			if later := (evm.AccountAt{Account: a.Account, Block: a.Block + 1}); c.nonce(a) > 0 {
				if err := h.note(later, c.nonce(a)-1); !errors.Is(err, errNonces) {
					t.Fatalf("a nonce that falls after %v is taken: %v", a, err)
				}
			}
		}
	})
}
