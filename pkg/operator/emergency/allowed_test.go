package emergency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
)

// LIQ-15: the emergency signer may sign what is configured, to the digit, and nothing where no call is.
func TestMaySign(t *testing.T) {
	to := chain.Address{1}
	c := Config{Calls: []Allowed{{To: to, Calldata: "0xAABBCCDD00??"}, {To: to, Calldata: "0x11223344"}}}
	for name, want := range map[string]bool{
		"aabbccdd00ff": true, "aabbccdd0000": true, "11223344": true,
		"aabbccdd01ff": false, "aabbccdd00": false, "aabbccdd00ffff": false, "1122334400": false, "": false,
	} {
		var data []byte
		if _, err := fmt.Sscanf(name, "%x", &data); err != nil && name != "" {
			t.Fatal(err)
		}
		if got := c.MaySign(to, data); got != want {
			t.Errorf("0x%s: %t, want %t", name, got, want)
		}
		if c.MaySign(chain.Address{2}, data) {
			t.Errorf("0x%s to another contract", name)
		}
		if DefaultConfig().MaySign(to, data) {
			t.Errorf("0x%s where no call is configured", name)
		}
	}
	for calldata, want := range map[string]string{
		"0xaabbccdd": "", "0xaabbccdd????": "", "aabbccdd": "whole bytes", "0xaabbccdd0": "whole bytes",
		"0xaabbccdx": "whole bytes", "0xaabbcc": "selector", "0xaabb??dd": "selector", "": "whole bytes",
	} {
		err := Allowed{To: to, Calldata: calldata}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", calldata, err, want)
		}
	}
}

// sends is a sender of which a call may end in several ways.
type sends struct {
	log *[]string
	err map[string]error // by call
	mum bool             // the call cannot be signed
}

func (s sends) Send(_ context.Context, d Step, signed func(chain.Hash) error) error {
	if s.mum {
		return errors.New("not configured")
	}
	if err := signed(chain.Hash{7}); err != nil {
		return err
	}
	*s.log = append(*s.log, "broadcast "+d.Description)
	return s.err[d.Description]
}

// LIQ-15: a call is on record before anybody can see it, and what came of it afterwards; after one that did not succeed
// no other is sent; of one that nobody has seen in a block nothing is said.
func TestRunSends(t *testing.T) {
	steps := []Step{{Contract: chain.Address{1}, Description: "a"}, {Contract: chain.Address{1}, Description: "b"}}
	const begun = "planned a dry=false, planned b dry=false, rehearse a, rehearsed a dry=false, rehearse b, " +
		"rehearsed b " +
		"dry=false, "
	for name, c := range map[string]struct {
		cut  Stage
		mum  bool
		a    error
		want string
		fail string
	}{
		"both": {"", false, nil, "sent a dry=false, broadcast a, done a dry=false, sent b dry=false, broadcast b, " +
			"done b dry=false", ""},
		"the first fails": {"", false, fmt.Errorf("tx: %w", ErrReverted),
			"sent a dry=false, broadcast a, failed a dry=false", "failed in its block"},
		"nobody has seen it":    {"", false, errors.New("in no block"), "sent a dry=false, broadcast a", "in no block"},
		"it may not be signed":  {"", true, nil, "failed a dry=false", "not configured"},
		"it cannot be recorded": {Sent, false, nil, "failed a dry=false", "database is away"},
	} {
		f := fakeExecutor{steps: steps, cut: c.cut}
		s := sends{log: &f.log, err: map[string]error{"a": c.a}, mum: c.mum}
		_, err := Run(t.Context(), permitted(RaiseMargin), Order{Action: RaiseMargin}, &f, s, &f)
		if got := strings.TrimPrefix(strings.Join(f.log, ", "), begun); got != c.want && c.cut == "" {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if strings.Contains(strings.Join(f.log, ", "), "broadcast a") && c.cut == Sent {
			t.Errorf("%s: broadcast without a record", name)
		}
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
