//go:build browser

package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/outbox"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/console/web"
)

// chromium is a tab of a real browser.
type chromium struct {
	*site

	ctx context.Context
}

// open starts a browser. Where there is none, the test fails: it is run by those who want to know.
func (s *site) open() *chromium {
	s.t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("hide-scrollbars", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	s.t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	s.t.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // guards against a hang
	s.t.Cleanup(cancel)
	return &chromium{s, ctx}
}

func (c *chromium) run(actions ...chromedp.Action) {
	c.t.Helper()
	c.must(chromedp.Run(c.ctx, actions...))
}

func (c *chromium) goTo(path string) {
	c.t.Helper()
	c.run(chromedp.Navigate(c.URL+path), chromedp.WaitVisible("main"))
}

func (c *chromium) text() (text string) {
	c.t.Helper()
	c.run(chromedp.Text("main", &text))
	return text
}

func (c *chromium) wants(words ...string) {
	c.t.Helper()
	text := c.text()
	for _, w := range words {
		if !strings.Contains(text, w) {
			c.t.Errorf("%q is not in\n%s", w, text)
		}
	}
}

// signIn types a name and a password, as a person does.
func (c *chromium) signIn(name string) {
	c.t.Helper()
	c.run(chromedp.Navigate(c.URL+"/signin"), chromedp.WaitVisible("#name"),
		chromedp.SendKeys("#name", name), chromedp.SendKeys("#password", password+"\r"),
		chromedp.WaitVisible(".who"))
}

// act confirms an action, with a reason, from the link that a page has for it.
func (c *chromium) act(page, link, why string) {
	c.t.Helper()
	c.goTo(page)
	c.run(chromedp.Click(`a[href*="`+link+`"]`, chromedp.NodeVisible), chromedp.WaitVisible("#why"),
		chromedp.SendKeys("#why", why), chromedp.Click("form.confirm button"), chromedp.WaitNotPresent("#why"))
}

func (c *chromium) screen(width, height int64, scheme string) {
	c.t.Helper()
	c.run(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}}))
}

