package compose

import (
	"slices"
	"strings"
	"testing"
)

// The console is usable as it is shipped: its users are those of the secrets, it is reached from this machine alone,
// and it asks every process that serves pages, and no other.
func TestConsoleIsUsable(t *testing.T) {
	env := region(t)
	env["FIRE_RATIO"] = "1.10"
	project, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	s := project.Services["console"]
	users := *s.Environment["PERPKEEPER_CONSOLE_USERS"]
	kept := false
	for _, v := range s.Volumes {
		secrets := v.ReadOnly && strings.HasPrefix(v.Source, env["SECRETS_DIR"])
		kept = kept || secrets && strings.HasPrefix(users, v.Target+"/")
	}
	if !kept {
		t.Errorf("the users stand in %s, which is no folder of the secrets: %v", users, s.Volumes)
	}
	if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Target != 8080 {
		t.Errorf("ports %v", s.Ports)
	}
	var asked, served []string
	for one := range strings.SplitSeq(*s.Environment["PERPKEEPER_CONSOLE_PROCESSES"], ",") {
		name, address, _ := strings.Cut(one, "=")
		if asked = append(asked, name); address != "http://"+name+":8080" {
			t.Errorf("%s is asked at %s", name, address)
		}
	}
	for name, other := range project.Services {
		if name != "console" && slices.Equal(other.Command, []string{"/bin/" + name}) {
			served = append(served, name)
		}
	}
	slices.Sort(asked)
	slices.Sort(served)
	if !slices.Equal(asked, served) {
		t.Errorf("it asks %v, and those with pages are %v", asked, served)
	}
	config := settingsInForce(t, project, "console")
	for _, line := range []string{`fire_ratio = "1.1"`, `users = "/etc/perpkeeper/console/users"`,
		`signers = ["0xBcd4042DE499D14e55001CcbB24a551F3b954096"]`} {
		if !strings.Contains(config, line) {
			t.Errorf("the console's configuration lacks %s:\n%s", line, config)
		}
	}
}
