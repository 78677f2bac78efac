package agreement

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// says are answers of endpoints a, b, c and so on, each at a host of its own unless another one is named.
func says[T any](values []T, hosts ...string) (answers []Answer[T]) {
	for i, v := range values {
		name := string(rune('a' + i))
		a := Answer[T]{From: name, Host: name, Value: v}
		if i < len(hosts) {
			a.Host = hosts[i]
		}
		answers = append(answers, a)
	}
	return answers
}

func TestSame(t *testing.T) {
	for name, c := range map[string]struct {
		said   []int
		hosts  []string
		need   int
		want   int
		agreed bool
	}{
		"two alike":                    {[]int{7, 7}, nil, 2, 7, true},
		"the liar first":               {[]int{9, 7, 7}, nil, 2, 7, true},
		"the liar last":                {[]int{7, 7, 9}, nil, 2, 7, true},
		"two differ":                   {[]int{7, 9}, nil, 2, 0, false},
		"one alone":                    {[]int{7}, nil, 2, 0, false},
		"one is all there is":          {[]int{7}, nil, 1, 7, true},
		"two of one host":              {[]int{9, 9}, []string{"x", "x"}, 2, 0, false},
		"two of one host against two":  {[]int{9, 9, 7, 7}, []string{"x", "x", "y", "z"}, 2, 7, true},
		"two against two":              {[]int{9, 9, 7, 7}, nil, 2, 0, false},
		"nobody":                       {nil, nil, 1, 0, false},
		"zero is an answer":            {[]int{0, 0}, nil, 2, 0, true},
		"zero is an answer like other": {[]int{0, 5, 5}, nil, 2, 5, true},
	} {
		got, by, agreed := Same(says(c.said, c.hosts...), c.need)
		if got != c.want || agreed != c.agreed || agreed != (len(by) > 0) {
			t.Errorf("%s: %d %v %t", name, got, by, agreed)
		}
	}
	if got := Dissent(says([]int{9, 7, 7}), 7); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v say otherwise", got)
	}
}

func TestAtLeast(t *testing.T) {
	for name, c := range map[string]struct {
		said   []uint64
		hosts  []string
		need   int
		want   uint64
		agreed bool
	}{
		"two alike":                 {[]uint64{7, 7}, nil, 2, 7, true},
		"one too high":              {[]uint64{70, 7, 7}, nil, 2, 7, true},
		"one too low":               {[]uint64{7, 0, 7}, nil, 2, 7, true},
		"one of two":                {[]uint64{70, 7}, nil, 2, 7, true},
		"two of one host":           {[]uint64{70, 70, 7}, []string{"x", "x", "y"}, 2, 7, true},
		"one alone":                 {[]uint64{7}, nil, 2, 0, false},
		"all there is":              {[]uint64{7}, nil, 1, 7, true},
		"a host contradicts itself": {[]uint64{70, 7}, []string{"x", "x"}, 2, 0, false},
	} {
		if got, _, agreed := AtLeast(says(c.said, c.hosts...), c.need); got != c.want || agreed != c.agreed {
			t.Errorf("%s: %d %t", name, got, agreed)
		}
	}
}

func TestLowerMedian(t *testing.T) {
	for name, c := range map[string]struct {
		said  []uint64
		hosts []string
		want  uint64
	}{
		"one":                        {[]uint64{7}, nil, 7},
		"the lower of two":           {[]uint64{100, 7}, nil, 7},
		"one too high":               {[]uint64{100, 7, 8}, nil, 8},
		"one too low":                {[]uint64{0, 7, 8}, nil, 7},
		"the lower middle of four":   {[]uint64{9, 1, 8, 7}, nil, 7},
		"two of one host count once": {[]uint64{100, 100, 7}, []string{"x", "x", "y"}, 7},
	} {
		got, found := LowerMedian(says(c.said, c.hosts...), cmp.Compare[uint64])
		if !found || got.Value != c.want {
			t.Errorf("%s: %d", name, got.Value)
		}
	}
	if _, found := LowerMedian(says([]uint64(nil)), cmp.Compare[uint64]); found {
		t.Error("a median of nothing")
	}
}

