// Package receivers is the [notify] section of the configuration: who is notified of what, and the list of plug-ins.
package receivers

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/notify/slack"
	"perpkeeper/pkg/notify/webhook"
)

// Config is the [notify] section. Nobody is notified of anything by default. Every list of a [notify.Plugin] is a
// plug-in: a new one is a line here.
type Config struct {
	Webhook []webhook.Config `toml:"webhook" help:"programs that are posted signed JSON"`
	Slack   []slack.Config   `toml:"slack" help:"channels of Slack, by incoming webhooks"`
	// Timeout: how long a receiver may take to answer.
	Timeout time.Duration `toml:"-"`
	// Attempts counts answers that refuse a message. A receiver that does not answer is waited for.
	Attempts int `toml:"-"`
	// FirstPause: longest pause after the first failure; it doubles up to longest_pause.
	FirstPause time.Duration `toml:"-"`
	// LongPause: longest pause between two tries.
	LongPause time.Duration `toml:"-"`
}

// DefaultConfig notifies nobody, and would give a message up after about a minute of refusals.
func DefaultConfig() Config {
	return Config{Timeout: 5 * time.Second, Attempts: 8, FirstPause: 500 * time.Millisecond,
		LongPause: 30 * time.Second}
}

// Validate names every setting that cannot work. The tables' own settings are asked by themselves.
func (c Config) Validate() error {
	var problems []error
	taken := map[string]bool{}
	for _, t := range c.tables() {
		target := t.plugin.Target()
		for _, problem := range target.Problems() {
			problems = append(problems, fmt.Errorf("%s.%s", t.key, problem))
		}
		if taken[target.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %q is another receiver's too", t.key, target.Name))
		}
		taken[target.Name] = true
	}
	return errors.Join(problems...)
}

// Policy is how often, and how patiently, a message is tried.
func (c Config) Policy() notify.Policy {
	return notify.Policy{Attempts: c.Attempts, FirstPause: c.FirstPause, LongPause: c.LongPause}
}

// Open returns the receivers of a valid configuration. Nothing is asked yet.
func (c Config) Open() (all []notify.Receiver) {
	for _, t := range c.tables() {
		all = append(all, notify.Receiver{Target: t.plugin.Target(), Notifier: t.plugin.Open(c.Timeout)})
	}
	return all
}

// For returns the receivers of one audience.
func (c Config) For(a notify.Audience) (some []notify.Receiver) {
	for _, r := range c.Open() {
		if r.Audience == a {
			some = append(some, r)
		}
	}
	return some
}

// table is one receiver, and the key that it is configured under.
type table struct {
	key    string
	plugin notify.Plugin
}

// tables are all of them: every list of a plug-in.
func (c Config) tables() (all []table) {
	section := reflect.ValueOf(c)
	for i := range section.NumField() {
		list := section.Field(i)
		for j := 0; list.Kind() == reflect.Slice && j < list.Len(); j++ {
			if p, is := reflect.TypeAssert[notify.Plugin](list.Index(j)); is {
				key := section.Type().Field(i).Tag.Get("toml")
				all = append(all, table{fmt.Sprintf("%s[%d]", key, j), p})
			}
		}
	}
	return all
}
