//go:build browser

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is one of a real browser, with cookies of its own.
type tab struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // chromedp keeps the tab in it
	site string          // address of the console
}

// openTab starts a browser. Where there is none, the test fails: it is run by those who want to know.
func openTab(t *testing.T, site string) tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(patience))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(allocator, 25*time.Minute) // guards against a hang
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as the context it was started with
		t.Fatalf("starting Chromium: %v", err)
	}
	return tab{t, ctx, site}
}

// in is the tab for a subtest.
func (b tab) in(t *testing.T) tab {
	b.t = t
	return b
}

// stranger is a tab of another browser, which knows none of this one's cookies.
func (b tab) stranger() tab {
	b.t.Helper()
	return openTab(b.t, b.site)
}

// What is done with the element of a CSS selector: chromedp's own default also finds it as text.
func shown(selector string) chromedp.Action { return chromedp.WaitVisible(selector, chromedp.ByQuery) }
func gone(selector string) chromedp.Action {
	return chromedp.WaitNotPresent(selector, chromedp.ByQuery)
}
func pressed(selector string) chromedp.Action { return chromedp.Click(selector, chromedp.ByQuery) }
func typed(selector, text string) chromedp.Action {
	return chromedp.SendKeys(selector, text, chromedp.ByQuery)
}

func (b tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pagePatience) // guards against a hang
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var at string
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &at))
		b.t.Fatalf("%v; the browser is at %s", err, at)
	}
}

func (b tab) goTo(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.site+path), shown("main"))
}

// text is what a person reads of the page.
func (b tab) text() (text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(`document.querySelector("main").innerText`, &text))
	return text
}

// comesTo tells whether a script comes to say true. A page that is on its way to another one says nothing yet.
func (b tab) comesTo(script string) bool {
	b.t.Helper()
	hung := time.NewTimer(pagePatience)
	defer hung.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for holds := false; ; {
		if err := chromedp.Run(b.ctx, chromedp.Evaluate(script, &holds)); holds && err == nil {
			return true
		}
		select {
		case <-hung.C:
			return false
		case <-tick.C:
		}
	}
}

// poll waits until a script says true.
func (b tab) poll(script string) {
	b.t.Helper()
	if !b.comesTo(script) {
		b.t.Fatalf("not after %s: %s; the page says\n%s", pagePatience, script, b.text())
	}
}

// says waits until the page says something, which updates may bring.
func (b tab) says(text string) {
	b.t.Helper()
	b.poll(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// wants are patterns that the page has to show by itself, sooner or later.
func (b tab) wants(patterns ...string) {
	b.t.Helper()
	for _, p := range patterns {
		script, err := json.Marshal(p)
		if err != nil {
			b.t.Fatal(err)
		}
		if !b.comesTo(fmt.Sprintf(`new RegExp(%s).test(document.querySelector("main").innerText)`, script)) {
			b.t.Errorf("no %q after %s; the page says\n%s", p, pagePatience, b.text())
		}
	}
}

// signIn types a name and a password, as a person does.
func (b tab) signIn(name, password string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.site+"/signin"), shown("#name"),
		typed("#name", name),
		typed("#password", password+"\r"),
		shown(".who, .problem"))
}

// act confirms an action, with a reason, from the link that a page has for it. Updates move what is on a page: the
// link is pressed by its name and not by its place.
func (b tab) act(page, link, why string) {
	b.t.Helper()
	b.goTo(page)
	at := fmt.Sprintf(`document.querySelector('a[href*="%s"]')`, link)
	b.poll(at + " !== null")
	b.run(chromedp.Evaluate(at+".click()", nil))
	b.confirm(why)
}

// confirm gives the reason and does what the page says.
func (b tab) confirm(why string) {
	b.t.Helper()
	b.run(shown("#why"), typed("#why", why),
		pressed("form.confirm button"),
		gone("#why"))
}

func (b tab) screen(width, height int64, scheme string) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}}))
}

var pictureName = regexp.MustCompile(`\(console/([a-z0-9-]+)\.png\)`)

// pictures are those that docs/console.md shows, by name, and whether they were made.
func pictures(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, found := range pictureName.FindAllStringSubmatch(string(text), -1) {
		made[found[1]] = false
	}
	return made
}

// shot makes a picture of the tab.
func (b tab) shot(folder, name string) {
	b.t.Helper()
	var picture []byte
	b.run(chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// width is how wide the page is, in pixels.
func (b tab) width() (pixels int64) {
	b.t.Helper()
	b.run(chromedp.Evaluate(`document.documentElement.scrollWidth`, &pixels))
	return pixels
}

// serious runs axe-core on the page that is open and returns what it found that keeps people out.
func (b tab) serious(axe string) (found []string) {
	b.t.Helper()
	var answer string
	b.run(chromedp.Evaluate(axe+"; true", nil),
		chromedp.Evaluate(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
			.then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact,
				at: v.nodes.map(n => n.target.join(" ") + " " + n.failureSummary)}))))`,
			&answer, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	var violations []struct {
		ID, Impact string
		At         []string
	}
	if err := json.Unmarshal([]byte(answer), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			found = append(found, v.ID+" "+strings.Join(v.At, "; "))
		}
	}
	return found
}
