package job

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

func TestIDsTellConditionsApart(t *testing.T) {
	key := chain.Hash{1}
	ids := map[string]bool{}
	for _, id := range []string{
		LiquidationID(key, 1), LiquidationID(key, 2), OrderID(key, 1), OrderID(key, 2), RequestID(Deposit, key),
		RequestID(Shift, key),
		LiquidationID(chain.Hash{2}, 1),
	} {
		if ids[id] {
			t.Errorf("%s names two conditions", id)
		}
		ids[id] = true
	}
	again := key
	if OrderID(key, 1) != OrderID(again, 1) {
		t.Error("the same condition must have the same id")
	}
}

// LIQ-6: by class, then by lowest margin ratio.
func TestBeforeIsATotalOrder(t *testing.T) {
	draw := func(t *rapid.T, label string) Job {
		return Job{
			ID:         rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label+" id"),
			Class:      Class(rapid.IntRange(1, 5).Draw(t, label+" class")),
			Ratio:      chain.U64(rapid.Uint64Range(0, 2).Draw(t, label+" ratio")),
			DueSinceMs: rapid.Uint64Range(0, 2).Draw(t, label+" due since"),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t, "a"), draw(t, "b"), draw(t, "c")
		same := a.ID == b.ID && a.Class == b.Class && a.Ratio == b.Ratio && a.DueSinceMs == b.DueSinceMs
		if a.Before(b) == b.Before(a) && !same {
			t.Fatalf("%+v and %+v have no order", a, b)
		}
		if a.Before(b) && b.Before(c) && !a.Before(c) {
			t.Fatal("the order is not transitive")
		}
		if a.Class < b.Class && !a.Before(b) || a.Class == b.Class && a.Ratio.Less(b.Ratio) && !a.Before(b) {
			t.Fatalf("%+v must go before %+v", a, b)
		}
	})
}

// NON-9: a change of the signers moves only the accounts it has to.
func TestRouteMovesOnlyWhatItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var signers []chain.Address
		for i := range rapid.IntRange(1, 8).Draw(t, "signers") {
			signers = append(signers, chain.Address{byte(i + 1)})
		}
		var account chain.Address
		copy(account[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "account"))
		before := Route(account, signers)
		gone := rapid.SampledFrom(signers).Draw(t, "gone")
		rest := slices.DeleteFunc(slices.Clone(signers), func(s chain.Address) bool { return s == gone })
		if after := Route(account, rest); before != gone && after != before {
			t.Fatalf("%s moved from %s to %s though only %s left", account, before, after, gone)
		}
		slices.Reverse(signers)
		if Route(account, signers) != before {
			t.Fatal("the order of the list must not matter")
		}
	})
	if !Route(chain.Address{1}, nil).IsZero() {
		t.Error("no signer, no route")
	}
}

func TestValidate(t *testing.T) {
	good := Job{ID: OrderID(chain.Hash{1}, 1), Kind: Order, Signer: chain.Address{1}, DueSinceMs: 1_700_000_000_000}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Job){
		"no id":         func(j *Job) { j.ID = "" },
		"a long id":     func(j *Job) { j.ID = strings.Repeat("x", 257) },
		"another kind":  func(j *Job) { j.Kind = "dance" },
		"nobody's":      func(j *Job) { j.Signer = chain.Address{} },
		"never born":    func(j *Job) { j.DueSinceMs = 1<<64 - 1 },
		"never expires": func(j *Job) { j.ExpiresMs = 1 << 63 },
		"never found":   func(j *Job) { j.Evidence.Block.TimeMs = 1 << 63 },
	} {
		bad := good
		if spoil(&bad); bad.Validate() == nil {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

// NON-9: every job gets a signer that takes its lane, the same one at every finding, and a signer that leaves the lane
// moves only the accounts it had there.
func TestSignersTakeTheirLanes(t *testing.T) {
	kinds := append(Kinds(), "?")
	rapid.Check(t, func(t *rapid.T) {
		var all []chain.Address
		bound := map[chain.Address][]Lane{}
		for i := range rapid.IntRange(1, 8).Draw(t, "signers") {
			all = append(all, chain.Address{byte(i + 1)})
			if rapid.Bool().Draw(t, "bound") {
				bound[all[i]] = rapid.SliceOfNDistinct(rapid.SampledFrom(Lanes()), 1, 3, rapid.ID[Lane]).
					Draw(t, "lanes")
			}
		}
		takes := func(s chain.Address, lane Lane) bool { return bound[s] == nil || slices.Contains(bound[s], lane) }
		var account chain.Address
		copy(account[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "account"))
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		signers := NewSigners(all, bound)
		got, served := signers.Route(kind, account), !slices.Contains(signers.Unserved(), kind.Lane())
		if served != slices.ContainsFunc(all, func(s chain.Address) bool { return takes(s, kind.Lane()) }) {
			t.Fatalf("%s: served %t by %v, bound are %v", kind.Lane(), served, all, bound)
		}
		if got.IsZero() == served || served && !takes(got, kind.Lane()) {
			t.Fatalf("%s of lane %s goes to %s; bound are %v", kind, kind.Lane(), got, bound)
		}
		if len(bound) == 0 && got != Route(account, all) {
			t.Fatalf("nobody is bound, and %s is not who the account has always gone to", got)
		}
		slices.Reverse(all)
		if again := NewSigners(all, bound).Route(kind, account); again != got {
			t.Fatalf("%s and then %s", got, again)
		}
		other := rapid.SampledFrom(all).Draw(t, "leaves")
		rest := slices.DeleteFunc(slices.Clone(all), func(s chain.Address) bool { return s == other })
		if after := NewSigners(rest, bound).Route(kind, account); other != got && after != got {
			t.Fatalf("%s left, and %s became %s", other, got, after)
		}
	})
}
