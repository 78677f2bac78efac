package requirements

import (
	"fmt"
	"slices"
)

// standards are the prefixes of other people's documents. Their numbers explain themselves.
var standards = []string{"BEP", "BIP", "CVE", "EIP", "ERC", "IEEE", "ISO", "RFC", "SHA", "UTF"}

// Check lists what is wrong, one sentence each, in a fixed order. None: every requirement that is not said to be unmet
// is implemented and proven, and every id that the sources use is in the list.
func (l List) Check(s Sources) []string {
	problems := append(l.checkItself(), l.checkUses(s)...)
	for _, g := range l.Groups {
		for _, id := range l.ids(g) {
			problems = append(problems, l.checkOne(s, id)...)
		}
	}
	return problems
}

// checkItself looks for entries that nobody would see in the document.
func (l List) checkItself() []string {
	var problems []string
	for id, r := range l.Requirements {
		if prefix, number := split(id); number < 0 || !l.knowsPrefix(prefix) {
			problems = append(problems, fmt.Sprintf("%s belongs to no group of %s", id, ListPath))
		}
		if _, known := l.Requirements[r.CaseOf]; r.CaseOf != "" && !known {
			problems = append(problems, fmt.Sprintf("%s is a case of %s, which is not in %s", id, r.CaseOf, ListPath))
		}
	}
	slices.Sort(problems)
	return problems
}

// checkUses looks for ids without a sentence. In scripts only those with a prefix of ours count: others are names of
// files and arguments.
func (l List) checkUses(s Sources) []string {
	var problems []string
	for _, use := range s.Uses {
		prefix, _ := split(use.ID)
		if slices.Contains(standards, prefix) || !l.knowsPrefix(prefix) && commentMark(use.File) != "" {
			continue
		}
		if l.Requirements[use.ID].Text == "" {
			problems = append(problems, fmt.Sprintf("%s names %s, which has no sentence in %s", use.File, use.ID,
				ListPath))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

func (l List) checkOne(s Sources, id string) []string {
	r := l.Requirements[id]
	if r.NotMet != "" {
		return nil
	}
	var problems []string
	if r.CaseOf == "" && len(s.Implementations[id]) == 0 {
		problems = append(problems, fmt.Sprintf("%s is implemented nowhere: "+
			"name it in the comment of the code that meets it, or say in %s why it is not met", id, ListPath))
	}
	if len(s.Proofs[id]) == 0 {
		problems = append(problems, fmt.Sprintf("%s is proven by no test: "+
			"name it in the comment of the test that proves it, or say in %s why it is not met", id, ListPath))
	}
	return problems
}
