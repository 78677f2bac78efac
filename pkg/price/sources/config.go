// Package sources is the configuration of what the scanner reads prices from: the list of the plug-ins, and the tables
// that name them.
package sources

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/devnet"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
)

// Config is the [price] settings: the sources of reports, and the bounds that reports must keep.
type Config struct {
	URL secret.URL `toml:"url" file:"none" help:"address of the demo exchange's price service, http(s); other services are source tables; neither = no prices"`
	// Interval: how often a service that does not push is asked.
	Interval time.Duration `toml:"-"`
	// RequestTimeout: how long one request may take.
	RequestTimeout time.Duration  `toml:"-"`
	Sources        []source.Table `toml:"source" help:"services that publish prices, in order of preference"`
	Gates          price.Gates    `toml:"gates"`
	Failover       price.Failover `toml:"-"`
}

// DefaultConfig lacks the sources.
func DefaultConfig() Config {
	return Config{
		Interval: 250 * time.Millisecond, RequestTimeout: 2 * time.Second, Gates: price.DefaultGates(),
		Failover: price.DefaultFailover(),
	}
}

// tables are the sources, the short form included.
func (c Config) tables() []source.Table {
	if c.URL.IsSet() {
		return []source.Table{{Name: devnet.Plugin.Kind, Kind: devnet.Plugin.Kind, URL: c.URL}}
	}
	return c.Sources
}

// IsSet reports whether any source is configured.
func (c Config) IsSet() bool { return len(c.tables()) > 0 }

// Validate names every setting that cannot work, joined into one error.
func (c Config) Validate() error {
	problems := []error{
		check.Refuse(c.URL.IsSet() && len(c.Sources) > 0,
			"url: is given beside source tables (make it one of them, of kind devnet)"),
		source.CheckScheme("url", c.URL, "http", "https"),
	}
	names := map[string]bool{}
	for i, s := range c.Sources {
		if names[s.Name] {
			problems = append(problems, fmt.Errorf("source[%d].name: %q is taken by another source", i, s.Name))
		}
		names[s.Name] = true
		for line := range strings.SplitSeq(problemsOf(s), "\n") {
			if line != "" {
				problems = append(problems, fmt.Errorf("source[%d].%s", i, line))
			}
		}
	}
	return errors.Join(problems...)
}

// problemsOf reports what cannot work in a table, a line each.
func problemsOf(t source.Table) string {
	p, known := pluginOf(t.Kind)
	if !known {
		return fmt.Sprintf("kind: %q is not one of %s", t.Kind, strings.Join(kinds(), ", "))
	}
	if err := p.Check(t); err != nil {
		return err.Error()
	}
	return ""
}
