//go:build browser

package console

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
)

// password is everybody's.
const password = "correct horse battery"

// page is one of the console, and what it shows of a keeper at work.
type page struct {
	path, name string
	live       []string // patterns of its text
}

// pages are all of them. None may say that something cannot be read or judged.
var pages = []page{
	{"/", "overview", []string{`This keeper is`, `All well`, `chain head`, `last hour`}},
	{"/jobs", "jobs", []string{`Ended`, `executed`}},
	{"/positions", "positions", []string{`[1-9]\d* open positions\. Judged`, `it is healthy: margin ratio`,
		`ETH/USD \[WETH-USDC\]`}},
	{"/market", "market", []string{`planner is in mode`, `Prices by source`, `yes`}},
	{"/pnl", "pnl", []string{`Final blocks \d+ to \d+`, `liquidation`}},
	{"/signers", "signers", []string{`works`, `final`}},
	{"/delayed", "delayed", []string{`daily_report`, `Last scans`, `\w+/\d+\s+20\d\d-`}},
	{"/deadletters", "deadletters", []string{`refused: the venue says`}},
	{"/audit", "audit", []string{`signer pause`, `anna`}},
}

// An operator's day beside a live keeper.
func TestConsole(t *testing.T) {
	axe := scriptOf(t)
	k := start(t)
	k.user("anna", "operator")
	k.user("vera", "viewer")
	b := openTab(t, "http://"+k.Process("console").HTTP)
	b.screen(1280, 900, "light")
	b.signIn("anna", password)

	t.Run("sign in", func(t *testing.T) { k.in(t).signIn(b.in(t).stranger()) })
	t.Run("updates come within 2 s", func(t *testing.T) { k.in(t).updates(b.in(t)) })
	k.executed(job.Order)
	liquidated := k.executed(job.Liquidation)
	t.Run("actions", func(t *testing.T) { k.in(t).actions(b.in(t)) })
	t.Run("refusals", func(t *testing.T) { k.in(t).refusals(b.in(t)) })
	t.Run("pages", func(t *testing.T) {
		k.in(t).pages(b.in(t), axe, page{"/job?id=" + url.QueryEscape(liquidated.JobID), "job",
			[]string{`due\s+20\d\d-`, `prices\s+.*USDC \$1`, `sent\s+\+\d`, `landed\s+\+\d`, `cost\s+0\.\d+ BNB`,
				`result\s+executed`, `Every step`}})
	})
	t.Run("a story stays open", func(t *testing.T) { k.in(t).unfolds(b.in(t), liquidated.JobID) })
	t.Run("keyboard", func(t *testing.T) {
		b := b.in(t)
		b.goTo("/jobs")
		var at string
		b.run(chromedp.KeyEvent("\t"), chromedp.Evaluate(`document.activeElement.className`, &at))
		if at != "skip" {
			t.Errorf("the first stop of the keyboard is %q", at)
		}
	})
}

func (k *keeper) signIn(b tab) {
	b.run(chromedp.Navigate(b.site+"/jobs"), shown("#name"))
	b.signIn("anna", "not the password")
	b.says("The name or the password is wrong")
	b.signIn("vera", password)
	b.says("vera viewer")
	b.goTo("/signers")
	if strings.Contains(b.text(), "Pause") {
		b.t.Error("a viewer is offered an action")
	}
}

// updates: what changes elsewhere is on an open page within two seconds, in the middle of five times.
func (k *keeper) updates(b tab) {
	b.goTo("/signers")
	signer := k.signers()[0].Signer
	var took []time.Duration
	for n := range 5 {
		why := fmt.Sprint("paused from elsewhere: ", n)
		began := time.Now()
		_, err := txstore.NewSigners(k.db).Pause(b.t.Context(), signer, why)
		k.must(err)
		b.says(why)
		took = append(took, time.Since(began))
		_, err = txstore.NewSigners(k.db).Resume(b.t.Context(), signer)
		k.must(err)
	}
	slices.Sort(took)
	b.t.Logf("updates took %v", took)
	if took[2] > 2*time.Second {
		b.t.Errorf("updates took %v", took)
	}
}

// actions does every one, and reads its two entries.
func (k *keeper) actions(b tab) {
	signer := k.signers()[0].Signer.Hex()
	b.recorded(k, "signer-pause", func() { b.act("/signers", "do=signer-pause&target="+signer, "to see it stop") })
	b.says("to see it stop (by anna)")
	b.recorded(k, "signer-resume", func() { b.act("/signers", "do=signer-resume&target="+signer, "it has") })
	b.recorded(k, "nonce-cancel", func() { k.callOff(b) })

	retried, cancelled := k.postpone("0 is no day", -time.Hour), k.postpone("2000-01-01", time.Hour)
	b.goTo("/delayed")
	b.wants(`no day\s+parked`)
	b.recorded(k, "delayed-run", func() { b.act("/delayed", "do=delayed-run", "now") })
	b.recorded(k, "delayed-retry", func() { b.act("/delayed", fmt.Sprint("do=delayed-retry&target=", retried), "now") })
	b.recorded(k, "delayed-cancel", func() {
		b.act("/delayed", fmt.Sprint("do=delayed-cancel&target=", cancelled), "nobody wants it")
	})
	k.giveUp()
	b.recorded(k, "letter-replay", func() { b.act("/deadletters", "do=letter-replay&target=0", "try again") })
}

