package devnet

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// shockPoints is how far a shock of the devnet's own moves a price at most, in basis points: enough for a tight
// position, too little for most.
const shockPoints = 120

// shake moves a price at once, every now and then, as markets do: which, how far and which way follows from the seed.
func (d *Devnet) shake(ctx context.Context, every time.Duration, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, uint64(every)))
	symbols := slices.Sorted(maps.Keys(walks))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		points := shockPoints/2 + random.Int64N(shockPoints/2)
		if random.IntN(2) == 0 {
			points = -points
		}
		if err := d.Shock(symbols[random.IntN(len(symbols))], points); err != nil {
			return fmt.Errorf("shocking a price: %w", err)
		}
	}
}
