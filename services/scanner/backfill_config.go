package scanner

import (
	"errors"

	"perpkeeper/pkg/service/check"
)

// Backfill is the [scanner.backfill] section: how history is fetched.
type Backfill struct {
	MinBlocks int `toml:"min_blocks" help:"how many final blocks must be missing before they are published in ranges, and not one by one"`
	// Workers: ranges whose headers are read at the same time, and blocks read at the same time.
	Workers  int    `toml:"-"`
	MaxRange uint64 `toml:"max_range" help:"blocks of a range at most; fewer where they are full of logs"`
	// MaxBlocks: blocks held in memory at most.
	MaxBlocks int `toml:"-"`
	// MaxBytes: bytes of logs and headers held in memory before no more ranges are read; those being read come on top.
	MaxBytes int `toml:"-"`
}

// Validate names every setting that cannot work.
func (b Backfill) Validate() error {
	return errors.Join(
		check.Between("min_blocks", b.MinBlocks, 1, 1<<30),
		check.Between("max_range", b.MaxRange, 1, 1<<20),
	)
}
