package scanner

import (
	"strings"
	"testing"

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
