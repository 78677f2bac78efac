package tier

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/check"
)

// The policies (TIER-9).
const (
	PolicyWindows = "windows"
	PolicyDelay   = "delay"
)

// Config is the [tier] section (TIER-15), the same in all keepers of a venue but for the priority.
type Config struct {
	Enabled  bool          `toml:"enabled" help:"share the jobs with other keepers; false = a single keeper, which acts at once"`
	Monitor  bool          `toml:"monitor" help:"never send: watch which tier executes what, and raise alarms; needs no keys, and peers for every tier"`
	Priority int           `toml:"priority" help:"this keeper's tier: 1 is the Master, 2 the first backup, …"`
	Tiers    int           `toml:"tiers" help:"how many keepers there are"`
	Policy   string        `toml:"policy" help:"windows = each tier owns a job for a window of chain time, in turn; delay = each tier acts after its own delay"`
	Window   time.Duration `toml:"window" help:"how long a tier owns a job before it passes to the next (policy windows)"`
	// RecoveryBuffer: how long this keeper waits with every job after a start (policy delay).
	RecoveryBuffer time.Duration `toml:"-"`
	// JobMaxAge: when a waiting job is too old: market orders and requests end, others are born anew if still due.
	JobMaxAge time.Duration `toml:"-"`
	Peers     []Peer        `toml:"peers" help:"the other keepers' public signer addresses, by which the chain's evidence is read"`
}

// Peer is another keeper as the chain shows it.
type Peer struct {
	Tier    int             `toml:"tier" help:"the other keeper's priority"`
	Signers []chain.Address `toml:"signers" help:"addresses its transactions are sent from"`
}

// DefaultConfig is a keeper alone; where sharing is enabled, the first of three.
func DefaultConfig() Config {
	return Config{
		Priority: 1, Tiers: 3, Policy: PolicyWindows, Window: 30 * time.Second, RecoveryBuffer: 30 * time.Second,
		JobMaxAge: job.RenewedAfter,
	}
}

// Guard is the last part of a window, in which nothing is sent: what was sent before has landed and is known when the
// next window begins.
const Guard = 3 * time.Second

// ExecutionDelay is this tier's wait after it found a job, under the policy delay: none for the Master, a window for
// the first backup, two for the second (TIER-7).
func (c Config) ExecutionDelay() time.Duration { return time.Duration(c.Priority-1) * c.Window }

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	var problems []error
	add := func(wrong bool, format string, args ...any) {
		problems = append(problems, check.Refuse(wrong, format, args...))
	}
	add(c.Tiers < 1 || c.Tiers > 16, "tiers: %d is not between 1 and 16", c.Tiers)
	add(c.Priority < 1 || c.Priority > c.Tiers, "priority: %d is not between 1 (the Master) and tiers, which is %d",
		c.Priority, c.Tiers)
	add(c.Policy != PolicyWindows && c.Policy != PolicyDelay, "policy: %q is neither %s nor %s", c.Policy,
		PolicyWindows, PolicyDelay)
	add(c.Window < 2*Guard || c.Window > time.Hour, "window: %s is not between %s and 1h", c.Window, 2*Guard)
	round, turns := time.Duration(c.Tiers)*c.Window, c.JobMaxAge-Guard-job.SaidEvery
	add(round > turns, "window: %d tiers of %s take %s, and a job's life leaves %s, so that the last have no turn or "+
		"nobody hears that they miss it (shorten tier.window, or lower tier.tiers)", c.Tiers, c.Window, round, turns)
	add(c.Monitor && !c.Enabled, "monitor: there is nothing to watch while tier.enabled is false")
	add(c.Monitor && !slices.ContainsFunc(c.Peers, func(p Peer) bool { return p.Tier == 1 }),
		"monitor: peers do not name the Master (tier 1)")
	return errors.Join(append(problems, c.validatePeers()...)...)
}

func (c Config) validatePeers() (problems []error) {
	owners := map[chain.Address]int{}
	for i, p := range c.Peers {
		if p.Tier < 1 || p.Tier > c.Tiers || p.Tier == c.Priority && !c.Monitor {
			problems = append(problems, fmt.Errorf("peers[%d]: tier %d is not that of another keeper (1 to %d, "+
				"without %d)", i, p.Tier, c.Tiers, c.Priority))
		}
		if len(p.Signers) == 0 {
			problems = append(problems, fmt.Errorf("peers[%d]: tier %d has no signers", i, p.Tier))
		}
		for _, s := range p.Signers {
			if other, taken := owners[s]; taken && other != p.Tier {
				problems = append(problems, fmt.Errorf("peers[%d]: signer %s is listed for tier %d as well", i, s,
					other))
			}
			owners[s] = p.Tier
		}
	}
	return problems
}

// Roster maps the signers of all keepers to their tiers.
type Roster map[chain.Address]int

// Roster lists this keeper's own signers and those of its peers.
func (c Config) Roster(own []chain.Address) Roster {
	r := Roster{}
	for _, p := range c.Peers {
		for _, s := range p.Signers {
			r[s] = p.Tier
		}
	}
	for _, s := range own {
		r[s] = c.Priority
	}
	return r
}

// Tier returns the tier of a sender, or 0 for somebody else: a trader, or a keeper that is not configured.
func (r Roster) Tier(sender chain.Address) int { return r[sender] }