// With one of three hosts wrong, whatever it says, the result of each rule lies between two honest answers, or is none.
func TestOneLiarDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := rapid.SliceOfN(rapid.Uint64Range(1, 20), 2, 4).Draw(t, "honest")
		lie := rapid.Uint64Range(0, 40).Draw(t, "lie")
		at := rapid.IntRange(0, len(honest)).Draw(t, "at")
		answers := says(slices.Insert(slices.Clone(honest), at, lie))
		if v, _, agreed := Same(answers, 2); agreed && !slices.Contains(honest, v) {
			t.Errorf("same: %d", v)
		}
		if v, _, agreed := AtLeast(answers, 2); !agreed || v > slices.Max(honest) {
			t.Errorf("at least: %d %t", v, agreed)
		}
		if m, _ := LowerMedian(answers, cmp.Compare[uint64]); m.Value > slices.Max(honest) {
			t.Errorf("median: %d", m.Value)
		}
	})
}

// branch names the blocks of one branch: those above the fork differ.
func branch(salt byte, fork uint64) func(n uint64) chain.BlockRef {
	return func(n uint64) chain.BlockRef {
		b := chain.BlockRef{Number: n, Hash: chain.Hash{31: byte(n)}}
		if n > fork {
			b.Hash[0] = salt
		}
		return b
	}
}

// The matrix of finality: what each endpoint calls final, and which branch it is on.
func TestFinal(t *testing.T) {
	honest, lie := branch(0, 100), branch(1, 40)
	type word struct {
		final  uint64
		branch func(uint64) chain.BlockRef
		host   string
		mute   bool // about the past
	}
	h := func(n uint64) word { return word{final: n, branch: honest} }
	for name, c := range map[string]struct {
		words []word
		need  int
		want  chain.BlockRef
		wrong []string
	}{
		"all alike":                  {[]word{h(50), h(50), h(50)}, 2, honest(50), nil},
		"one lags":                   {[]word{h(50), h(47), h(50)}, 2, honest(50), nil},
		"one of two lags":            {[]word{h(50), h(47)}, 2, honest(47), nil},
		"one of two has forgotten":   {[]word{h(50), h(0)}, 2, honest(0), nil},
		"one calls the newest final": {[]word{h(52), h(50), h(49)}, 2, honest(50), nil},
		"one of two calls it final":  {[]word{h(52), h(50)}, 2, honest(50), nil},
		"one is on another branch above": {[]word{{final: 60, branch: lie}, h(50), h(49)}, 2, honest(49),
			[]string{"a"}},
		"one is on another branch": {[]word{{final: 50, branch: lie}, h(50), h(50)}, 2, honest(50),
			[]string{"a"}},
		"one is on another branch below": {[]word{{final: 45, branch: lie}, h(50), h(49)}, 2, honest(49), nil},
		"one of two is on another":       {[]word{{final: 60, branch: lie}, h(50)}, 2, chain.BlockRef{}, nil},
		"the lie is told by one host": {[]word{{final: 60, branch: lie, host: "x"},
			{final: 60, branch: lie, host: "x"}, h(50), h(50)}, 2, honest(50), []string{"a", "b"}},
		"one does not know the past": {[]word{{final: 52, branch: honest, mute: true}, h(50)}, 2, chain.BlockRef{},
			nil},
		"one is all there is": {[]word{h(50)}, 1, honest(50), nil},
		"nobody":              {nil, 1, chain.BlockRef{}, nil},
	} {
		words := map[string]word{}
		var claims []Answer[chain.BlockRef]
		for i, w := range c.words {
			from := string(rune('a' + i))
			words[from] = w
			claims = append(claims, Answer[chain.BlockRef]{From: from, Host: cmp.Or(w.host, from),
				Value: w.branch(w.final)})
		}
		got := Final(claims, c.need, func(from string, number uint64) (chain.Hash, error) {
			if words[from].mute {
				return chain.Hash{}, errors.New("missing trie node")
			}
			return words[from].branch(number).Hash, nil
		})
		if got.Block != c.want || !slices.Equal(slices.Sorted(slices.Values(got.Contradict)), c.wrong) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
