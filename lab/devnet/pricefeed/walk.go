package pricefeed

import (
	"math/big"
	"math/rand/v2"
)

const basis = 10_000 // Basis points in one.

// walk is the price of one token. Its mid price is base · 1.0001^step; only step walks.
type walk struct {
	base   *big.Int // USD·10^30 per smallest unit.
	step   int64
	stride int64 // The most a tick moves step by; 0 for a stable price.
	spread int64 // Basis points from min to max.
	pinned bool
	random *rand.Rand
}

func newWalk(t Token, seed uint64, index int) *walk {
	return &walk{base: t.Price, stride: t.Stride, spread: t.Spread, random: rand.New(rand.NewPCG(seed, uint64(index)))}
}

func (w *walk) tick() {
	// Drawn when pinned, too: a pin does not change what comes after it.
	moved := w.random.Int64N(2*w.stride+1) - w.stride
	if !w.pinned {
		w.step += moved
	}
}

// mid is the price between min and max, rounded down.
func (w *walk) mid() *big.Int {
	up, down := big.NewInt(basis+1), big.NewInt(basis)
	if w.step < 0 {
		up, down = down, up
	}
	exponent := big.NewInt(max(w.step, -w.step))
	mid := new(big.Int).Mul(w.base, up.Exp(up, exponent, nil))
	return mid.Div(mid, down.Exp(down, exponent, nil))
}

// mark is the price to buy and to sell at.
func (w *walk) mark() (low, high *big.Int) {
	mid := w.mid()
	half := new(big.Int).Mul(mid, big.NewInt(w.spread))
	half.Div(half, big.NewInt(2*basis))
	return new(big.Int).Sub(mid, half), new(big.Int).Add(mid, half)
}

// shocked is the base price after a sudden move by so many basis points.
func (w *walk) shocked(points int64) *big.Int {
	price := new(big.Int).Mul(w.mid(), big.NewInt(basis+points))
	return price.Div(price, big.NewInt(basis))
}

// rebase makes price the new place to walk from.
func (w *walk) rebase(price *big.Int) { w.base, w.step = price, 0 }
