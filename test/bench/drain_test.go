package bench

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	"perpkeeper/lab/devnet/evmnode"
)

// drainCase is a crash day: what is wrong with the world when a thousand positions cross at once.
type drainCase struct {
	name  string
	fleet fleet
	// before prepares what runs beside; crash happens together with the jump of the price.
	before, crash func(*keeper)
	// beside says that orders and requests flow beside the liquidations.
	beside bool
	// over is by how many percent it may take longer than the chain itself needs; see [keeper.needs].
	over int
}

// patientOver is the over of a day on which more than the price goes wrong: 35 s of the 21.6 that a thousand
// liquidations need.
const patientOver = 62

// LIQ-6: positions that all cross in one tick, from the jump of the price to the last of them landed: a whole keeper
// with four signers and its shipped limits, blocks of 450 ms and 55 million gas of which 5 % are kept for payments, 2.4
// million gas a liquidation: 21.6 s for a thousand at the least, and 24 where nothing else goes wrong.
// KEEPER_LONG=1, minutes; KEEPER_POSITIONS and KEEPER_SIGNERS change the size, KEEPER_IN_FLIGHT holds the limit of
// liquidations, KEEPER_RESULTS names a directory for what landed when.
func TestDrain(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: set KEEPER_LONG=1")
	}
	for _, c := range []drainCase{
		{name: "plain", over: 11},
		{name: "orders beside", before: func(k *keeper) { k.flow(20) }, beside: true},
		{name: "orders beside with signers of their own", fleet: fleet{own: 2}, before: func(k *keeper) { k.flow(20) },
			beside: true},
		{name: "gas price x50", crash: func(k *keeper) {
			k.Node().SetMinGasPrice(50 * evmnode.DefaultMinGasPrice)
		}},
		{name: "finality stalls", crash: func(k *keeper) { k.stallFinality(time.Minute) }},
		keyLost(),
		{name: "a remote signer of 300 ms", over: 11,
			fleet: fleet{remote: &remoteSigner{slow: 300 * time.Millisecond}}},
		{name: "a flood of waiting orders", over: 11, before: func(k *keeper) { k.flood(1000) }},
	} {
		t.Run(c.name, c.run)
	}
}

func (c drainCase) run(t *testing.T) {
	positions, signers := setting("KEEPER_POSITIONS", 1000), setting("KEEPER_SIGNERS", 4)
	c.fleet.signers, c.fleet.inFlight = signers, setting("KEEPER_IN_FLIGHT", 0)
	k := newKeeper(t, c.fleet)
	k.open(positions)
	if c.before != nil {
		c.before(k)
	}
	asked := k.asked.Load()
	d := k.drain(positions, func() {
		if c.crash != nil {
			c.crash(k)
		}
		k.price(903) // per mille: ten times leveraged, a little of the margin is left
	})
	d.write(t, c.name)
	for _, share := range []int{1, 10, 25, 50, 75, 90, 100} {
		t.Logf("%3d %% of %d landed %.1f s after the jump", share, positions, d.after(share).Seconds())
	}
	t.Logf("%.1f a second; %d of gas each; blocks %.0f %% full", float64(positions)/d.after(100).Seconds(),
		d.gasEach(), 100*d.full())
	if raised := k.prices(d); raised > 0 && c.crash == nil && !c.beside {
		t.Errorf("%d were raised, and nobody but us has paid anything", raised)
	}
	needs := k.needs(positions, d)
	limit := needs * time.Duration(100+cmp.Or(c.over, patientOver)) / 100
	t.Logf("the chain needs %.1f s, and the limit is %.1f s", needs.Seconds(), limit.Seconds())
	if positions == 1000 && signers == 4 && d.after(100) > limit {
		t.Errorf("landed after %.1f s, want %.1f s", d.after(100).Seconds(), limit.Seconds())
	}
	if extra := d.others(k); extra > 0 {
		t.Errorf("%d liquidations more than positions were sent and landed", extra)
	}
	if inOrder := d.inOrder(k); inOrder < 0.9 {
		t.Errorf("%.1f %% of the pairs of liquidations were taken in the order of their margins", 100*inOrder)
	} else {
		t.Logf("%.1f %% of the pairs of liquidations of a signer were taken in the order of their margins", 100*inOrder)
	}
	if !c.beside {
		return
	}
	held, executed := d.heldBack(k)
	t.Logf("%d orders and requests were asked for meanwhile, and %d executed; liquidations by how many blocks some "+
		"held them back: %v", k.asked.Load()-asked, executed, held)
	if executed == 0 {
		t.Error("none of the orders and requests beside was executed")
	}
	if most := len(held) - 1; most > 2 {
		t.Errorf("a liquidation was held back by %d blocks", most)
	}
}

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
