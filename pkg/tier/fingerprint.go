package tier

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// rule counts the ways in which [Windows.Turn] has shared jobs out: it is raised when its answer changes.
const rule = 2

// Fingerprint is a hash of all settings that the keepers of a venue must have alike to agree whose turn a job is: how
// many tiers there are and whose signers are whose, policy and window, and what a build has as constants and as its
// rule. Two keepers with different ones take jobs that are another's. It is 8 hexadecimal digits.
func (c Config) Fingerprint(own []chain.Address) string {
	var signers []string
	for address, tier := range c.Roster(own) {
		signers = append(signers, fmt.Sprintf("%s=%d", address, tier))
	}
	slices.Sort(signers)
	sum := fnv.New32a()
	_, _ = fmt.Fprintf(sum, "%d %d %s %s %s %s %s", rule, c.Tiers, c.Policy, c.Window, Guard, job.RenewedAfter,
		strings.Join(signers, " ")) // a hash takes everything
	return fmt.Sprintf("%08x", sum.Sum32())
}
