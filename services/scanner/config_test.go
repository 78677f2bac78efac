package scanner

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/service/config"
)

func TestDefaultsLackOnlyWhatNobodyKnows(t *testing.T) {
	cfg := DefaultConfig()
	set, err := config.New("scanner", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Load(nil)
	want := []string{"venue.data_store: no address given", "venue.event_emitter: no address given",
		"scanner.start_block: is not set"}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("problems: %v", lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("problem %d: %s, want %s…", i, line, want[i])
		}
	}
	_, err = set.Load([]string{
		"--venue.event_emitter=0xe300000000000000000000000000000000000001", "--scanner.start_block=7",
		"--scanner.signers=0xe300000000000000000000000000000000000002,0xe300000000000000000000000000000000000003",
		"--scanner.price.url=http://h",
		"--venue.data_store=0xe300000000000000000000000000000000000004",
	})
	if err != nil || len(cfg.Scanner.Signers) != 2 || cfg.Scanner.StartBlock != 7 || !cfg.Scanner.Price.URL.IsSet() {
		t.Errorf("%+v, %v", cfg.Scanner, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := DefaultConfig()
	good.Scanner.StartBlock = 1
	for want, spoil := range map[string]func(*Config){
		"takeover_after: 1ms is not between": func(c *Config) { c.Scanner.TakeoverAfter = time.Millisecond },
		"max_head_age: 2h0m0s is not":        func(c *Config) { c.Scanner.MaxHeadAge = 2 * time.Hour },
	} {
		cfg := good
		spoil(&cfg)
		if err := cfg.Scanner.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s…", err, want)
		}
	}
	if err := good.Validate(); err == nil || !strings.HasPrefix(err.Error(), "venue.data_store: ") {
		t.Errorf("a scanner without a DataStore: %v", err)
	}
}

func TestBackfillIsChecked(t *testing.T) {
	if err := DefaultConfig().Scanner.Backfill.Validate(); err != nil {
		t.Error(err)
	}
	want := []string{
		"min_blocks: 0 is not between", "workers: 0 is not between", "max_range: 0 is not between",
		"max_blocks: 0 is not between", "max_bytes: 0 is not between",
	}
	for i, line := range strings.Split((Backfill{}).Validate().Error(), "\n") {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("problem %d: %s, want %s…", i, line, want[i])
		}
	}
}

func TestParams(t *testing.T) {
	market := chain.Address{0x3a, 1}
	long := chain.Hash{7}
	for want, p := range map[chain.Hash]Param{
		perp.BaseKey("A"):                           {Name: "A", Kind: "int"},
		perp.DataStoreKey("A", market.Hash()):       {Name: "A", Args: []string{market.Hex()}, Kind: "uint"},
		perp.DataStoreKey("A", long):                {Name: "A", Args: []string{long.Hex()}, Kind: "bytes32"},
		perp.DataStoreKey("A", perp.BoolWord(true)): {Name: "A", Args: []string{"true"}, Kind: "bool"},
		long: {Key: long, Kind: "address"},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		if key, err := p.key(); err != nil || key != want {
			t.Errorf("%+v: key %s, %v; want %s", p, key, err, want)
		}
	}
	for want, p := range map[string]Param{
		"kind: ":                    {Name: "A", Kind: "float"},
		"name: give either":         {Kind: "uint"},
		"name: give either name ":   {Name: "A", Key: long, Kind: "uint"},
		`args: "ten" is no hash`:    {Name: "A", Args: []string{"ten"}, Kind: "uint"},
		`args: "0x12" is no hash: `: {Name: "A", Args: []string{"0x12"}, Kind: "uint"},
	} {
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s…", p, err, want)
		}
	}
}
