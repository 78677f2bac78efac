package web

import (
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/nonce"
)

// stripLength is how many of a signer's newest numbers are shown.
const stripLength = 40

// signersView is what signers have and pay.
type signersView struct {
	Gas     template.HTML
	Signers []signerView
}

// signerView is one signer with its newest numbers.
type signerView struct {
	txstore.SignerStatus
	Lease   string
	Balance string // empty where the chain was not asked
	Fuel    fuel
	Strip   []number
}

// number is one of a strip.
type number struct {
	txstore.NumberStatus
	Word string // what became of it, in one word
	// CanCancel is true when an operator may want it back.
	CanCancel bool
}

func (c *console) signers(ctx context.Context, _ url.Values) (any, error) {
	all, err := txstore.NewSigners(c.DB).List(ctx)
	if err != nil {
		return nil, err
	}
	p, views := c.past(), make([]signerView, 0, len(all))
	for _, s := range all {
		v := signerView{SignerStatus: s, Lease: status.LeaseOf(s), Fuel: p.fuel(s.Signer)}
		from := s.NextNonce - min(s.NextNonce, stripLength)
		numbers, err := txstore.NewSigners(c.DB).Numbers(ctx, s.Signer, from, stripLength)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			v.Strip = append(v.Strip, number{n, wordOf(n), n.Intent.Replaceable()})
		}
		if c.Node != nil {
			asking, cancel := context.WithTimeout(ctx, time.Second)
			if wei, err := c.Node.Balance(asking, s.Signer); err == nil {
				v.Balance = text.BNB(wei)
			}
			cancel()
		}
		views = append(views, v)
	}
	return signersView{p.gasChart(), views}, nil
}

// wordOf returns what became of a number: of one that is signed, what became of its transaction.
func wordOf(n txstore.NumberStatus) string {
	switch n.State {
	case nonce.Held:
		return "held"
	case nonce.Released:
		return "free"
	case nonce.Consumed:
		return "final"
	case nonce.Signed:
		return map[bool]string{true: "mined", false: "signed"}[n.Intent == "MINED"]
	}
	return "gap"
}

// delayedView lists delayed jobs.
type delayedView struct {
	Status string
	Jobs   []delayed.Job
	Scans  []pg.Scan
	Limit  int
}

func (c *console) delayed(ctx context.Context, ask url.Values) (any, error) {
	v := delayedView{Status: ask.Get("status"), Limit: listLimit}
	var err error
	if v.Jobs, err = c.DB.Delayed().List(ctx, delayed.Status(v.Status), "", listLimit); err != nil {
		return nil, err
	}
	v.Scans, err = c.DB.Delayed().Scans(ctx, c.Now().Add(-10*time.Minute))
	return v, err
}

// newestLetters are those that a page looks at.
const newestLetters = 200

// letterView is a dead letter as the page shows it.
type letterView struct {
	deadletter.Letter
	Replayable bool
}

func (c *console) deadLetters(ctx context.Context, _ url.Values) (any, error) {
	found, err := c.letters().Letters(ctx, "", newestLetters)
	if err != nil {
		return nil, err
	}
	slices.Reverse(found)
	views := make([]letterView, len(found))
	for i, l := range found {
		views[i] = letterView{l, l.Source() == wire.JobTopic(c.Keeper.ChainID)}
	}
	return views, nil
}

// auditView is what was done by the console, an action a row.
type auditView struct {
	Actions []actionView
	Older   string
}

// actionView is one action: as it was asked for, and what came of it.
type actionView struct {
	pg.ConsoleAction
	Changes []change
}

// change is one thing that an action changed, or was to change.
type change struct{ What, Before, After string }

func (c *console) audit(ctx context.Context, ask url.Values) (any, error) {
	before := int64(0)
	if asked := ask.Get("before"); asked != "" {
		var err error
		if before, err = strconv.ParseInt(asked, 10, 64); err != nil || before < 1 {
			return nil, badQuestionError{fmt.Errorf("%q is no entry", asked)}
		}
	}
	entries, err := c.DB.ConsoleActions().List(ctx, before, listLimit)
	if err != nil {
		return nil, err
	}
	var v auditView
	ended := map[uuid.UUID]bool{}
	for _, e := range entries {
		if e.Stage == pg.ActionAsked && ended[e.Run] {
			continue // what came of it stands above
		}
		ended[e.Run] = true
		v.Actions = append(v.Actions, actionView{e, changes(e.Before, e.After)})
	}
	if len(entries) == listLimit {
		v.Older = fmt.Sprintf("/audit?before=%d", entries[listLimit-1].ID)
	}
	return v, nil
}

// changes are the things that are different after an action, by name.
func changes(before, after facts) (all []change) {
	both := maps.Clone(after)
	maps.Copy(both, before)
	for _, what := range slices.Sorted(maps.Keys(both)) {
		if is, had := before[what]; !had || is != after[what] {
			all = append(all, change{what, is, after[what]})
		}
	}
	return all
}
