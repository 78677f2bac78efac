package web

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"perpkeeper/services/console/doctor"
	"perpkeeper/services/console/signin"
)

// doctorView is what the last run of keeperctl doctor found.
type doctorView struct {
	doctor.State

	Able    bool          // there is a program to run
	Running time.Duration // for how long one is under way
	Ago     time.Duration // since the last one began
	Groups  []severityGroup
	Checks  int
}

// severityGroup is the findings of one severity.
type severityGroup struct {
	Name, Title string
	Findings    []doctor.Finding
}

func (c *console) doctor(context.Context, url.Values) (any, error) {
	now := c.Now()
	v := doctorView{State: c.Doctor.State(), Able: c.Doctor.Able()}
	if !v.Since.IsZero() {
		v.Running = now.Sub(v.Since)
	}
	if !v.Began.IsZero() {
		v.Ago = now.Sub(v.Began)
	}
	if v.Report == nil {
		return v, nil
	}
	for _, a := range v.Report.Areas {
		v.Checks += a.Checks
	}
	for _, g := range []severityGroup{{Name: "failure", Title: "Failures: mend at once"},
		{Name: "warning", Title: "Warnings: they cost nothing yet"}} {
		for _, f := range v.Report.Findings {
			if f.Severity == g.Name {
				g.Findings = append(g.Findings, f)
			}
		}
		if len(g.Findings) > 0 {
			v.Groups = append(v.Groups, g)
		}
	}
	return v, nil
}

// runDoctor begins a run. It changes nothing of the keeper, so that nobody has to confirm it.
func (c *console) runDoctor(w http.ResponseWriter, r *http.Request, s signin.Session) {
	if !c.Doctor.Start(c.running, s.Name) {
		c.refuse(w, s, http.StatusConflict, "The checks are being made already, or console.doctor names no program.")
		return
	}
	c.note(r, s, "doctor", "")
	http.Redirect(w, r, "/doctor", http.StatusSeeOther)
}
