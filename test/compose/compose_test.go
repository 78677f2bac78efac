// Package compose checks docker-compose.yml with Compose's own loader, no engine needed.
package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"perpkeeper/test/programs"
)

const root = "../.."

// endAtOnce spares a program with the race detector, which only prints, the second in which its goroutines may still race at its end.
const endAtOnce = "GORACE=atexit_sleep_ms=0"

// scaled services are started in several copies by `docker compose up --scale`.
var scaled = []string{"statevm", "planner", "sender"}

// load reads docker-compose.yml as a project.
func load(t *testing.T, env map[string]string, profiles ...string) (*types.Project, error) {
	t.Helper()
	return loadAs(t, "keeper-test", []string{"docker-compose.yml"}, env, profiles...)
}

// loadAs reads files, each of which overrides those before it, as a project with a name.
func loadAs(t *testing.T, name string, files []string, env map[string]string, profiles ...string) (*types.Project, error) {
	t.Helper()
	var pairs, paths []string
	for k, v := range env {
		pairs = append(pairs, k+"="+v)
	}
	for _, f := range files {
		paths = append(paths, filepath.Join(root, f))
	}
	options, err := cli.NewProjectOptions(paths, cli.WithName(name), cli.WithEnv(pairs), cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// envFile reads KEY=value lines.
func envFile(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "compose", name))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("%s: %q is no KEY=value line", name, line)
		}
		env[key] = value
	}
	return env
}

// filled is the region's example with something in every empty place.
func filled(t *testing.T) map[string]string {
	env := envFile(t, "region.env.example")
	for k, v := range env {
		if v == "" {
			env[k] = "./" + k // stands for a value and is a lawful path
		}
	}
	return env
}

// PIPE-6: the same file serves every region and every profile.
func TestEveryProfileLoads(t *testing.T) {
	for name, c := range map[string]struct {
		env      map[string]string
		profiles []string
		services []string
	}{
		"region": {filled(t), nil, []string{"kafka", "planner", "postgres", "prepare", "scanner", "sender", "statevm"}},
		"demo":   {envFile(t, "demo.env"), []string{"demo"}, []string{"devnet", "kafka", "planner", "postgres", "prepare", "scanner", "sender", "statevm"}},
		"region, watched": {filled(t), []string{"monitoring"}, []string{
			"alertmanager", "grafana", "kafka", "planner", "postgres", "prepare", "prometheus", "scanner", "sender", "statevm",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			project, err := load(t, c.env, c.profiles...)
			if err != nil {
				t.Fatal(err)
			}
			names := project.ServiceNames()
			slices.Sort(names)
			if !slices.Equal(names, c.services) {
				t.Errorf("services %v, want %v", names, c.services)
			}
		})
	}
}

// A region whose env file lacks something fails at once and says what to set.
func TestMissingSettingsAreNamed(t *testing.T) {
	env := filled(t)
	for _, key := range []string{"CHAIN_ID", "CHAIN_URLS", "POSTGRES_PASSWORD", "EVENT_EMITTER", "KEEPER_SIGNERS", "KEYS_DIR", "START_BLOCK", "PRICE_URL"} {
		without := map[string]string{}
		for k, v := range env {
			if k != key {
				without[k] = v
			}
		}
		if _, err := load(t, without); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// PIPE-7: `--scale` works only without fixed names and host ports.
func TestScaledServicesCanBeScaled(t *testing.T) {
	project, err := load(t, envFile(t, "demo.env"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scaled {
		s := project.Services[name]
		if s.ContainerName != "" || len(s.Ports) != 0 || s.Hostname != "" {
			t.Errorf("%s: container name %q, host name %q, %d host ports: it cannot be scaled", name, s.ContainerName, s.Hostname, len(s.Ports))
		}
	}
}

func TestServicesAreHardened(t *testing.T) {
	project, err := load(t, envFile(t, "demo.env"), "demo", "monitoring")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range project.Services {
		if s.HealthCheck == nil {
			t.Errorf("%s has no health check", name)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to %q", name, p.Published, p.HostIP)
			}
		}
		if name == "kafka" || name == "postgres" {
			continue
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Privileged {
			t.Errorf("%s: read-only %v, capabilities dropped %v, privileged %v", name, s.ReadOnly, s.CapDrop, s.Privileged)
		}
	}
}

// No password has a default outside the demo profile.
func TestNoDefaultPasswords(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "PASSWORD:-") || strings.Contains(line, "PASSWORD-") {
			t.Errorf("a password with a default: %s", strings.TrimSpace(line))
		}
	}
	if v := envFile(t, "region.env.example")["POSTGRES_PASSWORD"]; v != "" {
		t.Errorf("the example of a region carries the password %q", v)
	}
}

// Every setting that the files give a process is one the process knows: a renamed key must not be found out by an operator.
func TestProcessesKnowTheirSettings(t *testing.T) {
	env := envFile(t, "demo.env")
	t.Run("demo", func(t *testing.T) { settingsAreKnown(t, env) })
	env["KEEPER_CONFIG"] = "deploy/compose/keeper.toml.example"
	t.Run("agents and peers", func(t *testing.T) { settingsAreKnown(t, env) })
}

// settingsAreKnown starts every process as the project does, far enough to read its settings, with each file that the project mounts.
func settingsAreKnown(t *testing.T, env map[string]string) {
	t.Helper()
	project, err := load(t, env, "demo")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range project.Services {
		if len(s.Command) > 0 && strings.HasPrefix(s.Command[0], "/bin/") {
			t.Run(name, func(t *testing.T) { settingsInForce(t, project, name) })
		}
	}
}

// settingsInForce asks a process of a project what configuration it would run with.
func settingsInForce(t *testing.T, project *types.Project, name string) string {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	s := project.Services[name]
	args := append(slices.Clone(s.Command[1:]), "--print-config")
	for _, mounted := range s.Configs {
		for i, a := range args {
			if a == mounted.Target {
				args[i] = project.Configs[mounted.Source].File
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, filepath.Base(s.Command[0])), args...)
	cmd.Env = []string{endAtOnce}
	for key, value := range s.Environment {
		cmd.Env = append(cmd.Env, key+"="+*value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
