package evm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fork is a change of a chain's rules, in which nodes take part from a version of their software on: older ones stay
// behind, or follow a branch of their own.
type Fork struct {
	Name string
	At   time.Time
	// Least is the first version that knows the fork, by software.
	Least map[string]Version
}

// Version is major, minor and patch.
type Version [3]int

// String is as releases are called.
func (v Version) String() string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }

// Readiness is whether a node's software knows a fork.
type Readiness int

// The answers.
const (
	ReadinessUnknown Readiness = iota // software, or a way to write its version, of which nothing is known
	Ready
	Outdated
)

// shippedForks are those of chains by their id, as chain.forks would say them.
var shippedForks = map[uint64][]string{
	56: {"Jenner 2026-12-08T02:30:00Z bsc>=1.8.2 reth-bsc>=0.1.1"},
	97: {"Jenner 2026-10-29T02:30:00Z bsc>=1.8.2 reth-bsc>=0.1.1"},
}

// forksOf are the forks of a chain: those that are configured, or else those that are shipped.
func forksOf(chainID uint64, configured []string) ([]Fork, error) {
	if len(configured) == 0 {
		configured = shippedForks[chainID]
	}
	forks := make([]Fork, len(configured))
	for i, text := range configured {
		var err error
		if forks[i], err = parseFork(text); err != nil {
			return nil, fmt.Errorf("forks: number %d: %w", i+1, err)
		}
	}
	return forks, nil
}

// parseFork reads NAME TIME SOFTWARE>=VERSION ...
func parseFork(text string) (Fork, error) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return Fork{}, fmt.Errorf("%q is not a name, a time, and software>=version at least once", text)
	}
	f := Fork{Name: words[0], Least: map[string]Version{}}
	var err error
	if seconds, is := strconv.ParseInt(words[1], 10, 64); is == nil {
		f.At = time.Unix(seconds, 0)
	} else if f.At, err = time.Parse(time.RFC3339, words[1]); err != nil {
		return Fork{}, fmt.Errorf("%q is no time (2026-12-08T02:30:00Z, or Unix seconds)", words[1])
	}
	for _, word := range words[2:] {
		software, number, found := strings.Cut(word, ">=")
		version, known := parseVersion(number)
		if !found || software == "" || !known {
			return Fork{}, fmt.Errorf("%q is not software>=version (bsc>=1.8.2)", word)
		}
		f.Least[strings.ToLower(software)] = version.number
	}
	return f, nil
}

// Readiness is what an answer of web3_clientVersion says of the fork.
func (f Fork) Readiness(software string) Readiness {
	parts := strings.Split(software, "/")
	least, known := f.Least[softwareOf(parts[0])]
	if !known {
		return ReadinessUnknown
	}
	for _, part := range parts[1:] { // an operator's own name may stand between
		version, is := parseVersion(part)
		if !is {
			continue
		}
		switch order := slices.Compare(version.number[:], least[:]); {
		case order < 0, order == 0 && version.early:
			return Outdated
		}
		return Ready
	}
	return ReadinessUnknown
}

// softwareOf is a client's name as forks call it: bsc still answers as the client that it descends from.
func softwareOf(name string) string {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	switch name {
	case "geth":
		return "bsc"
	case "bsc-reth":
		return "reth-bsc"
	}
	return name
}

// release is a version, and whether it came before the release of that number.
type release struct {
	number Version
	early  bool
}

// parseVersion reads v1.8.2, 1.8.2-stable-0a1b2c3d, 1.8 or v1.8.2-alpha.1.
func parseVersion(text string) (r release, is bool) {
	text = strings.TrimPrefix(strings.ToLower(text), "v")
	end := strings.IndexFunc(text, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
	rest := ""
	if end >= 0 {
		text, rest = text[:end], text[end:]
	}
	numbers := strings.Split(text, ".")
	if len(numbers) < 2 || len(numbers) > len(r.number)+1 {
		return release{}, false
	}
	for i, n := range numbers {
		value, err := strconv.Atoi(n)
		if err != nil {
			return release{}, false
		}
		if i < len(r.number) {
			r.number[i] = value
		}
	}
	r.early = slices.ContainsFunc([]string{"-alpha", "-beta", "-rc"}, func(s string) bool {
		return strings.HasPrefix(rest, s)
	})
	return r, true
}

// forkNotice is how long before a fork nodes are named that will miss it.
const forkNotice = 14 * 24 * time.Hour

// missing is the fork that software misses or will soon, the newest of those that have come.
func missing(forks []Fork, software string, now time.Time) (f Fork, is bool) {
	for _, next := range forks {
		soon, come := !now.Before(next.At.Add(-forkNotice)), !now.Before(next.At)
		if soon && (come || !is) && next.Readiness(software) == Outdated {
			f, is = next, true
		}
	}
	return f, is
}

// Misses says that software does not know the fork, and what does.
func (f Fork) Misses(software string) string {
	var least []string
	for name, version := range f.Least {
		least = append(least, name+" "+version.String())
	}
	slices.Sort(least)
	return fmt.Sprintf("its software, %.100q, does not know the fork %s (needed: %s or later)", software, f,
		strings.Join(least, ", "))
}

// String is the fork's name and time.
func (f Fork) String() string { return f.Name + " of " + f.At.UTC().Format("2006-01-02 15:04 MST") }
