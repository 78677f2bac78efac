package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"perpkeeper/test/programs"
)

const root = "../.."

// endAtOnce spares a program with the race detector, which only prints, the second in which its goroutines may still
// race at its end.
const endAtOnce = "GORACE=atexit_sleep_ms=0"

// scaled services are started in several copies by `docker compose up --scale`.
var scaled = []string{"statevm", "planner", "sender"}

// load reads docker-compose.yml as a project.
func load(t *testing.T, env map[string]string, profiles ...string) (*types.Project, error) {
	t.Helper()
	return loadAs(t, "keeper-test", []string{"docker-compose.yml"}, env, profiles...)
}

// loadAs reads files, each of which overrides those before it, as a project with a name.
func loadAs(t *testing.T, name string, files []string, env map[string]string, profiles ...string) (*types.Project,
	error) {
	t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, filepath.Join(root, f))
	}
	options, err := cli.NewProjectOptions(paths, cli.WithName(name), cli.WithEnv(pairs(env)),
		cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// pairs are variables as KEY=value.
func pairs(env map[string]string) (all []string) {
	for k, v := range env {
		all = append(all, k+"="+v)
	}
	return all
}

// configsOf copies the files of a list, in which paths of mounted folders become those that they were mounted from.
func configsOf(t *testing.T, list string, s types.ServiceConfig) string {
	t.Helper()
	var folders, copies []string
	for _, v := range s.Volumes {
		folders = append(folders, v.Target+"/", v.Source+"/")
	}
	mounted := strings.NewReplacer(folders...)
	for path := range strings.SplitSeq(list, ",") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		local := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(local, []byte(mounted.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, local)
	}
	return strings.Join(copies, ",")
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
		"region": {filled(t), nil,
			[]string{"console", "kafka", "planner", "postgres", "prepare", "scanner", "sender", "statevm"}},
		"demo": {envFile(t, "demo.env"), []string{"demo"},
			[]string{"console", "devnet", "kafka", "planner", "postgres", "prepare", "scanner", "sender", "statevm"}},
		"region, watched": {filled(t), []string{"monitoring"}, []string{
			"alertmanager", "console", "grafana", "kafka", "planner", "postgres", "prepare", "prometheus", "scanner",
			"sender", "statevm",
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
	for _, key := range []string{
		"KEEPER_NAME", "KEEPER_CONFIG", "SECRETS_DIR", "CHAIN_ID", "KEEPER_SIGNERS", "KEYS_DIR",
	} {
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

// The project is valid before the exchange is known; until then the processes refuse, with a line for each setting.
func TestAddressesAreDemandedByTheProcesses(t *testing.T) {
	env := region(t)
	for key := range envFile(t, "region.env.example") {
		if key == "DATA_STORE" || key == "START_BLOCK" {
			env[key] = ""
		}
	}
	project, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"scanner": {"venue.data_store", "scanner.start_block"}, "sender": {"venue.data_store"},
	} {
		out, err := printConfig(t, project, name)
		if lines := strings.Count(strings.TrimSpace(out), "\n") + 1; err == nil || lines != len(words) {
			t.Errorf("%s without addresses: %v, %d lines", name, err, lines)
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s does not ask for %s: %s", name, word, out)
			}
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
			t.Errorf("%s: container name %q, host name %q, %d host ports: it cannot be scaled", name, s.ContainerName,
				s.Hostname, len(s.Ports))
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
		writes := name == "kafka" // its start writes its configuration
		if s.ReadOnly == writes || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Privileged {
			t.Errorf("%s: read-only %v, capabilities dropped %v, privileged %v", name, s.ReadOnly, s.CapDrop,
				s.Privileged)
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
	for key := range envFile(t, "region.env.example") {
		if strings.Contains(key, "PASSWORD") || strings.Contains(key, "URLS") {
			t.Errorf("the example of a region holds %s, which belongs into a file of its own", key)
		}
	}
}

// Every setting that the files give a process is one the process knows: a renamed key must not be found out by an
// operator.
func TestProcessesKnowTheirSettings(t *testing.T) {
	env := envFile(t, "demo.env")
	t.Run("demo", func(t *testing.T) { settingsAreKnown(t, env) })
	t.Run("region", func(t *testing.T) { settingsAreKnown(t, region(t)) })
}

// settingsAreKnown starts every process as the project does, far enough to read its settings, with each file that the
// project mounts.
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

// region is the example of a region as a newcomer fills it in, with addresses and the files that the example speaks of.
func region(t *testing.T) map[string]string {
	t.Helper()
	env, folder := envFile(t, "region.env.example"), t.TempDir()
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "deploy/compose/new-secrets.sh"), folder).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{
		"chain_urls":        "https://bsc.example.org/key\nwss://bsc.example.org/key\n",
		"price/streams_key": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "price/streams_secret": "s",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env["SECRETS_DIR"], env["KEEPER_CONFIG"], env["KEYS_DIR"], env["START_BLOCK"] = folder,
		"./deploy/compose/region.toml.example", folder, "1"
	for key, value := range env {
		if value == "" {
			env[key] = "0xBcd4042DE499D14e55001CcbB24a551F3b954096"
		}
	}
	return env
}

// With two files filled in from the examples, the scanner has its price sources and its endpoints, and the secrets of
// both are secret.
func TestRegionNamesItsPrices(t *testing.T) {
	project, err := load(t, region(t))
	if err != nil {
		t.Fatal(err)
	}
	config := settingsInForce(t, project, "scanner")
	for _, line := range []string{"[[scanner.price.source]]", `kind = "streams"`, `key = "***"`, "urls_file = "} {
		if !strings.Contains(config, line) {
			t.Errorf("the scanner's configuration lacks %s:\n%s", line, config)
		}
	}
	if strings.Contains(config, "6ba7b810") || strings.Contains(config, "example.org/key") {
		t.Errorf("a secret is printed:\n%s", config)
	}
}

// What the README tells operators to run finds everything in the containers' environment, whichever command it is.
func TestOperatorsCommandsAreConfigured(t *testing.T) {
	project, err := load(t, region(t), "ops")
	if err != nil {
		t.Fatal(err)
	}
	for name, commands := range map[string][]string{
		"sender": {"audit", "signer", "why-not"},
		"ops": {"audit", "status", "topic", "liquidations", "signer", "rebuild", "generations", "delayed", "wallet",
			"emergency", "dlq"},
		"doctor": {"doctor", "doctor --pre"},
	} {
		for _, command := range commands {
			s := project.Services[name]
			s.Command = append([]string{"/bin/keeperctl"}, strings.Fields(command)...)
			project.Services[name] = s
			config := settingsInForce(t, project, name)
			if command == "audit" &&
				!strings.Contains(config, `signers = ["0xBcd4042DE499D14e55001CcbB24a551F3b954096"]`) {
				t.Errorf("%s: audit knows no keeper:\n%s", name, config)
			}
		}
	}
}

// The name of the project comes from the file, so that another folder or a forgotten -p make no second keeper.
func TestProjectIsNamedAfterTheRegion(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")},
		cli.WithEnv(pairs(region(t))))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil || project.Name != "keeper-tokyo" {
		t.Errorf("the project is %v, %v", project, err)
	}
}

// Everything runs within bounds, comes back by itself, and keeps few logs.
func TestServicesAreBounded(t *testing.T) {
	project, err := load(t, envFile(t, "demo.env"), "demo", "monitoring", "ops")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range project.Services {
		if s.MemLimit == 0 || s.CPUS == 0 || s.PidsLimit == 0 {
			t.Errorf("%s: memory %d, processors %v, processes %d: one of them has no limit", name, s.MemLimit, s.CPUS,
				s.PidsLimit)
		}
		if s.Logging == nil || s.Logging.Driver != "json-file" || s.Logging.Options["max-size"] == "" ||
			s.Logging.Options["max-file"] == "" {
			t.Errorf("%s: its log grows for ever", name)
		}
		once := slices.Contains([]string{"prepare", "ops", "doctor", "snapshot"}, name)
		if (s.Restart != "always") != once {
			t.Errorf("%s: restart is %q", name, s.Restart)
		}
		if at := strings.LastIndex(s.Image, ":"); at < 0 || s.Image[at:] == ":latest" &&
			!strings.HasPrefix(s.Image, "perpkeeper") {
			t.Errorf("%s: the image %s has no version", name, s.Image)
		}
	}
}

// One version of Kafka: what is tested is what runs.
func TestOneKafkaVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "test/kafka/pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	tested := regexp.MustCompile(`<artifactId>kafka_2.13</artifactId><version>([0-9.]+)</version>`).FindSubmatch(text)
	project, err := load(t, region(t))
	if err != nil {
		t.Fatal(err)
	}
	if image := project.Services["kafka"].Image; tested == nil || image != "apache/kafka:"+string(tested[1]) {
		t.Errorf("tests run Kafka %s, a region %s", tested, image)
	}
}

// settingsInForce asks a process of a project what configuration it would run with.
func settingsInForce(t *testing.T, project *types.Project, name string) string {
	t.Helper()
	out, err := printConfig(t, project, name)
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return out
}

// printConfig runs a process of a project with --print-config.
func printConfig(t *testing.T, project *types.Project, name string) (string, error) {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	s := project.Services[name]
	args := append(slices.Clone(s.Command[1:]), "--print-config")
	// What is mounted into the container is where it was mounted from.
	var mounts []string
	for _, c := range s.Configs {
		mounts = append(mounts, c.Target, project.Configs[c.Source].File)
	}
	for _, secret := range s.Secrets {
		mounts = append(mounts, "/run/secrets/"+secret.Source, project.Secrets[secret.Source].File)
	}
	mounted := strings.NewReplacer(mounts...)
	for i := range args {
		args[i] = mounted.Replace(args[i])
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, filepath.Base(s.Command[0])), args...)
	cmd.Env = []string{endAtOnce}
	for key, value := range s.Environment {
		value := mounted.Replace(*value)
		if key == "PERPKEEPER_CONFIG" {
			value = configsOf(t, value, s)
		}
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
