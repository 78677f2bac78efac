package keeperctl

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/services/keeperctl/doctor"
)

// openKeys opens the keys as the sender does, and forgets them: what remains is whose they are.
func (s *session) openKeys(f *doctor.Facts) {
	if f.KeysAsked = s.Signer.Demand() == nil; !f.KeysAsked {
		return
	}
	all, err := signer.Open(s.Signer)
	f.KeysError = err
	for _, one := range all {
		f.Keys = append(f.Keys, one.Address())
	}
}

// machine asks for the disks' space and for Alertmanager.
func (s *session) machine(ctx context.Context, f *doctor.Facts) {
	m := &f.Machine
	for _, path := range s.Own.Disks {
		d := doctor.Disk{Path: path}
		d.Free, d.Total, d.Error = space(path)
		m.Disks = append(m.Disks, d)
	}
	m.Operator, m.Alertmanager = len(s.Notify.For(notify.Operator)) > 0, s.Own.Alertmanager.IsSet()
	if !m.Alertmanager || f.Pre {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, status.Patience)
	defer cancel()
	_, code, err := status.Get(ctx, s.alertmanager("/-/ready"))
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("it answers %d", code)
	}
	if m.AlertsError = err; err == nil {
		m.Unwatched = s.unwatched(ctx)
	}
}

// unwatched reports whether Alertmanager has received no Watchdog; false where it cannot be asked.
func (s *session) unwatched(ctx context.Context) bool {
	body, code, err := status.Get(ctx, s.alertmanager("/api/v2/alerts?filter=alertname%3D%22Watchdog%22"))
	return err == nil && code == http.StatusOK && strings.TrimSpace(body) == "[]"
}

func (s *session) alertmanager(path string) string {
	return strings.TrimSuffix(s.Own.Alertmanager.Reveal(), "/") + path
}
