package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/service/config"
	"perpkeeper/pkg/setting/secret"
)

// secrets is a configuration with a secret in each place where one can stand.
type secrets struct {
	Kafka struct {
		Password secret.String `toml:"password" help:"h"`
	} `toml:"kafka"`
	Chain struct {
		URLs []secret.URL `toml:"urls" help:"h"`
	} `toml:"chain"`
	Scanner struct {
		Source []struct {
			Name string        `toml:"name" help:"h"`
			Key  secret.String `toml:"key" help:"h"`
		} `toml:"source" help:"h"`
	} `toml:"scanner"`
}

// loadSecrets fills a configuration of secrets from files in a folder and from a command line, in which {} stands for
// the folder.
func loadSecrets(t *testing.T, files map[string]string, args ...string) (got secrets, printed string, err error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.ReplaceAll(text, "{}", folder)),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{}", folder)
	}
	set, err := config.New("scanner", &got)
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Load(args)
	var b strings.Builder
	if writeErr := set.WriteTOML(&b); writeErr != nil {
		t.Fatal(writeErr)
	}
	return got, strings.ReplaceAll(b.String(), folder, "{}"), err
}

func TestSecretsComeFromFiles(t *testing.T) {
	files := map[string]string{
		"password": "open sesame\n",
		"urls":     "# the best first\nhttps://a.example/k1,wss://a.example/k2\n\nhttps://b.example/k3\n", "key": "k4",
		"empty":       "",
		"keeper.toml": "[chain]\nurls_file = \"{}/urls\"\n[[scanner.source]]\nname = \"x\"\nkey_file = \"{}/key\"\n",
	}
	t.Setenv("PERPKEEPER_KAFKA_PASSWORD_FILE", "") // an empty variable is none
	got, printed, err := loadSecrets(t, files, "--config={}/keeper.toml", "--kafka.password_file={}/password")
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Kafka.Password.Reveal(); p != "open sesame" {
		t.Errorf("the password is %q", p)
	}
	var urls []string
	for _, u := range got.Chain.URLs {
		urls = append(urls, u.Reveal())
	}
	if all := strings.Join(urls, " "); all != "https://a.example/k1 wss://a.example/k2 https://b.example/k3" {
		t.Errorf("the urls are %s", all)
	}
	if k := got.Scanner.Source[0].Key.Reveal(); k != "k4" {
		t.Errorf("the key of the table is %q", k)
	}
	for _, line := range []string{`password_file = "{}/password"`, `urls_file = "{}/urls"`} {
		if !strings.Contains(printed, line) || strings.Contains(printed, "password = ") {
			t.Errorf("printed without %s, or with the secret beside it:\n%s", line, printed)
		}
	}
	if got, _, err := loadSecrets(t, files, "--kafka.password_file={}/empty"); err != nil ||
		got.Kafka.Password.IsSet() {
		t.Errorf("an empty file gives %q, %v", got.Kafka.Password.Reveal(), err)
	}
}

