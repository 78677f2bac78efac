package wire

import "testing"

// Only what stands under the highest claim of a partition counts, whatever epochs stand beside.
func TestClaimInForce(t *testing.T) {
	var c Claim
	for i, r := range []struct {
		m     Message
		epoch uint64
		want  bool
	}{
		{BlockEnd{}, 0, false}, {BlockEnd{}, 7, false}, // nobody has claimed
		{Epoch{Number: 2}, 2, true}, {BlockEnd{}, 2, true}, {Log{}, 2, true},
		{BlockEnd{}, 1, false}, {BlockEnd{}, 7, false}, {BlockEnd{}, 2, true},
		{Epoch{Number: 2, Owner: "second"}, 2, false}, {Epoch{Number: 1}, 1, false}, {BlockEnd{}, 2, true},
		{Epoch{Number: 8}, 8, true}, {BlockEnd{}, 2, false}, {Halt{}, 8, true},
	} {
		if got := c.Counts(r.m, Meta{Epoch: r.epoch}); got != r.want {
			t.Errorf("record %d, a %T of epoch %d: counts = %t", i, r.m, r.epoch, got)
		}
	}
	if c != 8 {
		t.Errorf("epoch %d is in force", c)
	}
}
