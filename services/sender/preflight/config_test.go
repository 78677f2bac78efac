package preflight

import (
	"strings"
	"testing"
)

func TestGasThatNoBlockTakes(t *testing.T) {
	for _, limit := range []uint64{20_999, 17_000_000} {
		if err := (Gas{Shift: limit}).Validate(); err == nil || !strings.Contains(err.Error(), "shift") {
			t.Errorf("got %v", err)
		}
	}
}
