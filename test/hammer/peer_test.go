package hammer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/test/programs"
)

// blockPace is the time between two blocks of BSC.
const blockPace = 450 * time.Millisecond

// Beside OP's transaction manager, on the same node with a block each 450 ms: how many calls land a second with 16 and
// with 64 in flight, and how long a call takes to its first broadcast when they come one by one. Both are handed their
// calls right after a block, and are counted from that block to the last one they need. `make bench-peers`;
// KEEPER_TXMGR names the built program.
func TestTxmgr(t *testing.T) {
	program := os.Getenv("KEEPER_TXMGR")
	if program == "" {
		t.Skip("measures for a minute: make bench-peers")
	}
	for _, c := range []struct{ jobs, inFlight, gapMs int }{{400, 16, 0}, {1600, 64, 0}, {300, 64, 30}} {
		for _, theirs := range []bool{true, false} {
			r := race{jobs: c.jobs, inFlight: c.inFlight, gap: time.Duration(c.gapMs) * time.Millisecond,
				said: map[int]time.Time{}}
			name := fmt.Sprintf("%d in flight, one each %s", c.inFlight, r.gap)
			t.Run(fmt.Sprintf("%s, theirs %t", name, theirs), func(t *testing.T) {
				if theirs {
					r.txmgr(t, program)
				} else {
					r.sender(t)
				}
			})
		}
	}
}

// race is one measurement.
type race struct {
	jobs, inFlight int
	gap            time.Duration // between two jobs; 0 = all at once

	since chain.BlockRef    // after which the first call was handed over
	said  map[int]time.Time // when each call was handed over
	cpu   time.Duration     // used by the process from then until it knew of each call how it ended
}

// txmgr lets OP's manager send the calls.
func (r *race) txmgr(t *testing.T, program string) {
	key, account := signer(t)
	node, address := startNode(t, chainID, account, func(chain.BlockRef) {})
	node.beat(blockPace)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, address, key, strconv.Itoa(r.jobs), strconv.Itoa(r.inFlight),
		strconv.FormatInt(r.gap.Milliseconds(), 10))
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // it is ready
	used := programs.CPU(t, cmd.Process.Pid)
	r.since = node.afterBlock(ctx)
	_ = begin.Close()
	for lines.Scan() {
		var id int
		var ns int64
		if _, err := fmt.Sscan(lines.Text(), &id, &ns); err != nil {
			t.Error(err)
		}
		r.said[id] = time.Unix(0, ns)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() - used
	r.report(t, node)
}

// keptForLiquidations are the places of a signer that orders do not get.
const keptForLiquidations = 4

// sender lets the sender as it is shipped send them.
func (r *race) sender(t *testing.T) {
	t.Setenv("KEEPER_HAMMER", strconv.Itoa(r.jobs)) // so many markets are audited
	s := newSite(t)
	s.node.beat(blockPace)
	s.throughRPC, s.throughDatabase = "http://"+s.rpc.server, s.url // past the lines
	s.venueSettings = append(s.venueSettings,
		fmt.Sprintf("PERPKEEPER_SENDER_MAX_IN_FLIGHT=%d", r.inFlight+keptForLiquidations),
		"PERPKEEPER_SENDER_LEASE_TTL=10s", "PERPKEEPER_KAFKA_SESSION_TIMEOUT=6s")
	process := s.senders(1)[0]
	wait(t.Context(), 8*time.Second) // until it has its lease, its group and the past of the prices
	used := programs.CPU(t, process.PID())
	r.handOver(t, s)
	s.await("the calls", func(context.Context) string { return missing(s.node.count(), r.jobs) })
	s.await("their ends", s.settled)
	r.cpu = programs.CPU(t, process.PID()) - used
	process.Stop()
	r.report(t, s.node)
}

// handOver says the jobs, after a block.
func (r *race) handOver(t *testing.T, s *site) {
	p := s.planner(r.jobs)
	var all []int
	for id := range r.jobs {
		all = append(all, id)
	}
	for some := range slices.Chunk(all, map[bool]int{true: r.jobs, false: 1}[r.gap == 0]) {
		records, err := p.records(t.Context(), some)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.said) == 0 {
			r.since = s.node.afterBlock(t.Context())
		}
		for _, id := range some { // the call is handed over now; that it was found took a look at the state
			r.said[id] = time.Now()
		}
		if err := p.say(t.Context(), records); err != nil {
			t.Fatal(err)
		}
		wait(t.Context(), r.gap)
	}
}

func missing(have, want int) string {
	if have >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d", have, want)
}

// report logs what was measured, by the node's clock.
func (r *race) report(t *testing.T, n *node) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.wrong) > 0 || len(n.mined) != r.jobs {
		t.Fatalf("%d of %d calls were mined; %v", len(n.mined), r.jobs, n.wrong)
	}
	last := n.mined[len(n.mined)-1]
	held := make([]int, last.block-r.since.Number)
	for _, m := range n.mined {
		held[m.block-r.since.Number-1]++
	}
	t.Logf("CPU a call %.1f ms", r.cpu.Seconds()*1000/float64(r.jobs))
	if r.gap > 0 { // of calls that come all at once, most wait for a place
		var ms []float64
		for id, at := range n.came {
			ms = append(ms, at.Sub(r.said[id]).Seconds()*1000)
		}
		slices.Sort(ms)
		t.Logf("from call to first broadcast p50 %.1f ms, p99 %.1f ms", ms[len(ms)/2], ms[len(ms)*99/100])
		return
	}
	took := float64(n.blocks[last.in].ms-r.since.TimeMs) / 1000
	t.Logf("%.1f calls landed a second, %.1f at most", float64(r.jobs)/took,
		float64(r.inFlight)/blockPace.Seconds())
	t.Logf("calls of each block: %v", held)
}
