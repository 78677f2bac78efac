package scanner

import (
	"errors"

	"perpkeeper/pkg/check"
)

// Backfill is the [scanner.backfill] section: how history is fetched.
type Backfill struct {
	MinBlocks int    `toml:"min_blocks" help:"how many final blocks must be missing before they are published in ranges, and not one by one"`
	Workers   int    `toml:"workers" help:"ranges whose headers are read at the same time, and blocks read at the same time"`
	MaxRange  uint64 `toml:"max_range" help:"blocks of a range at most; fewer where they are full of logs"`
	MaxBlocks int    `toml:"max_blocks" help:"blocks held in memory at most"`
	MaxBytes  int    `toml:"max_bytes" help:"bytes of logs and headers held in memory before no more ranges are read; those being read come on top"`
}

// Validate names every setting that cannot work.
func (b Backfill) Validate() error {
	return errors.Join(
		check.Between("min_blocks", b.MinBlocks, 1, 1<<30),
		check.Between("workers", b.Workers, 1, 256),
		check.Between("max_range", b.MaxRange, 1, 1<<20),
		check.Between("max_blocks", b.MaxBlocks, 1, 1<<24),
		check.Between("max_bytes", b.MaxBytes, 1<<20, 1<<34),
	)
}
