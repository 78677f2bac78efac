package liars

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// trial is one row being tried.
type trial struct {
	*keeper
	row
	within time.Duration

	from, to uint64 // blocks: what was asked for between them must have ended
	named    time.Duration
	by       string // the metric that named the liar
	accused  string // an honest endpoint that was called a liar
	took     time.Duration
	changed  int
	tally    tally
	waits    map[string]int
	before   map[string]float64 // of rejected price reports
}

// lasting is how long new work comes in that has to be done while one lies.
const lasting = 4 * time.Second

// naming is within how long a lie that shows has to be named.
const naming = time.Minute

// liar is the index of the one that lies: the first of the configuration is the fastest, the last the slowest.
func (x *trial) liar() int {
	if x.slowest {
		return len(x.endpoints) - 1
	}
	return 0
}

// late is how much longer the others' answers take, or the liar's.
const late = 20 * time.Millisecond

func (x *trial) begin() {
	for i := range x.endpoints {
		var delay time.Duration
		if (i == x.liar()) == x.slowest {
			delay = late
		}
		x.endpoints[i].slow(delay)
		x.sources[i].slow(delay)
	}
	const seed = 1
	switch {
	case x.change != nil:
		x.endpoints[x.liar()].begin(x.lie, x.share, seed)
	case x.reports != nil:
		x.sources[x.liar()].begin(x.lie, x.share)
	}
}

func (x *trial) end() {
	x.changed = max(x.changed, x.count())
	x.endpoints[x.liar()].end()
	x.sources[x.liar()].end()
}

func (x *trial) count() int {
	if x.reports != nil {
		return x.sources[x.liar()].count()
	}
	return x.endpoints[x.liar()].count()
}

// run tells the lie until the row is decided, and returns what was wrong.
func (x *trial) run() error {
	ctx := context.Background()
	var err error
	if x.from, err = x.head(ctx); err != nil {
		return err
	}
	x.before = x.rejections()
	x.begin()
	defer x.end()
	begun := time.Now()
	x.load(ctx, begun)
	if x.to, err = x.head(ctx); err != nil {
		return err
	}
	var silent error
	if x.within == 0 {
		silent = x.silent(ctx)
		x.end() // what has waited goes on now
	}
	err = x.await(cmp.Or(x.within, patience), func(ctx context.Context) error { return x.missing(ctx, begun) })
	x.took = time.Since(begun)
	return errors.Join(silent, err, x.judge(ctx))
}

// silent fails where something has waited for longer than usual and no process says for what.
func (x *trial) silent(ctx context.Context) error {
	const usual = 5 // blocks
	if err := x.record.ToHead(ctx); err != nil {
		return err
	}
	if waits := x.record.Unfinished(x.from, x.to-min(x.to, usual)); waits != nil && len(x.waits) == 0 {
		return fmt.Errorf("nobody says for what, and %w", waits)
	}
	return nil
}

// load lets the traders go on, and replaces blocks where the lie is about what may be replaced.
func (x *trial) load(ctx context.Context, begun time.Time) {
	reorgs := 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for ; time.Since(begun) < lasting; <-tick.C {
		if x.reorg && time.Since(begun) > time.Duration(reorgs+1)*lasting/4 && reorgs < 2 {
			reorgs++
			if err := x.record.Tell(ctx, "devnet_reorg", map[string]any{"depth": 3, "style": "drop"}); err != nil {
				x.waits["the devnet: "+err.Error()]++
			}
		}
		x.look(ctx, begun)
	}
	x.held(x.waits, begun)
}

// missing says what keeps the row from being decided.
func (x *trial) missing(ctx context.Context, begun time.Time) error {
	x.look(ctx, begun)
	if err := x.settled(ctx, x.from, x.to); err != nil {
		return err
	}
	if x.changed == 0 && x.count() == 0 && x.lies() && x.first() && !x.rare {
		return errors.New("no answer was changed")
	}
	if x.tallyFrom(x.from).executed == 0 {
		return errors.New("nothing was executed") // a row without work would show little
	}
	if x.within > 0 && x.decisive && x.first() && x.named == 0 && time.Since(begun) < naming {
		return errors.New("the liar is not named")
	}
	return nil
}

