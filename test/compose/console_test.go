package compose

import (
	"slices"
	"strings"
	"testing"
)

// The console is usable as it is shipped: it can write down its users, its link leads to the port of this machine, and
// it asks every process that serves pages, and no other.
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
		_, ours := project.Volumes[v.Source]
		kept = kept || ours && !v.ReadOnly && strings.HasPrefix(users, v.Target+"/")
	}
	if !kept {
		t.Errorf("the users stand in %s, which no volume keeps: %v", users, s.Volumes)
	}
	if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Target != 8080 ||
		*s.Environment["PERPKEEPER_CONSOLE_URL"] != "http://localhost:"+s.Ports[0].Published {
		t.Errorf("ports %v, and the link leads to %s", s.Ports, *s.Environment["PERPKEEPER_CONSOLE_URL"])
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
	for _, line := range []string{`fire_ratio = "1.1"`, `users = "/var/console/users"`,
		`signers = ["0xBcd4042DE499D14e55001CcbB24a551F3b954096"]`} {
		if !strings.Contains(config, line) {
			t.Errorf("the console's configuration lacks %s:\n%s", line, config)
		}
	}
}
