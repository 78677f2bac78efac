package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
)

// What is older than this is wrong: a chain has a block every second or less, and prices come as often.
const (
	headIsOld  = 15 * time.Second
	stateIsOld = 20 * time.Second
	priceIsOld = 15 * time.Second
)

func age(ms uint64) time.Duration {
	return time.Since(time.UnixMilli(int64(ms))).Round(100 * time.Millisecond)
}

// stores looks at what the keeper's database holds.
func stores(ctx context.Context, db *pg.DB, l *Looks) error {
	at, err := db.Progress(ctx)
	if err != nil {
		return err
	}
	block := at.Watermark
	switch {
	case at.Halted != "":
		l.addf(true, "state", "HALTED at block %d: %s", block.Number, at.Halted)
	case block.Hash.IsZero():
		l.addf(true, "state", "no block yet (is statevm running?)")
	default:
		l.addf(age(block.TimeMs) > stateIsOld, "state", "block %d, %s old, generation %d, partitions %d blocks apart",
			block.Number, age(block.TimeMs), at.Generation, at.Skew())
	}
	signers, err := txstore.NewSigners(db).List(ctx)
	if err != nil {
		return err
	}
	for _, one := range signers {
		seen := fmt.Sprintf("%d queued, %d in flight, next nonce %d, lease: %s", one.Queued, one.InFlight,
			one.NextNonce, LeaseOf(one))
		switch {
		case one.Paused != "":
			seen = "PAUSED: " + text.FirstLine(one.Paused) + "; " + seen
		case one.Unable != "":
			seen = "UNABLE: " + text.FirstLine(one.Unable) + "; " + seen
		}
		l.addf(one.Out() != "" || one.LeaseLeft == 0, "signer "+one.Signer.Hex(), "%s", seen)
	}
	if len(signers) == 0 {
		l.addf(true, "signers", "none: no sender has started on this database yet")
	}
	failed, err := db.Liquidations(ctx)
	if err != nil {
		return err
	}
	failed = slices.DeleteFunc(failed, func(l pg.Liquidation) bool { return l.Status != pg.LiquidationFailed })
	l.addf(len(failed) > 0, "liquidations", "%d could not be done (keeperctl liquidations --failed)", len(failed))
	recent, err := db.Recent(ctx, time.Hour)
	if err != nil {
		return err
	}
	recentOf(recent, l)
	return nil
}

// Lanes are the classes of jobs by name, most urgent first.
var Lanes = []struct {
	Class job.Class
	Name  string
}{
	{job.ClassLiquidation, "liquidations"}, {job.ClassAdl, "deleveraging"}, {job.ClassMarketOrder, "market orders"},
	{job.ClassTriggerOrder, "trigger orders"}, {job.ClassRequest, "requests"},
}

func recentOf(r pg.Recent, l *Looks) {
	var queue []string
	for _, lane := range Lanes {
		if q, f := r.Queued[lane.Class], r.InFlight[lane.Class]; q+f > 0 {
			queue = append(queue, fmt.Sprintf("%s %d+%d", lane.Name, q, f))
		}
	}
	if len(queue) == 0 {
		queue = []string{"empty"}
	}
	l.addf(false, "queue+in flight", "%s", strings.Join(queue, ", "))
	total := 0
	var ends []string
	for _, outcome := range slices.Sorted(maps.Keys(r.Ended)) {
		total += r.Ended[outcome]
		ends = append(ends, fmt.Sprintf("%s %d", outcome, r.Ended[outcome]))
	}
	if total == 0 {
		l.addf(false, "last hour", "nothing has ended")
	} else {
		l.addf(false, "last hour", "%d of %d executed; %s", r.Ended[job.Done], total, strings.Join(ends, ", "))
	}
	l.addf(false, "money, last hour", "earned %s, spent %s", text.BNB(r.Earned), text.BNB(r.Spent))
}

// process asks a process whether it is ready, and for what its metrics say that no store does.
func process(ctx context.Context, p Address, l *Looks) error {
	ready, status, err := Get(ctx, p.URL+"/readyz")
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		l.addf(false, p.Name, "ready")
	} else {
		l.addf(true, p.Name, "not ready: %s", strings.Join(strings.Fields(ready), " "))
	}
	families, err := metricsOf(ctx, p.URL)
	if err != nil {
		return err
	}
	for _, m := range pageMetrics {
		if family, has := families[m.metric]; has {
			values := valuesOf(family.GetMetric())
			if values != "" || m.always {
				l.addf(m.wrong && values != "", p.Name+": "+m.what, "%s", cmp.Or(values, "none"))
			}
		}
	}
	return nil
}

