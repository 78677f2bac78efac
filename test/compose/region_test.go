package compose

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofNoRegion are variables that no region sets: those of the devnet and its keys, of three keepers on one machine, and
// of whoever's shell it is.
var ofNoRegion = []string{"PRICE_URL", "SIGNER_DEV", "SIGNER_DEV_KEYS", "DEVNET_IMAGE", "CHAIN_NETWORK", "USER",
	"SUDO_USER"}

var (
	variable = regexp.MustCompile(`(?:^|[^$])\$\{([A-Z_]+)`)
	envLine  = regexp.MustCompile(`(?m)^#?([A-Z_]+)=`)
)

// The env file's example has a line for everything that the compose files ask of a region, and for nothing else: what
// stands only in one of the two is either unknown to operators, or without effect.
func TestEveryVariableIsInTheExample(t *testing.T) {
	asked, offered := map[string]bool{}, map[string]bool{}
	for _, file := range append(slices.Clone(externalFiles), "deploy/compose/tiers/chain.yml") {
		for _, found := range variable.FindAllStringSubmatch(read(t, filepath.Join(root, file)), -1) {
			asked[found[1]] = true
		}
	}
	example := read(t, filepath.Join(root, "deploy/compose/region.env.example"))
	for _, found := range envLine.FindAllStringSubmatch(example, -1) {
		offered[found[1]] = true
	}
	for name := range asked {
		if !offered[name] && !slices.Contains(ofNoRegion, name) {
			t.Errorf("deploy/compose/region.env.example has no line for %s", name)
		}
	}
	for name := range offered {
		if !asked[name] && !strings.HasPrefix(name, "COMPOSE_") { // which Compose itself reads
			t.Errorf("deploy/compose/region.env.example has %s, which no compose file reads", name)
		}
	}
	if len(asked) < 60 {
		t.Errorf("only %d variables found", len(asked))
	}
}

// What the example shows for a version or a number of copies is what is in force without it.
func TestExampleShowsDefaults(t *testing.T) {
	example := read(t, filepath.Join(root, "deploy/compose/region.env.example"))
	file := read(t, filepath.Join(root, "docker-compose.yml"))
	for _, line := range regexp.MustCompile(`(?m)^#([A-Z_]+_(?:VERSION|COPIES|RETENTION|LISTEN))=(.*)$`).
		FindAllStringSubmatch(example, -1) {
		if line[1] != "LOG_RETENTION" && !strings.Contains(file, "${"+line[1]+":-"+line[2]+"}") {
			t.Errorf("%s is not the default of docker-compose.yml", line[0])
		}
	}
}

// How many copies run is said once: every later `up` goes by it, whoever starts it.
func TestCopiesAreTheRegions(t *testing.T) {
	for _, c := range []struct {
		given string
		want  int
	}{{"", 1}, {"3", 3}} {
		env := region(t)
		for _, name := range scaled {
			if c.given != "" {
				env[strings.ToUpper(name)+"_COPIES"] = c.given
			}
		}
		project, err := load(t, env)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range scaled {
			s := project.Services[name]
			if got := s.GetScale(); got != c.want {
				t.Errorf("%s: %d copies, want %d", name, got, c.want)
			}
		}
	}
}

// In an emergency the commands find the receivers of [notify], whose secrets stand in files; status sees the alarms,
// why-not judges with the roles that the planner has, and the record says who has acted.
func TestOpsKnowsWhatTheProcessesKnow(t *testing.T) {
	env := region(t)
	env["FROZEN_ROLE"], env["SMTP_HOST"], env["USER"] = "true", "smtp.example.org", "anna"
	for _, name := range []string{"operator_url", "secret"} {
		file := filepath.Join(env["SECRETS_DIR"], "notify", name)
		if err := os.WriteFile(file, []byte("https://example.org/hook"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env["KEEPER_CONFIG"] = filepath.Join(t.TempDir(), "region.toml")
	text := "[[notify.webhook]]\nname = \"o\"\naudience = \"operator\"\n" +
		"url_file = \"/etc/perpkeeper/notify/operator_url\"\n" +
		"secret_file = \"/etc/perpkeeper/notify/secret\"\n"
	if err := os.WriteFile(env["KEEPER_CONFIG"], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := load(t, env, "ops")
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"emergency": `audience = "operator"`, "status": `alertmanager = "http://alertmanager:9093"`,
		"why-not": `frozen_role = true`, "signer": `operator = "anna"`,
	} {
		s := project.Services["ops"]
		s.Command = []string{"/bin/keeperctl", command}
		project.Services["ops"] = s
		if config := settingsInForce(t, project, "ops"); !strings.Contains(config, want) {
			t.Errorf("%s: the configuration lacks %s:\n%s", command, want, config)
		}
	}
}