// shots are the screenshots of docs/console.md.
func (c *chromium) shot(name string) {
	c.t.Helper()
	folder := os.Getenv("CONSOLE_SHOTS")
	if folder == "" {
		folder = c.t.TempDir()
	}
	var picture []byte
	c.run(chromedp.CaptureScreenshot(&picture))
	c.must(os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
}

// serious runs axe-core on the page that is open and returns what it found that keeps people out.
func (c *chromium) serious() (found []string) {
	c.t.Helper()
	source, err := os.ReadFile(os.Getenv("CONSOLE_AXE"))
	c.must(err)
	var answer string
	c.run(chromedp.Evaluate(string(source)+"; true", nil),
		chromedp.Evaluate(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
			.then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact,
				at: v.nodes.map(n => n.target.join(" ") + " " + n.failureSummary)}))))`,
			&answer, awaitPromise))
	var violations []struct {
		ID, Impact string
		At         []string
	}
	c.must(json.Unmarshal([]byte(answer), &violations))
	for _, v := range violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			found = append(found, fmt.Sprint(v.ID, " ", v.At))
		}
	}
	return found
}

// pagesSeen are the pages with their names as screenshots.
var pagesSeen = []struct{ path, name string }{
	{"/", "overview"}, {"/jobs", "jobs"}, {"/positions", "positions"}, {"/market", "market"},
	{"/pnl", "pnl"}, {"/doctor", "doctor"}, {"/signers", "signers"}, {"/delayed", "delayed"},
	{"/deadletters", "deadletters"}, {"/generations", "generations"}, {"/audit", "audit"}, {"/sessions", "sessions"},
	{"/act?do=signer-pause&target=" + signer.Hex(), "confirm"},
}

// An operator's day in a real browser: every page, each action with its entry in the record, refusals, updates.
func TestConsoleInABrowser(t *testing.T) {
	s := newSite(t, func(d *web.Deps) {
		d.Node, d.Processes, d.Doctor = seenNode{}, processes(t), playing(t, sick, "1")
	})
	s.seed()
	c := s.open()
	c.screen(1280, 900, "light")
	c.run(chromedp.Navigate(c.URL+"/signin"), chromedp.WaitVisible("#name"), chromedp.SendKeys("#name", "anna"),
		chromedp.SendKeys("#password", "not the password\r"), chromedp.WaitVisible(".problem"))
	c.wants("The name or the password is wrong")
	c.signIn("anna")

	t.Run("updates come within 2 s", func(t *testing.T) {
		c.goTo("/signers")
		c.wants("works")
		began := time.Now()
		_, err := outbox.NewSigners(s.db).Pause(t.Context(), signer, "paused from elsewhere")
		s.must(err)
		c.run(chromedp.Poll(`document.body.innerText.includes("paused from elsewhere")`, nil,
			chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(30*time.Second)))
		took := time.Since(began)
		t.Logf("an update took %s", took.Round(time.Millisecond))
		if took > 2*time.Second {
			t.Errorf("an update took %s", took)
		}
		_, err = outbox.NewSigners(s.db).Resume(t.Context(), signer)
		s.must(err)
	})
	t.Run("actions", c.actions)
	t.Run("doctor", func(t *testing.T) {
		c.goTo("/doctor")
		c.run(chromedp.Click("button.main"), chromedp.WaitVisible("ul.faults"))
		c.wants("29 checks", "endpoint lag", "Failures", "leave it out of chain.urls")
	})
	t.Run("generations", c.steerGenerations)
	t.Run("refusals", c.refusals)
	t.Run("pages", c.everyPage)
	t.Run("keyboard", func(t *testing.T) {
		c.goTo("/jobs")
		var at string
		c.run(chromedp.KeyEvent("\t"), chromedp.Evaluate(`document.activeElement.className`, &at))
		if at != "skip" {
			t.Errorf("the first stop of the keyboard is %q", at)
		}
	})
}

func (c *chromium) actions(t *testing.T) {
	jobs, err := c.db.Delayed().List(t.Context(), "", "", 10)
	c.must(err)
	due := jobs[len(jobs)-1].ID
	for _, a := range []struct{ page, link, action string }{
		{"/signers", "do=signer-pause&target=" + signer.Hex(), "signer-pause"},
		{"/signers", "do=signer-resume&target=" + signer.Hex(), "signer-resume"},
		{"/signers", "do=nonce-cancel&target=" + signer.Hex() + ":1", "nonce-cancel"},
		{"/delayed", "do=delayed-run", "delayed-run"},
		{"/delayed", fmt.Sprint("do=delayed-retry&target=", due), "delayed-retry"},
		{"/delayed", fmt.Sprint("do=delayed-cancel&target=", due), "delayed-cancel"},
		{"/deadletters", "do=letter-replay&target=1", "letter-replay"},
	} {
		before := len(c.recorded())
		c.act(a.page, a.link, "for the test")
		all := c.recorded()
		if len(all) != before+2 || all[before].Action != a.action || all[before+1].Stage != "done" {
			t.Errorf("%s: %d entries: %+v; the page says\n%s", a.action, len(all)-before, all[before:], c.text())
		}
	}
	c.goTo("/audit")
	c.wants("signer pause", "“for the test”", "letter replay", "anna")
}

// steerGenerations rebuilds the state, compares, switches and goes back, and has a third one being filled in the end.
func (c *chromium) steerGenerations(t *testing.T) {
	topic := wire.LogTopic(c.deps.Keeper.ChainID)
	steps := []struct{ link, action string }{
		{"do=generation-rebuild", "generation-rebuild"}, {"do=generation-compare&target=2", "generation-compare"},
		{"do=generation-switch&target=2", "generation-switch"}, {"do=generation-back&target=1", "generation-back"},
		{"do=generation-compare&target=2", "generation-compare"},
		{"do=generation-switch&target=2", "generation-switch"},
		{"do=generation-rebuild", "generation-rebuild"},
	}
	for i, a := range steps {
		before := len(c.recorded())
		c.act("/generations", a.link, "for the test")
		all := c.awaitRecorded(before + 2)
		if len(all) != before+2 || all[before].Action != a.action || all[before+1].Stage != "done" {
			t.Fatalf("%s: %d entries: %+v; the page says\n%s", a.action, len(all)-before, all[before:], c.text())
		}
		if i == 0 {
			c.render(2)
		}
	}
	c.records(topic, 40)
	c.grow(c.rendering(3), 1)
	c.goTo("/generations")
	c.wants("equal to generation", "1 of 40 records", "done in")
}

// render gives a generation what the seed has given the first one.
func (c *chromium) render(number int) {
	c.t.Helper()
	part, err := c.db.Claim(c.t.Context(), pg.ClaimRequest{Generation: number, Partitions: 1})
	c.must(err)
	block := seededBlock()
	c.expose(part, 1, block, 0, 40)
	c.sell(part, 2, block)
}

func (c *chromium) refusals(t *testing.T) {
	before := len(c.recorded())
	c.goTo("/act?do=signer-pause&target=" + signer.Hex())
	c.run(chromedp.Evaluate(`document.querySelector("form.confirm [name=csrf]").value = "forged"`, nil),
		chromedp.SendKeys("#why", "x"), chromedp.Click("form.confirm button"), chromedp.WaitNotPresent("#why"))
	c.wants("The form is not of this session")
	viewer := c.site.open()
	viewer.signIn("vera")
	viewer.goTo("/act?do=signer-pause&target=" + signer.Hex())
	viewer.wants("This needs the role operator; you are viewer")
	if len(c.recorded()) != before {
		t.Error("a refused action is recorded as one")
	}
}

// freshen has prices as of now for the pages that judge by them, however slow the machine is.
func (c *chromium) freshen(path string) {
	c.t.Helper()
	switch path {
	case "/market":
		c.price()
		c.quote()
	case "/positions":
		c.price()
		reader := c.site.as("vera")
		reader.awaitPage("/positions", "it is healthy")
	}
}

func (c *chromium) everyPage(t *testing.T) {
	pages := append(pagesSeen[:len(pagesSeen):len(pagesSeen)], struct{ path, name string }{
		"/job?id=" + url.QueryEscape(someJob(0x41).ID), "job"})
	for _, size := range []struct {
		width, height int64
		scheme        string
	}{{1920, 1080, "light"}, {1920, 1080, "dark"}, {360, 780, "light"}, {360, 780, "dark"}} {
		c.screen(size.width, size.height, size.scheme)
		for _, p := range pages {
			c.freshen(p.path)
			c.goTo(p.path)
			c.shot(fmt.Sprintf("%s-%d-%s", p.name, size.width, size.scheme)) // before prices grow old
			if found := c.serious(); len(found) > 0 {
				t.Errorf("%s at %d, %s: %s", p.path, size.width, size.scheme, strings.Join(found, "\n"))
			}
			var wide int64
			c.run(chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide))
			if wide > size.width {
				t.Errorf("%s at %d is %d wide", p.path, size.width, wide)
			}
		}
	}
}
