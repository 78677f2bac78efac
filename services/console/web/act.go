package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"perpkeeper/pkg/pg"
	"perpkeeper/services/console/signin"
)

// act is something that operators can have done.
type act struct {
	name  string // as the record and the addresses have it
	Title string
	back  string // the page it belongs to
	// Warning is shown beside what will change.
	Warning   string
	WhyNeeded bool // a reason has to be given
	// state is what it changes, as it is.
	state func(ctx context.Context, target string) (facts, error)
	// will returns what the action changes it to; an error if it cannot be done.
	will func(now facts) (facts, error)
	do   func(ctx context.Context, s signin.Session, target, why string) error
}

// facts are what an action is about, in words for people.
type facts = map[string]string

// plan reports what an action will change: things as they are, and as they will be.
func (a act) plan(ctx context.Context, target string) (before, after facts, err error) {
	if before, err = a.state(ctx, target); err != nil {
		return nil, nil, err
	}
	other, err := a.will(before)
	after = maps.Clone(before)
	maps.Copy(after, other)
	return before, after, err
}

// confirmation is what the page shows that an action is confirmed on.
type confirmation struct {
	act
	Name, Target string
	Changes      []change
	Stays        []change // what is shown beside
}

// longestWhy bounds the reason of an action.
const longestWhy = 500

func (c *console) find(r *http.Request) (act, string, error) {
	name, target := r.FormValue("do"), r.FormValue("target")
	a, known := c.acts()[name]
	if !known {
		return act{}, "", fmt.Errorf("%q is no action of the console", name)
	}
	return a, target, nil
}

// confirm shows what an action will change.
func (c *console) confirm(w http.ResponseWriter, r *http.Request, s signin.Session) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	a, target, err := c.find(r)
	if err != nil {
		c.refuse(w, s, http.StatusBadRequest, err.Error())
		return
	}
	before, after, err := a.plan(ctx, target)
	if err != nil {
		c.refuse(w, s, http.StatusConflict, err.Error())
		return
	}
	view := confirmation{act: a, Name: a.name, Target: target, Changes: changes(before, after)}
	for what, is := range before {
		if after[what] == is {
			view.Stays = append(view.Stays, change{What: what, Before: is})
		}
	}
	c.show(w, http.StatusOK, "confirm", shownPage{Title: a.Title, Path: a.back, Nav: c.nav(), Me: s, At: c.Now(),
		View: view})
}

// perform does what was confirmed. It is written down first: what cannot be written down is not done.
func (c *console) perform(w http.ResponseWriter, r *http.Request, s signin.Session) {
	// a browser that leaves undoes nothing
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), pageTimeout)
	defer cancel()
	a, target, err := c.find(r)
	if err != nil {
		c.refuse(w, s, http.StatusBadRequest, err.Error())
		return
	}
	why := strings.TrimSpace(r.PostFormValue("why"))
	if a.WhyNeeded && why == "" || len(why) > longestWhy {
		c.refuse(w, s, http.StatusBadRequest, fmt.Sprintf("Say why, in up to %d bytes: whoever finds it wants to know.",
			longestWhy))
		return
	}
	before, planned, err := a.plan(ctx, target)
	if err != nil {
		c.refuse(w, s, http.StatusConflict, err.Error())
		return
	}
	entry := pg.ConsoleAction{Run: uuid.New(), Who: s.Name, Role: s.Role.String(), Address: c.address(r),
		Action: a.name, Target: target, Reason: why, Stage: pg.ActionAsked, Before: before}
	if err := c.DB.ConsoleActions().Record(ctx, entry); err != nil {
		c.refuse(w, s, http.StatusServiceUnavailable, "Nothing was done, because it cannot be written down: "+
			err.Error())
		return
	}
	if err := c.finish(ctx, a, s, entry, planned); err != nil {
		c.refuse(w, s, http.StatusConflict, err.Error())
		return
	}
	http.Redirect(w, r, a.back+"?"+url.Values{"done": {a.name}}.Encode(), http.StatusSeeOther)
}

// finish does an action and writes down what came of it: things as they are afterwards, and of what cannot be asked for
// again what was done. That has time of its own: what has used up its time is written down like anything else.
func (c *console) finish(ctx context.Context, a act, s signin.Session, entry pg.ConsoleAction, planned facts) error {
	failed := a.do(ctx, s, entry.Target, entry.Reason)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageTimeout)
	defer cancel()
	entry.Stage = pg.ActionDone
	if failed != nil {
		entry.Stage, entry.Outcome = pg.ActionFailed, failed.Error()
	}
	var unseen error
	if entry.After, unseen = a.state(ctx, entry.Target); unseen != nil {
		entry.After = facts{"not read": unseen.Error()}
	}
	for what, is := range planned {
		if _, asked := entry.Before[what]; !asked && failed == nil {
			entry.After[what] = is
		}
	}
	recorded := c.DB.ConsoleActions().Record(ctx, entry)
	c.Log.Info().AnErr("failed", failed).AnErr("unrecorded", recorded).Str("who", s.Name).Str("action", a.name).
		Str("target", entry.Target).Msg("console action")
	if recorded != nil && failed == nil {
		return fmt.Errorf("it was done, and that could not be written down: %w", recorded)
	}
	return failed
}
