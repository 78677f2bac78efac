package service

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/setting/secret"
)

// The last ten minutes of a log are served, never more than the bytes they may have, after the line of the start; and
// nothing that is a secret of the process, whatever wrote it.
func TestRecentLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &recent{secrets: secret.Scrubber("https://user:canary-1@host/canary-2?key=canary-3", "canary-4")}
		kept.started.WriteString("starting\n")
		page := func() string {
			w := httptest.NewRecorder()
			kept.ServeHTTP(w, httptest.NewRequest("GET", "/log", nil))
			return w.Body.String()
		}
		write := func(text string) {
			if _, err := fmt.Fprintln(kept, text); err != nil {
				t.Fatal(err)
			}
		}
		write("first")
		time.Sleep(recentAge)
		write("refused: canary-1 of /canary-2?key=canary-3, canary-4 on host")
		if got := page(); got != "starting\nfirst\nrefused: *** of /***?key=***, *** on host\n" {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Millisecond)
		if got := page(); strings.Contains(got, "first") || !strings.Contains(got, "refused") {
			t.Errorf("after ten minutes: %q", got)
		}
		long := strings.Repeat("x", recentBytes/4)
		for range 9 {
			write(long)
		}
		if got := page(); len(got) > recentBytes+100 || strings.Count(got, long) != 3 || strings.Contains(got, "ref") {
			t.Errorf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
		}
	})
}
