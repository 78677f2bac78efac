package chain

import "testing"

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		v      Uint
		places int
		want   string
	}{
		{U64(0), 0, "0"}, {U64(0), 18, "0"}, {U64(1), 18, "0.000000000000000001"}, {U64(1500), 3, "1.5"},
		{U64(1500), 0, "1500"}, {U64(2000), 3, "2"}, {U64(50), 3, "0.05"}, {Pow10(30), 30, "1"},
		{Pow10(77), 30, Pow10(47).String()},
	} {
		if got := c.v.Decimal(c.places); got != c.want {
			t.Errorf("%s with %d places: %s, want %s", c.v, c.places, got, c.want)
		}
	}
}

func TestParseDecimal(t *testing.T) {
	for text, want := range map[string]Uint{
		"0": U64(0), "1.5": U64(1500), "007.125": U64(7125), "0.001": U64(1), "2": U64(2000),
	} {
		if got, err := ParseDecimal(text, 3); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1.0001", "1e3", "1_0", "1.2.3", " 1",
		Pow10(77).String()} {
		if got, err := ParseDecimal(text, 3); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}
