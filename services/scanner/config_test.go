package scanner

import (
	"strings"
	"testing"

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
	want := []string{"venue.data_store: no address given", "scanner.start_block: is not set"}
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
		"--scanner.start_block=7",
		"--scanner.price.url=http://h",
		"--venue.data_store=0xe300000000000000000000000000000000000004",
	})
	if err != nil || cfg.Scanner.StartBlock != 7 || !cfg.Scanner.Price.URL.IsSet() {
		t.Errorf("%+v, %v", cfg.Scanner, err)
	}
}

func TestBackfillIsChecked(t *testing.T) {
	if err := DefaultConfig().Scanner.Backfill.Validate(); err != nil {
		t.Error(err)
	}
	if err := (Backfill{}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "max_range: 0 is not between") {
		t.Error(err)
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
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		if words, err := p.listed(nil); err != nil || words[0].Key != want {
			t.Errorf("%+v: %+v, %v; want %s", p, words, err, want)
		}
	}
	for want, p := range map[string]Param{
		"kind: ":                    {Name: "A", Kind: "float"},
		"name: it is missing":       {Kind: "uint"},
		`args: "ten" is no hash`:    {Name: "A", Args: []string{"ten"}, Kind: "uint"},
		`args: "0x12" is no hash: `: {Name: "A", Args: []string{"0x12"}, Kind: "uint"},
	} {
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s…", p, err, want)
		}
	}
}