// metricsOf asks a process for its metrics.
func metricsOf(ctx context.Context, address string) (map[string]*dto.MetricFamily, error) {
	text, _, err := Get(ctx, address+"/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return families, nil
}

// Label is a label's value; empty where a metric has none of the name.
func Label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// pageMetrics are the metrics that say what no store does.
var pageMetrics = []struct {
	metric, what string
	wrong        bool // where one is not 0
	always       bool // to be shown where all are 0 too
}{
	{"planner_jobs_live", "jobs due", false, true},
	{"planner_index_miss_total", "missed by the index", true, false},
	{"sender_tier_queue_length", "jobs that wait for this tier's turn", false, true},
	{"sender_tier_suspected", "suspected of missing jobs", true, false},
	{"sender_tier_recovering", "holds back after its start", false, false},
	{"sender_held", "signers without means", true, false},
	{"statevm_halted", "halted partitions", true, false},
}

// valuesOf are the values of a family that are not 0, with what they are of.
func valuesOf(metrics []*dto.Metric) string {
	var parts []string
	for _, m := range metrics {
		value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
		if value == 0 {
			continue
		}
		part := fmt.Sprintf("%.0f", value)
		for _, label := range m.GetLabel() {
			part = label.GetName() + " " + label.GetValue() + ": " + part
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// Get asks a process over HTTP, and returns the text of its answer (of a longer one the first 16 MiB) and its status
// code, which may be any: an error says that there was no whole answer. It does not repeat the address, which may hold
// a secret.
func Get(ctx context.Context, address string) (text string, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, unaddressed(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, unaddressed(err)
	}
	defer func() { _ = answer.Body.Close() }()
	page, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	return string(page), answer.StatusCode, err
}

// unaddressed is an error of net/http without the address that its text repeats.
func unaddressed(err error) error {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		return wrapped.Err
	}
	return err
}

// Node is the queries that a status makes of a chain.
type Node interface {
	Head(ctx context.Context) (chain.BlockRef, error)
	Finalized(ctx context.Context) (chain.BlockRef, error)
}

// chainOf looks at the newest and at the finalized block.
func chainOf(ctx context.Context, node Node, l *Looks) error {
	head, err := node.Head(ctx)
	if err != nil {
		return err
	}
	l.addf(age(head.TimeMs) > headIsOld, "chain head", "block %d, %s old", head.Number, age(head.TimeMs))
	final, err := node.Finalized(ctx)
	if err != nil {
		return fmt.Errorf("asking for the finalized block: %w", err)
	}
	l.addf(false, "finalized", "block %d, %s old, %d behind the head", final.Number, age(final.TimeMs),
		head.Number-min(head.Number, final.Number))
	return nil
}

// prices looks at the newest report.
func prices(ctx context.Context, client *bus.Client, chainID uint64, l *Looks) error {
	topic := wire.PriceTopic(chainID)
	first, end, err := client.Bounds(ctx, topic, 0)
	if err != nil {
		return err
	}
	if first == end {
		l.addf(true, "prices", "no report yet (is the scanner's feed running?)")
		return nil
	}
	newest, err := client.Reader(topic, 0, end-1).Next(ctx)
	if err != nil {
		return err
	}
	m, _, err := wire.Decode(newest)
	report, is := m.(wire.Price)
	if err != nil || !is {
		return fmt.Errorf("the newest record of %s is no report: %w", topic, errors.Join(err))
	}
	l.addf(age(report.TimeMs) > priceIsOld, "prices", "newest report %s old", age(report.TimeMs))
	return nil
}

// LeaseOf returns who has a signer's lease, and for how long.
func LeaseOf(s txstore.SignerStatus) string {
	switch {
	case s.LeaseLeft > 0 && lease.ClockWentBack(s.LeaseAhead):
		return fmt.Sprintf("%s, %s left: THE DATABASE'S CLOCK WENT BACK", s.Owner, s.LeaseLeft.Round(time.Second))
	case s.LeaseLeft > 0:
		return fmt.Sprintf("%s, %s left", s.Owner, s.LeaseLeft.Round(100*time.Millisecond))
	case s.Token == 0:
		return "nobody yet"
	}
	return "nobody, last " + s.Owner
}