// recorded does an action and expects its two entries: what was asked for, and that it was done.
func (b tab) recorded(k *keeper, action string, do func()) {
	b.t.Helper()
	before := len(k.recorded())
	do()
	var entries []pg.ConsoleAction
	k.await("the entries of "+action, func() bool {
		entries = k.recorded()[before:]
		return len(entries) >= 2
	})
	asked, done := entries[0], entries[1]
	if len(entries) != 2 || asked.Action != action || asked.Stage != pg.ActionAsked || done.Stage != pg.ActionDone ||
		done.Run != asked.Run || done.Who != "anna" || done.Reason == "" {
		b.t.Errorf("%s: %+v; the page says\n%s", action, entries, b.text())
	}
	b.t.Logf("%s: %v -> %v", action, done.Before, done.After)
}

// callOff stops the chain, two seconds of every four, until a transaction waits for a block, and calls that off. In the
// first second the keeper may not have read yet what the last block has.
func (k *keeper) callOff(b tab) {
	defer k.devnet("devnet_resume")
	looks := 0
	k.await("a transaction under way", func() bool {
		switch looks++; looks % 40 {
		case 1:
			k.devnet("devnet_stall", map[string]any{"seconds": 60})
		case 21:
			k.devnet("devnet_resume")
		}
		if since := looks % 40; since < 10 || since > 20 {
			return false
		}
		signer, number, found := k.inFlight()
		if found {
			b.act("/signers", fmt.Sprintf("do=nonce-cancel&target=%s:%d", signer.Hex(), number), "it hangs")
		}
		return found
	})
}

func (k *keeper) refusals(b tab) {
	before := len(k.recorded())
	signer := k.signers()[0].Signer.Hex()
	b.goTo("/act?do=signer-pause&target=" + signer)
	b.run(chromedp.Evaluate(`document.querySelector("form.confirm [name=csrf]").value = "forged"`, nil))
	b.confirm("x")
	b.says("The form is not of this session")
	viewer := b.stranger()
	viewer.signIn("vera", password)
	viewer.goTo("/act?do=signer-pause&target=" + signer)
	viewer.says("This needs the role operator; you are viewer")
	if len(k.recorded()) != before {
		b.t.Error("a refused action is recorded as one")
	}
}

// unfolds opens all of a story, which updates leave open. On the command line it is the same story.
func (k *keeper) unfolds(b tab, id string) {
	said, err := k.Keeperctl(k.t.Context(), "job", id)
	k.must(err)
	k.t.Log(said)
	if !strings.Contains(said, "/USD [W") || !strings.Contains(said, "landed") {
		k.t.Errorf("no market, or no block, in\n%s", said)
	}
	b.goTo("/job?id=" + url.QueryEscape(id))
	b.run(pressed("#steps summary"))
	b.wants(`born`, `price report`, `signed attempt 1`, `ended attempt 1\s+executed`)
	b.poll(fmt.Sprintf(`document.querySelector(".asof").innerText !== %q`, b.asOf()))
	b.poll(fmt.Sprintf(`document.querySelector(".asof").innerText !== %q`, b.asOf()))
	b.wants(`ended attempt 1\s+executed`)
}

func (b tab) asOf() (text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(`document.querySelector(".asof").innerText`, &text))
	return text
}

// pages reads every page on a large and a small screen, in light and in dark, and makes the pictures of
// docs/console.md.
func (k *keeper) pages(b tab, axe string, more ...page) {
	documented, folder := pictures(b.t), os.Getenv("CONSOLE_SHOTS")
	for _, size := range []struct {
		width, height int64
		scheme        string
	}{{1920, 1080, "light"}, {1920, 1080, "dark"}, {360, 780, "light"}, {360, 780, "dark"}} {
		b.screen(size.width, size.height, size.scheme)
		for _, p := range slices.Concat(pages, more) {
			b.goTo(p.path)
			b.wants(p.live...)
			if text := b.text(); strings.Contains(text, "cannot be") || strings.Contains(text, "could not be asked") {
				b.t.Errorf("%s at %d says\n%s", p.path, size.width, text)
			}
			name := fmt.Sprintf("%s-%d-%s", p.name, size.width, size.scheme)
			if _, shown := documented[name]; folder != "" {
				b.shot(folder, name)
				documented[name] = true
			} else if shown {
				b.shot("../../docs/console", name)
				documented[name] = true
			}
			if found := b.serious(axe); len(found) > 0 {
				b.t.Errorf("%s at %d, %s: %s", p.path, size.width, size.scheme, strings.Join(found, "\n"))
			}
			if wide := b.width(); wide > size.width {
				b.t.Errorf("%s at %d is %d wide", p.path, size.width, wide)
			}
		}
	}
	for name, made := range documented {
		if !made {
			b.t.Errorf("docs/console.md shows %s, which is no picture of a page", name)
		}
	}
}