// A list whose file is still empty is empty: the default is for those who name no file.
func TestAnEmptyFileIsAnEmptyList(t *testing.T) {
	var got secrets
	got.Chain.URLs = []secret.URL{secret.MustURL("http://127.0.0.1:8545")}
	set, err := config.New("scanner", &got)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(file, []byte("# none yet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Load([]string{"--chain.urls_file=" + file}); err != nil || len(got.Chain.URLs) != 0 {
		t.Errorf("an empty file leaves %v, %v", got.Chain.URLs, err)
	}
}

// Of a secret and its file the one that is given with the higher rank wins; two of the same rank contradict each other.
func TestSecretsAndTheirFilesRank(t *testing.T) {
	files := map[string]string{"password": "from the file", "keeper.toml": "[kafka]\npassword = \"in the file\"\n"}
	if got, _, err := loadSecrets(t, files, "--config={}/keeper.toml",
		"--kafka.password_file={}/password"); err != nil || got.Kafka.Password.Reveal() != "from the file" {
		t.Errorf("a flag over a file: %q, %v", got.Kafka.Password.Reveal(), err)
	}
	_, _, err := loadSecrets(t, files, "--kafka.password=a", "--kafka.password_file={}/password")
	if err == nil || err.Error() != "--kafka.password_file: --kafka.password is given as well (remove one of them)" {
		t.Errorf("two flags: %v", err)
	}
	t.Setenv("PERPKEEPER_KAFKA_PASSWORD_FILE", "/nowhere/at/all")
	if got, _, err := loadSecrets(t, files, "--kafka.password=a"); err != nil || got.Kafka.Password.Reveal() != "a" {
		t.Errorf("a flag over a variable: %q, %v", got.Kafka.Password.Reveal(), err)
	}
}

// The one line of a secret is the secret, whatever it begins or ends with; only the end of the line is not of it.
func TestOneLineOfASecretIsTheSecret(t *testing.T) {
	for text, want := range map[string]string{"#hush": "#hush", "#hush\n": "#hush", "\n# hush\r\n\n": "# hush",
		" hush ": " hush ", "a,b": "a,b"} {
		got, _, err := loadSecrets(t, map[string]string{"password": text}, "--kafka.password_file={}/password")
		if p := got.Kafka.Password.Reveal(); err != nil || p != want {
			t.Errorf("%q: %q, %v; want %q", text, p, err, want)
		}
	}
}

// What is wrong with a file is one line that names it, and none of its content.
func TestSecretFilesThatDoNotServe(t *testing.T) {
	files := map[string]string{
		"two": "first-secret\nsecond-secret\n", "url": "gopher-secret", "large": strings.Repeat("secret", 1<<14),
		"mark": "\ufeffthe-secret", "wide": "\xff\xfet\x00h\x00e\x00-\x00s\x00", "marks": "\ufeffhttps://a.example/the-secret",
		"keeper.toml": "[[scanner.source]]\nname = \"x\"\nkey = \"secret\"\nkey_file = \"{}/two\"\n",
	}
	for arg, want := range map[string]string{
		"--kafka.password_file={}/none":  "--kafka.password_file: ", // the system's own words follow
		"--kafka.password_file={}/two":   "has 2 lines (one is expected)",
		"--kafka.password_file={}/large": "is too large to be a secret",
		"--kafka.password_file={}/mark":  "/mark: begins with a byte order mark (save it as plain text, without one)",
		"--kafka.password_file={}/wide":  "/wide: begins with a byte order mark",
		"--chain.urls_file={}/marks":     "/marks: begins with a byte order mark",
		"--chain.urls_file={}/url":       "/url: element 1: ***: ",
		"--config={}/keeper.toml":        "scanner.source[0].key_file: key is given as well (remove one of them)",
	} {
		_, _, err := loadSecrets(t, files, arg)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "-secret") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// Each of several files wins over those before it, wherever they are named.
func TestSeveralFiles(t *testing.T) {
	files := map[string]string{"a.toml": "[kafka]\npassword = \"a\"\n[chain]\nurls = [\"https://a.example\"]\n",
		"b.toml": "[kafka]\npassword = \"b\"\n"}
	check := func(args ...string) {
		t.Helper()
		got, _, err := loadSecrets(t, files, args...)
		if err != nil || got.Kafka.Password.Reveal() != "b" || len(got.Chain.URLs) != 1 {
			t.Errorf("%q, %v, %v", got.Kafka.Password.Reveal(), got.Chain.URLs, err)
		}
	}
	check("--config={}/a.toml", "--config={}/b.toml")
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PERPKEEPER_CONFIG", folder+"/a.toml,"+folder+"/b.toml")
	check()
	if _, _, err := loadSecrets(t, files, "--config={}/c.toml"); err == nil ||
		!strings.Contains(err.Error(), "c.toml: no such file or directory (check --config and PERPKEEPER_CONFIG)") {
		t.Errorf("a file that is not there: %v", err)
	}
}
