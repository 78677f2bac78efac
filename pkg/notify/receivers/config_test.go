package receivers

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/notify/slack"
	"perpkeeper/pkg/notify/webhook"
	"perpkeeper/pkg/setting/secret"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	c := DefaultConfig()
	c.Webhook = []webhook.Config{{Name: "operator", Audience: notify.Operator, Secret: secret.New("short"),
		URL: secret.MustURL("https://user:token@example.org/hook")}}
	c.Slack = []slack.Config{{Name: "operator", Audience: notify.Owner}, {Name: "Not so", Audience: "all"}}
	err := c.Validate()
	for _, want := range []string{
		`slack[0].name: "operator" is another receiver's too`, `slack[1].name: "Not so" is not`,
		`slack[1].audience: "all" is neither owner nor operator`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if shown := fmt.Sprintf("%+v", c); strings.Contains(shown, "short") || strings.Contains(shown, "token") {
		t.Errorf("secrets are shown: %s", shown)
	}
}

// LIQ-12: each audience has its receivers.
func TestReceivers(t *testing.T) {
	c := DefaultConfig()
	c.Webhook = []webhook.Config{{Name: "owner", Audience: notify.Owner}, {Name: "operator", Audience: notify.Operator}}
	c.Slack = []slack.Config{{Name: "channel", Audience: notify.Operator}}
	for audience, want := range map[notify.Audience][]string{
		notify.Owner: {"owner"}, notify.Operator: {"operator", "channel"},
	} {
		var names []string
		for _, r := range c.For(audience) {
			if names = append(names, r.Name); r.Notifier == nil {
				t.Errorf("%s cannot be reached", r.Name)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s has %v, want %v", audience, names, want)
		}
	}
	if len(DefaultConfig().Open()) != 0 {
		t.Error("somebody is told by default")
	}
}

// Every folder beside this one is a plug-in with its line in the configuration, and every list there is a plug-in's.
func TestEveryPluginIsListed(t *testing.T) {
	listed := map[string]bool{"receivers": true}
	for f := range reflect.TypeFor[Config]().Fields() {
		if f.Type.Kind() != reflect.Slice {
			continue
		}
		if !f.Type.Elem().Implements(reflect.TypeFor[notify.Plugin]()) {
			t.Errorf("%s is no list of a notify.Plugin: nobody would be told by it", f.Name)
		}
		listed[f.Tag.Get("toml")] = true
	}
	folders, err := fs.ReadDir(os.DirFS(".."), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && !listed[f.Name()] {
			t.Errorf("pkg/notify/%s has no line in Config (config.go beside this test)", f.Name())
		}
	}
}
