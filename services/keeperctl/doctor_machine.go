package keeperctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
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
	if len(m.Disks) > 0 && !f.Pre {
		m.Growth, _ = s.growth(ctx) // who does not answer is found elsewhere
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

// sendTestAlert gives Alertmanager a warning that ends by itself within a minute.
func (s *session) sendTestAlert(ctx context.Context) error {
	if !s.Own.Alertmanager.IsSet() {
		return usagef("there is no Alertmanager to give a test message to (keeperctl.alertmanager)")
	}
	ctx, cancel := context.WithTimeout(ctx, status.Patience)
	defer cancel()
	now := time.Now()
	body, err := json.Marshal([]map[string]any{{
		"labels": map[string]string{"alertname": "KeeperctlTest", "severity": "warning", "keeper": s.place()},
		"annotations": map[string]string{"summary": "A test: keeperctl doctor --test-alert was run", "runbook": "none",
			"console": "/"},
		"startsAt": now.Format(time.RFC3339), "endsAt": now.Add(time.Minute).Format(time.RFC3339),
	}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.alertmanager("/api/v2/alerts"),
		bytes.NewReader(body))
	if err != nil {
		return status.Unaddressed(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return notAsked(fmt.Errorf("giving Alertmanager a test message: %w", status.Unaddressed(err)))
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return notAsked(fmt.Errorf("giving Alertmanager a test message: it answers %s", answer.Status))
	}
	return nil
}

// sampled is how many of the newest records of a partition say how large a record is.
const sampled = 100

// growth is by how many bytes the log topic and the state have grown within the last day: the topic by its offsets and
// the size of its newest records, and the state, which is folded from it, by the same part of what it is. The other
// topics and the archive forget by their age, and grow no more. It is 0 where the topic is younger than two days: what
// came in then is a history, and no pace.
func (s *session) growth(ctx context.Context) (uint64, error) {
	client, err := s.kafka()
	if err != nil {
		return 0, err
	}
	var all, ofTheDay, bytes uint64
	for part := range s.Keeper.LogPartitions {
		p, err := pace(ctx, client, wire.LogTopic(s.Keeper.ChainID), part, time.Now())
		if err != nil || p.young {
			return 0, err
		}
		all, ofTheDay, bytes = all+p.records, ofTheDay+p.ofTheDay, bytes+p.ofTheDay*p.size
	}
	if all == 0 {
		return 0, nil
	}
	db, err := s.database(ctx)
	if err != nil {
		return 0, err
	}
	state, err := db.StateBytes(ctx)
	return bytes + state*ofTheDay/all, err
}

// partitionPace is how a partition grows.
type partitionPace struct {
	records, ofTheDay uint64
	size              uint64 // bytes of a record, as the newest are
	young             bool   // it has no record of the day before the last one
}

func pace(ctx context.Context, client *bus.Client, topic string, part int, now time.Time) (p partitionPace, err error) {
	first, end, err := client.Bounds(ctx, topic, part)
	if err != nil || first == end {
		return partitionPace{young: true}, err
	}
	before, err := client.OffsetAt(ctx, topic, part, now.Add(-48*time.Hour))
	if err != nil || before == first {
		return partitionPace{young: true}, err
	}
	since, err := client.OffsetAt(ctx, topic, part, now.Add(-24*time.Hour))
	if err != nil {
		return p, err
	}
	p.records, p.ofTheDay = uint64(end-first), uint64(end-since)
	records, err := client.Reader(topic, part, max(first, end-sampled)).NextBatch(ctx, sampled)
	for _, r := range records {
		p.size += uint64(len(r.Key) + len(r.Value))
	}
	p.size /= max(1, uint64(len(records)))
	return p, err
}
