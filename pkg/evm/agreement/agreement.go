package agreement

import (
	"cmp"
	"slices"
)

// Answer is one endpoint's reply, with the endpoint it came from.
type Answer[T any] struct {
	From  string // the endpoint, as people know it
	Host  string // where it is; endpoints of one host are one source
	Value T
}

// Required is how many hosts have to agree on a fact that cannot be taken back, of so many that are configured: two,
// where there are two.
func Required(hosts int) int { return min(2, hosts) }

// Same returns the value that most hosts give, if at least so many do, and who gives it. Where two values are given by
// equally many there is none.
func Same[T comparable](answers []Answer[T], need int) (value T, by []string, agreed bool) {
	most, tied := 0, false
	for _, a := range answers {
		if a.Value == value && most > 0 {
			continue
		}
		backers := filter(answers, func(b Answer[T]) bool { return b.Value == a.Value })
		switch n := hosts(backers); {
		case n > most:
			most, tied, value, by = n, false, a.Value, names(backers)
		case n == most:
			tied = true
		}
	}
	if most < need || tied || most == 0 {
		var none T
		return none, nil, false
	}
	return value, by, true
}

// AtLeast returns the highest number that so many hosts have reached, and who has: of a counter that only grows, such
// as the transactions an account has sent. An answer that is too low counts for what it is.
func AtLeast[T cmp.Ordered](answers []Answer[T], need int) (value T, by []string, agreed bool) {
	sorted := slices.SortedFunc(slices.Values(answers),
		func(a, b Answer[T]) int { return cmp.Compare(b.Value, a.Value) })
	for i, a := range sorted {
		if hosts(sorted[:i+1]) >= need {
			reached := filter(sorted, func(b Answer[T]) bool { return b.Value >= a.Value })
			return a.Value, names(reached), true
		}
	}
	return value, nil, false
}

// LowerMedian returns the answer in the middle, by an order that the caller gives, one of each host; of two in the
// middle the lower one. It is false where nobody answers.
func LowerMedian[T any](answers []Answer[T], order func(a, b T) int) (middle Answer[T], found bool) {
	sorted := slices.SortedStableFunc(slices.Values(answers),
		func(a, b Answer[T]) int { return order(a.Value, b.Value) })
	seen := map[string]bool{}
	sorted = filter(sorted, func(a Answer[T]) bool {
		first := !seen[a.Host]
		seen[a.Host] = true
		return first
	})
	if len(sorted) == 0 {
		return middle, false
	}
	return sorted[(len(sorted)-1)/2], true
}

// Dissent lists who gives another value than the one that was agreed on.
func Dissent[T comparable](answers []Answer[T], agreed T) []string {
	return names(filter(answers, func(a Answer[T]) bool { return a.Value != agreed }))
}

func filter[T any](answers []Answer[T], keep func(Answer[T]) bool) (kept []Answer[T]) {
	for _, a := range answers {
		if keep(a) {
			kept = append(kept, a)
		}
	}
	return kept
}

// hosts counts the hosts that answers come from.
func hosts[T any](answers []Answer[T]) int {
	different := map[string]bool{}
	for _, a := range answers {
		different[a.Host] = true
	}
	return len(different)
}

func names[T any](answers []Answer[T]) (list []string) {
	for _, a := range answers {
		list = append(list, a.From)
	}
	return list
}
