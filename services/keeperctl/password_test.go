package keeperctl

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

func TestPassword(t *testing.T) {
	const password = "correct horse battery"
	for name, in := range map[string]string{"a line": password + "\n", "without its end": password,
		"of another system": password + "\r\n"} {
		var out, complaint bytes.Buffer
		code := Run(t.Context(), []string{"password"}, IO{In: strings.NewReader(in), Out: &out, Err: &complaint})
		hash := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
		if code != 0 || bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil {
			t.Errorf("%s: exit code %d, %s%s", name, code, out.String(), complaint.String())
		}
	}
	for name, in := range map[string]string{"none": "", "short": "hunter2\n", "long": strings.Repeat("x", 73)} {
		var out, complaint bytes.Buffer
		code := Run(t.Context(), []string{"password"}, IO{In: strings.NewReader(in), Out: &out, Err: &complaint})
		if code != 1 || out.Len() > 0 || strings.Count(complaint.String(), "\n") != 1 ||
			strings.Contains(complaint.String(), "hunter2") {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out.String(), complaint.String())
		}
	}
}
