package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Screen is where the demo shows itself: a page, which is drawn anew on a terminal.
type Screen struct {
	Out      io.Writer
	Terminal bool
}

// Every is how often a snapshot is shown.
func (s Screen) Every() time.Duration {
	if s.Terminal {
		return time.Second
	}
	return 15 * time.Second
}

// Print prints a line.
func (s Screen) Print(line string) { _, _ = fmt.Fprintln(s.Out, line) }

// Show prints a snapshot, on a terminal in place of the one before.
func (s Screen) Show(v Snapshot) {
	page := v.Page()
	if s.Terminal {
		const toTop, clearLine, clearRest = "\x1b[H", "\x1b[K\n", "\x1b[J"
		page = toTop + strings.ReplaceAll(page, "\n", clearLine) + clearRest
	}
	_, _ = fmt.Fprint(s.Out, page)
}

// State is the state of the keeper that is furthest: all fold the same chain.
func (v Snapshot) State() (o Counts) {
	for _, k := range v.Keepers {
		if k.Trouble == "" && (o.Of == nil || k.Counts.Watermark.Number > o.Watermark.Number) {
			o = k.Counts
		}
	}
	return o
}

func (v Snapshot) head() (n uint64) {
	for _, k := range v.Keepers {
		n = max(n, k.Head)
	}
	return n
}

// executed is how many jobs each tier has executed, as the keeper that has seen most reports it; nothing where there
// is one keeper alone.
func (v Snapshot) executed() string {
	if len(v.Keepers) == 1 {
		return ""
	}
	var parts []string
	for tier, k := range v.Keepers {
		most := 0
		for _, witness := range v.Keepers {
			most = max(most, witness.Executed[strconv.Itoa(tier+1)])
		}
		parts = append(parts, fmt.Sprintf("%s %d", k.Role, most))
	}
	return fmt.Sprintf("  executed by   %s\n", strings.Join(parts, ", "))
}

func (v KeeperStatus) state() string {
	if v.Trouble != "" {
		return v.Trouble
	}
	return v.Health()
}

// Page is a snapshot as a page of text.
func (v Snapshot) Page() string {
	var b strings.Builder
	o, head := v.State(), v.head()
	fmt.Fprintf(&b, "perpkeeper demo, %.0f s                                    Ctrl-C ends and cleans up\n\n",
		v.At.Seconds())
	fmt.Fprintf(&b, "  now           %s\n", v.Now)
	fmt.Fprintf(&b, "  console       %s\n", v.Console)
	fmt.Fprintf(&b, "  chain         head %-10d finalized %d\n", head, o.Finalized().Number)
	fmt.Fprintf(&b, "  positions     open %-10d closed  %-10d liquidated %d\n", o.Of["position Active"],
		o.Of["position Closed"], o.Of["liquidation Executed"])
	fmt.Fprintf(&b, "  orders        wait %-10d done    %-10d cancelled %-10d frozen %d\n",
		o.Of["order Created"]+o.Of["order Updated"], o.Of["order Executed"],
		o.Of["order Cancelled"], o.Of["order Frozen"])
	fmt.Fprintf(&b, "  requests      wait %-10d done    %-10d cancelled %d\n", o.Of["request Created"],
		o.Of["request Executed"], o.Of["request Cancelled"])
	b.WriteString(v.executed())
	for _, k := range v.Keepers {
		k.page(&b, head)
	}
	return b.String()
}

func (v KeeperStatus) page(b *strings.Builder, head uint64) {
	fmt.Fprintf(b, "\n  %-9s %s\n", v.Role, v.state())
	fmt.Fprintf(b, "    state lag %-4d jobs live %-4d queued %-4d in flight %-4d transactions %d\n",
		head-min(head, v.Counts.Watermark.Number), v.Jobs.Live, v.Jobs.Queued, v.Jobs.InFlight,
		v.Counts.Of["sent"])
	for _, p := range v.Processes {
		fmt.Fprintf(b, "    %-12s  http://%s/metrics  %s", p.Name, p.HTTP, p.Health)
		if p.Restarts > 0 {
			fmt.Fprintf(b, " (started again %d times)", p.Restarts)
		}
		b.WriteByte('\n')
	}
}
