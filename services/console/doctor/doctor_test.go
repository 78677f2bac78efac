package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The test's own program plays keeperctl.
func TestMain(m *testing.M) {
	switch os.Getenv("DOCTOR_PLAYS") {
	case "":
		os.Exit(m.Run())
	case "sick":
		fmt.Println(`{"well":false,"findings":[{"check":"signer-role","area":"signers","severity":"failure",` +
			`"about":"0xa1","seen":"no ORDER_KEEPER","fix":"grant it","runbook":"docs/runbooks/x.md"}],` +
			`"areas":[{"area":"signers","checks":9,"findings":1}]}`)
		os.Exit(1)
	case "lost":
		fmt.Fprintln(os.Stderr, "error: tier.priority: 4 is not between 1 and 3\nmore")
		os.Exit(2)
	case "silent":
		os.Exit(0)
	case "slow":
		<-time.After(time.Hour)
	}
}

func ended(t *testing.T, ctx context.Context) State {
	t.Helper()
	d := &Doctor{Command: []string{os.Args[0]}, Now: time.Now}
	if !d.Start(ctx, "otto") || d.Start(ctx, "anna") {
		t.Fatal("not one run at a time")
	}
	guard := time.After(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-guard:
			t.Fatal("it never ends")
		}
		if s := d.State(); s.Since.IsZero() {
			return s
		}
	}
}

func TestFindings(t *testing.T) {
	t.Setenv("DOCTOR_PLAYS", "sick")
	s := ended(t, t.Context())
	if s.Problem != "" || s.Report == nil || s.Report.Well || len(s.Report.Findings) != 1 || s.Who != "otto" {
		t.Fatalf("%+v", s)
	}
	want := Finding{"signer-role", "signers", "failure", "0xa1", "no ORDER_KEEPER", "grant it", "docs/runbooks/x.md"}
	if got := s.Report.Findings[0]; got != want || s.Report.Areas[0] != (Area{"signers", 9, 1}) {
		t.Errorf("%+v", s.Report)
	}
}

// What is no report says why, in a line, and is never taken for health.
func TestNoReport(t *testing.T) {
	for plays, want := range map[string]string{"lost": "tier.priority: 4 is not between 1 and 3",
		"silent": "no report"} {
		t.Setenv("DOCTOR_PLAYS", plays)
		if s := ended(t, t.Context()); s.Report != nil || !strings.Contains(s.Problem, want) ||
			strings.Contains(s.Problem, "more") {
			t.Errorf("%s: %+v", plays, s)
		}
	}
	t.Setenv("DOCTOR_PLAYS", "slow")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { stop(fmt.Errorf("the console ends")) })
	if s := ended(t, ctx); s.Report != nil || s.Problem != "the console ends" {
		t.Errorf("%+v", s)
	}
}
