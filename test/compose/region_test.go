package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	text := "[notify]\noperator_url_file = \"/etc/perpkeeper/notify/operator_url\"\n" +
		"secret_file = \"/etc/perpkeeper/notify/secret\"\n"
	if err := os.WriteFile(env["KEEPER_CONFIG"], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := load(t, env, "ops")
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"emergency": `/notify/operator_url"`, "status": `alertmanager = "http://alertmanager:9093"`,
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
