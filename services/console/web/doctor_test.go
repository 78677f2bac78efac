package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/services/console/doctor"
	"perpkeeper/services/console/web"
)

// sick is what keeperctl doctor says of a keeper that is not well.
const sick = `{"chainId":56,"pre":false,"well":false,"findings":[` +
	`{"check":"signer-balance","area":"signers","severity":"warning","about":"0xa14c0977e200000000000000000000000000` +
	`5b30","seen":"0.02 coins are left: 3 hours at today's pace","fix":"send it coins","runbook":"docs/runbooks/` +
	`signers.md"},{"check":"endpoint-lag","area":"endpoints","severity":"failure",` +
	`"about":"https://rpc-2.example.org/<key>",` +
	`"seen":"its head is 41 blocks behind the others'","fix":"leave it out of chain.urls until it has caught up",` +
	`"runbook":"docs/runbooks/endpoints.md"}],"areas":[{"area":"endpoints","checks":12,"findings":1},` +
	`{"area":"signers","checks":9,"findings":1},{"area":"prices","checks":8,"findings":0}]}`

// playing is a program that says so and exits with a code.
func playing(t testing.TB, says, code string) *doctor.Doctor {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "keeperctl")
	script := "#!/bin/sh\ntest \"$1 $2\" = 'doctor --json' || exit 2\ncat " + folder + "/says\nexit " + code + "\n"
	for file, text := range map[string]string{"keeperctl": script, "says": says} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return &doctor.Doctor{Command: []string{program}, Now: time.Now}
}

// The checks are made when somebody asks, and what they found stands on the page: failures first.
func TestDoctorPage(t *testing.T) {
	s := newSite(t, func(d *web.Deps) { d.Doctor = playing(t, sick, "1") })
	vera, otto := s.as("vera"), s.as("otto")
	if _, page := vera.get("/doctor"); !strings.Contains(page, "have not been made") ||
		strings.Contains(page, "<button "+
			`class="main"`) {
		t.Errorf("before the first:\n%s", page)
	}
	if status, _ := vera.post("/", "/doctor", map[string][]string{}); status != http.StatusForbidden {
		t.Errorf("a viewer has checks made: %d", status)
	}
	if status, page := otto.post("/doctor", "/doctor", map[string][]string{}); status != http.StatusOK {
		t.Errorf("%d\n%s", status, page)
	}
	page := otto.awaitPage("/doctor", "29 checks")
	failure, warning := strings.Index(page, "endpoint lag"), strings.Index(page, "signer balance")
	if failure < 0 || warning < failure || strings.Contains(page, "<key>") ||
		!strings.Contains(page, "leave it out of chain.urls") || !strings.Contains(page, "docs/runbooks/endpoints.md") {
		t.Errorf("the findings:\n%s", page)
	}
}
