package hammer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/programs"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// NON-1, NON-2, NON-4, NON-13, NON-14: three senders as they are shipped fight for one signer. KEEPER_HAMMER=n, or
// KEEPER_LONG=1 for a few hundred jobs.
func TestSenders(t *testing.T) {
	if os.Getenv("KEEPER_HAMMER") == "" && os.Getenv("KEEPER_LONG") == "" {
		t.Skip("takes a minute: make hammer, or set KEEPER_LONG=1")
	}
	s := newSite(t)
	processes, said := s.senders(senders), s.planner(size(t, 300))
	began := time.Now()
	s.disturbUntil(processes, 8*time.Second, "the jobs", said.publishJobs)
	took := time.Since(began)
	s.await("the ends", s.settled)
	for _, p := range processes {
		p.Stop()
	}
	terms := s.audit(said.jobs)
	s.auditResults(said.jobs)
	s.report(processes, fmt.Sprintf("%d jobs in %s (%.0f/s)", said.jobs, took.Round(time.Second),
		float64(said.jobs)/took.Seconds()), terms)
}

// senders starts so many of the shipped program.
func (s *site) senders(count int) (processes []*process) {
	s.t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range count {
		processes = append(processes,
			startProcess(s.t, fmt.Sprintf("sender-%d", i+1), filepath.Join(folder, "sender"), s.settings()))
	}
	return processes
}

// disturbUntil kills, freezes and disconnects processes until nothing is missing.
func (s *site) disturbUntil(processes []*process, calm time.Duration, what string,
	missing func(ctx context.Context) string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	await := s.disturbAll(ctx, processes, calm)
	defer await()
	defer cancel()
	s.await(what, missing)
}

// report logs the disturbances of a run, and fails one that was too easy to prove anything.
func (s *site) report(processes []*process, what string, terms int64) {
	s.t.Helper()
	var kills, freezes, lost int
	for _, p := range processes {
		kills, freezes, lost = kills+int(p.kills.Load()), freezes+int(p.freezes.Load()),
			lost+p.countLogged("lease term lost")
	}
	requests, replies := s.database.lost(loseRequest)+s.rpc.lost(loseRequest),
		s.database.lost(loseReply)+s.rpc.lost(loseReply)
	s.t.Logf("%s: %d lease terms, %d of them fenced out; %d kills, %d freezes, %d requests and %d replies lost", what,
		terms, lost, kills, freezes, requests, replies)
	if terms < 2 || kills+freezes == 0 || requests == 0 || replies == 0 {
		s.t.Error("the hammer has proved nothing")
	}
}
