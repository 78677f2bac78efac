package keeperctl

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
)

// keeperStatus shows a keeper on one screen: what is wrong first.
func keeperStatus(ctx context.Context, s *session, _ []string) error { return s.show(s.look(ctx)) }

// show prints findings, those somebody has to do something about first.
func (s *session) show(found []status.Finding) error {
	rows, wrong := newTable("ok", "what", "seen"), status.WrongFirst(found)
	for _, f := range found {
		mark := any("ok")
		if f.Wrong {
			mark = "!!"
		}
		if s.out.json {
			mark = !f.Wrong
		}
		rows.add(mark, f.What, f.Seen)
	}
	if err := s.out.note(fmt.Sprintf("keeper of chain %d, %s, at %s", s.Keeper.ChainID, s.place(),
		text.Moment(time.Now()))); err != nil {
		return err
	}
	if err := s.out.table(rows); err != nil || wrong == 0 {
		return err
	}
	return fmt.Errorf("things that somebody has to look at: %d", wrong)
}

// look asks every source at the same time. One that cannot be reached is a finding.
func (s *session) look(ctx context.Context) []status.Finding {
	keeper := status.Keeper{ChainID: s.Keeper.ChainID, DB: s.database, Kafka: s.kafka, Processes: s.Own.Processes,
		Node: func(ctx context.Context) (status.Node, error) { return s.node(ctx) }}
	sources := keeper.Sources()
	if s.Own.Alertmanager.IsSet() {
		sources = append(sources, status.Source{What: "alarms", Ask: func(ctx context.Context, l *status.Looks) error {
			return status.Alarms(ctx, s.Own.Alertmanager.Reveal(), l)
		}})
	}
	found := status.Look(ctx, sources)
	if len(s.Own.Processes) == 0 {
		found = append(found, status.Finding{What: "processes", Seen: "not asked: keeperctl.processes names none " +
			"(readiness, jobs due, and who is suspected are theirs to say)"})
	}
	return found
}

// place is this keeper's among those of its exchange, and when it acts.
func (s *session) place() string { return status.Place(s.Tier) }
