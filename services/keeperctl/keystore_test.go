package keeperctl

import (
	"bytes"
	"strings"
	"testing"
)

func TestKeystore(t *testing.T) {
	dir := t.TempDir()
	run := func(in string, args ...string) (code int, out, complaint string) {
		var o, e bytes.Buffer
		code = Run(t.Context(), append([]string{"keystore"}, args...), IO{In: strings.NewReader(in), Out: &o, Err: &e})
		return code, o.String(), e.String()
	}
	const raw = "0x701b615bbdfb9de65240bc28bd21bbc0d996645a3dd57e7b12bc2bdf6f192c82" // of the well-known test mnemonic
	if code, out, complaint := run(raw+"\n", dir, "--import"); code != 0 ||
		out != "0x71bE63f3384f5fb98995898A86B02Fb2426c5788\n" {
		t.Errorf("import: exit code %d, %q, %s", code, out, complaint)
	}
	for name, c := range map[string]struct {
		in   string
		args []string
		code int
		want string
	}{
		"no folder":      {code: 2, want: "usage: keeperctl keystore FOLDER"},
		"missing folder": {args: []string{dir + "/none"}, code: 1, want: "no such file"},
		"no key":         {args: []string{dir, "--import"}, code: 1, want: "holds no key"},
		"not a key":      {in: "hunter2\n", args: []string{dir, "--import"}, code: 1, want: "no private key"},
		"again":          {in: raw, args: []string{dir, "--import"}, code: 1, want: "exists"},
	} {
		code, out, complaint := run(c.in, c.args...)
		if code != c.code || out != "" || !strings.Contains(complaint, c.want) || strings.Count(complaint, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, complaint)
		}
		if strings.Contains(complaint, "hunter2") || strings.Contains(complaint, raw) {
			t.Errorf("%s: what was given is quoted: %q", name, complaint)
		}
	}
}