// first tells whether the liar is asked first, and lies each time. Others may not be asked about a thing at all.
func (r row) first() bool { return !r.slowest && r.share == 1 }

func (r row) lies() bool { return r.change != nil || r.reports != nil }

// judge checks what must hold at the end, whatever was waited for.
func (x *trial) judge(ctx context.Context) error {
	problems := []error{x.crashed(), x.halted(ctx), x.record.ToHead(ctx), x.record.Twice()}
	x.tally = x.tallyFrom(x.from)
	if x.within > 0 && x.decisive && x.named == 0 && x.first() {
		problems = append(problems, fmt.Errorf("the liar was not named within %s", naming))
	}
	if x.accused != "" {
		problems = append(problems, errors.New("an honest one was called a liar: "+x.accused))
	}
	if n := x.tally.reverted; n > x.fewReverts() {
		problems = append(problems, fmt.Errorf("%d transactions reverted, %d executed something", n, x.tally.executed))
	}
	return errors.Join(problems...)
}

// droppedByReorg is about how many requests a reorg of three blocks takes from the traders. The transactions for them
// that are on their way revert, whoever lies.
const droppedByReorg = 8

// fewReverts is how many transactions may revert for honest reasons: lost races, and what reorgs dropped.
func (x *trial) fewReverts() int {
	few := 3 + x.tally.executed/10
	if x.reorg {
		few += 2 * droppedByReorg
	}
	return few
}

// dear fails where the transactions were paid more than three times what is usual: half of them, as one that is
// repeated is paid more for good reasons.
func (x *trial) dear(usual *tally) error {
	if usual.price == 0 {
		*usual = x.tally
	}
	if x.tally.price > 3*usual.price {
		return fmt.Errorf("half of the transactions paid %d wei per gas and more, usual are %d", x.tally.price,
			usual.price)
	}
	return nil
}

// recover waits until the keeper is as if nobody had lied.
func (x *trial) recover() error {
	x.end()
	return x.await(time.Minute, func(ctx context.Context) error {
		if err := x.crashed(); err != nil {
			x.ended = map[string]int{}
			for _, p := range x.Processes {
				x.ended[p.Name] = p.Restarts()
			}
		}
		return x.settled(ctx, x.from, x.to)
	})
}

// whole says what is wrong with the tables or left to do in the whole chain.
func (k *keeper) whole(ctx context.Context) error {
	head, err := k.head(ctx)
	if err != nil {
		return err
	}
	return k.settled(ctx, 0, head-min(head, 10))
}

// line is the row for whoever looks on.
func (x *trial) line(problem error) string {
	return fmt.Sprintf("%s, %s: %s; %d answers changed, by %s; %d executed, %d reverted, the slowest after %.1f s; %s",
		x.name, x.variant(),
		x.cell(problem), x.changed, cmp.Or(x.by, "nobody named"), x.tally.executed, x.tally.reverted,
		x.tally.slowest.Seconds(), strings.Join(x.reasons(), "; "))
}

// cell is the row's result as the table has it.
func (x *trial) cell(problem error) string {
	switch {
	case problem != nil:
		first, _, _ := strings.Cut(problem.Error(), "\n")
		return "NOT HELD: " + first
	case x.changed == 0 && x.lies():
		return "held, no answer changed"
	case x.named > 0:
		return fmt.Sprintf("held, named after %.1f s", x.named.Seconds())
	default:
		return "held"
	}
}

// reasons are what waited and for what, the most frequent first.
func (x *trial) reasons() []string {
	const enough = 4
	texts := slices.SortedFunc(maps.Keys(x.waits), func(a, b string) int { return x.waits[b] - x.waits[a] })
	for i, text := range texts {
		texts[i] = strconv.Itoa(x.waits[text]) + " x " + text
	}
	return texts[:min(len(texts), enough)]
}
