package scanner

import "perpkeeper/pkg/service/check"

// Backfill is the [scanner.backfill] section: how history is fetched.
type Backfill struct {
	// Workers: ranges whose headers are read at the same time, and blocks read at the same time.
	Workers  int    `toml:"-"`
	MaxRange uint64 `toml:"max_range" help:"blocks of a range at most; fewer where they are full of logs. With a quarter of it missing, final blocks are published in ranges"`
	// MaxBlocks: blocks held in memory at most.
	MaxBlocks int `toml:"-"`
	// MaxBytes: bytes of logs and headers held in memory before no more ranges are read; those being read come on top.
	MaxBytes int `toml:"-"`
}

// Validate names every setting that cannot work.
func (b Backfill) Validate() error {
	return check.Between("max_range", b.MaxRange, 1, 1<<20)
}
