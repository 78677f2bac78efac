package tier

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/check"
	"perpkeeper/pkg/job"
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
	// ExecutionDelay and RecoveryBuffer belong to the policy delay.
	ExecutionDelay       time.Duration `toml:"execution_delay" help:"this tier's wait after finding a job (policy delay): 0s for the Master, one window for the first backup, two for the second"`
	RecoveryBuffer       time.Duration `toml:"recovery_buffer" help:"how long this keeper waits with every job after a start (policy delay)"`
	QueueCleanupInterval time.Duration `toml:"queue_cleanup_interval" help:"how often jobs that are too old are removed from the queue"`
	JobMaxAge            time.Duration `toml:"job_max_age" help:"when a waiting job is too old: market orders and requests end, others are born anew if still due"`
	Peers                []Peer        `toml:"peers" help:"the other keepers' public signer addresses, by which the chain's evidence is read"`
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
		QueueCleanupInterval: 60 * time.Second, JobMaxAge: job.RebornAfter,
	}
}

// Guard is the last part of a window, in which nothing is sent: what was sent before has landed and is known when the
// next window begins.
const Guard = 3 * time.Second

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
	add(c.ExecutionDelay < 0, "execution_delay: %s is negative", c.ExecutionDelay)
	add(c.RecoveryBuffer < 0, "recovery_buffer: %s is negative", c.RecoveryBuffer)
	add(c.QueueCleanupInterval <= 0, "queue_cleanup_interval: %s is not positive", c.QueueCleanupInterval)
	add(c.JobMaxAge < c.Window, "job_max_age: %s is shorter than a window, which is %s", c.JobMaxAge, c.Window)
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
