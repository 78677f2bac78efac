package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/services/console/signin"
)

//go:embed templates
var sources embed.FS

// templates are the pages by name, each with the layout and the parts that pages share.
type templates map[string]*template.Template

func parseTemplates(functions template.FuncMap) (templates, error) {
	files, err := fs.Glob(sources, "templates/*.html")
	if err != nil {
		return nil, err
	}
	parsed := templates{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		if parsed[name], err = template.New("layout.html").Funcs(functions).
			ParseFS(sources, "templates/layout.html", "templates/parts.html", file); err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
	}
	return parsed, nil
}

// functions are what pages are written with.
func (c *console) functions() template.FuncMap {
	return template.FuncMap{
		"coins": text.BNB, "usd": text.USD, "first": text.FirstLine, "moment": text.Moment,
		"short": text.Short, "clock": func(at time.Time) string { return at.UTC().Format("15:04:05") },
		"lower":  func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"signed": text.SignedBNB, "lasts": age, "words": words, "outcomeTone": outcomeTone,
		"token": c.Names.Token, "market": c.Names.Market,
		"pieces":  func(v any) []naming.Piece { return c.Names.Pieces(c.Keeper.ChainID, fmt.Sprint(v)) },
		"shortIn": func(text string) string { return shortEach(strings.Fields(text), " ") },
		"jobname": func(id string) string { return shortEach(strings.Split(id, ":"), " ") },
		"keyname": func(key string) string { return shortEach(strings.Split(key, "@"), "@") }, // may be of several hashes
	}
}

// shortEach joins the parts of a text, with the hashes and addresses among them cut short.
func shortEach(parts []string, by string) string {
	for i := range parts {
		parts[i] = text.Short(parts[i])
	}
	return strings.Join(parts, by)
}

// words are a name as people write it: lost_race and glvDeposit apart.
func words(v any) string {
	var b strings.Builder
	for _, r := range fmt.Sprint(v) {
		switch {
		case r == '_' || r == '-':
			b.WriteByte(' ')
		case unicode.IsUpper(r):
			b.WriteByte(' ')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// outcomeTone is how an outcome is coloured.
func outcomeTone(o job.Outcome) string {
	switch {
	case o == job.Done:
		return "ok"
	case o.Failure() || o == job.Foreign:
		return "bad"
	}
	return ""
}

// age is a duration for people: one unit, or two where the second matters.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// shownPage is what the layout and every page are written from.
type shownPage struct {
	Title string
	Path  string
	Live  string        // where the page's view is asked for again; empty where it is not
	Every time.Duration // how often
	Nav   []page
	Me    signin.Session
	At    time.Time
	View  any
	// Problem stands in the view's place where its store could not be asked.
	Problem string
}

// Operates reports whether who looks may act.
func (p shownPage) Operates() bool { return p.Me.Role.May(signin.Operator) }

// show writes a page.
func (c *console) show(w http.ResponseWriter, status int, name string, view any) {
	c.write(w, status, name, "layout.html", view)
}

// write writes a part of a page. A template that fails is a mistake of this program, and half a page is none.
func (c *console) write(w http.ResponseWriter, status int, name, part string, view any) {
	var out bytes.Buffer
	if err := c.shown[name].ExecuteTemplate(&out, part, view); err != nil {
		c.Log.Error().Err(err).Str("page", name).Msg("a page cannot be written")
		http.Error(w, "this page cannot be written; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // The client may have gone; nothing is lost with it.
}

// refuse reports why something was not done.
func (c *console) refuse(w http.ResponseWriter, s signin.Session, status int, why string) {
	c.show(w, status, "refused", shownPage{Title: "Refused", Nav: c.nav(), Me: s, At: c.Now(), Problem: why})
}
